// Workload selectors.
#pragma once

#include <algorithm>

#include "core/kube/object.h"

namespace wavetank::pilot {

// Every label of `selector` is there; an empty one selects all. O(both).
inline bool Selects(const kube::Labels& selector, const kube::Labels& labels) {
  return std::includes(labels.begin(), labels.end(), selector.begin(), selector.end());
}

}  // namespace wavetank::pilot
