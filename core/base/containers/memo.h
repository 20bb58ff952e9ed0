// Memos: what a pure function gave last, kept by all that it was asked with, where asking again is dear (certificates,
// tokens, patches). What is found equals what the function would make anew, so a memo shows in nothing but time, and it
// matters not that the worlds of a thread share one. MemosOff shows it: tests run a world with and without.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace wavetank {

// While one stands, this thread's memos hold nothing and are given nothing.
class MemosOff {
 public:
  MemosOff() { ++count; }
  ~MemosOff() { --count; }
  MemosOff(const MemosOff&) = delete;
  MemosOff& operator=(const MemosOff&) = delete;
  static bool Any() { return count > 0; }

 private:
  static inline constinit thread_local int count = 0;
};

// A function keeps one as its thread_local. Bounded: when `most` are kept, all are forgotten.
template <class Value>
class Memo {
 public:
  explicit Memo(size_t most) : most_(most) {}

  // Null if it was never kept, or is forgotten. Valid until the next Keep().
  const Value* Find(std::string_view asked) const {
    if (MemosOff::Any()) return nullptr;
    const auto it = kept_.find(absl::string_view(asked.data(), asked.size()));
    return it == kept_.end() ? nullptr : &it->second;
  }
  void Keep(std::string asked, Value value) {
    if (MemosOff::Any()) return;
    if (kept_.size() == most_) kept_.clear();
    kept_.insert_or_assign(std::move(asked), std::move(value));
  }

 private:
  const size_t most_;
  absl::flat_hash_map<std::string, Value> kept_;
};

}  // namespace wavetank
