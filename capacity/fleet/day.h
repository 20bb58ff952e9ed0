// Autoscaling by a curve over the day: when each Service has another pod, or one less.
#pragma once

#include <cstdint>
#include <vector>

#include "capacity/fleet/fleet.h"

namespace wavetank::capacity {

struct Resize {
  Duration at{};
  size_t service = 0;  // index into the endpoints that were given
  int64_t from = 0, to = 0;
};

// Share of its pods that each Service has at that time of the fleet, in millionths; the fleet's curve is no empty one.
int64_t LoadAt(const ChurnSpec& churn, Duration at);
// The nearest whole number of pods, one at least (an autoscaler's minReplicas); without a curve all of them.
int64_t PodsAt(const ChurnSpec& churn, int64_t endpoints, Duration at);
// In the order of time. The horizontal pod autoscaler looks each 15 s (its default), at each Service at another moment.
std::vector<Resize> ResizesOfDay(const Fleet& fleet, const std::vector<int64_t>& endpoints);

}  // namespace wavetank::capacity
