// The letters of Kubernetes' generated names: no vowels, nothing that reads as a word (k8s.io/apimachinery:
// pkg/util/rand).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/random.h"

namespace wavetank::kube {

inline constexpr std::string_view kSafeLetters = "bcdfghjklmnpqrstvwxz2456789";

// So many of them, as `value` has them.
inline std::string SafeText(uint64_t value, int letters) {
  std::string out;
  for (int i = 0; i < letters; ++i, value /= kSafeLetters.size()) out += kSafeLetters[value % kSafeLetters.size()];
  return out;
}

// So many of them, one draw each.
inline std::string SafeText(RandomStream& random, int letters) {
  std::string out;
  for (int i = 0; i < letters; ++i) out += kSafeLetters[random.Below(kSafeLetters.size())];
  return out;
}

}  // namespace wavetank::kube
