// How many endpoints Services have, in the terms of a fleet's page.
#pragma once

#include <cstdint>
#include <vector>

#include "capacity/fleet/fleet.h"

namespace wavetank::capacity {

// `endpoints`: of each Service of so many clusters that are alike, in any order. The kind that is nearest, judged by
// each Service's count (as ranks, in proportion) and by the sum. Nothing: the default. O(n log n).
EndpointsSpec FitEndpoints(std::vector<int64_t> endpoints, size_t clusters = 1);

}  // namespace wavetank::capacity
