// The letters of Kubernetes' generated names: no vowels, nothing that reads as a word (k8s.io/apimachinery:
// pkg/util/rand).
#pragma once

#include <cstdint>
#include <string>

#include "core/base/random.h"

namespace wavetank::kube {

// So many of them, as `value` has them.
std::string SafeText(uint64_t value, int letters);
// So many of them, one draw each.
std::string SafeText(RandomStream& random, int letters);

}  // namespace wavetank::kube
