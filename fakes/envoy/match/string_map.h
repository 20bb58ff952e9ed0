// Hash maps keyed by strings that can be searched with std::string_view. Never iterated where order could be seen.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"

namespace wavetank::envoysim {

struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
};
struct StringEq {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const { return a == b; }
};

template <typename T>
using StringMap = absl::flat_hash_map<std::string, T, StringHash, StringEq>;

}  // namespace wavetank::envoysim
