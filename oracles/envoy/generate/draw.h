// What a seed chooses.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/random.h"

namespace wavetank::envoydiff {

class Draw {
 public:
  Draw(uint64_t seed, std::string_view key) : random_(seed, key) {}

  bool Maybe(int percent) { return random_.Chance(static_cast<uint64_t>(percent) * 10'000); }
  int Int(int low, int high) { return static_cast<int>(random_.Between(low, high)); }
  template <typename List>
  auto Of(const List& list) {
    return *(std::begin(list) + static_cast<int64_t>(random_.Below(std::size(list))));
  }
  std::string Of(std::initializer_list<const char*> list) { return std::data(list)[random_.Below(list.size())]; }
  int Of(std::initializer_list<int> list) { return std::data(list)[random_.Below(list.size())]; }

 private:
  RandomStream random_;
};

}  // namespace wavetank::envoydiff
