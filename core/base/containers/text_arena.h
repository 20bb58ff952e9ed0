// Text that stays where it is until the arena goes: keys of sets that many short strings go into.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace wavetank {

class TextArena {
 public:
  std::string_view Keep(std::string_view text) {
    if (text.size() > left_) {
      constexpr size_t kBlock = 8192;
      left_ = std::max(kBlock, text.size());
      at_ = blocks_.emplace_back(new char[left_]).get();
    }
    char* const kept = at_;
    std::memcpy(kept, text.data(), text.size());
    at_ += text.size();
    left_ -= text.size();
    return {kept, text.size()};
  }

 private:
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* at_ = nullptr;
  size_t left_ = 0;
};

}  // namespace wavetank
