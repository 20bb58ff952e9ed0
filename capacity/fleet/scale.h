// A fleet, larger or smaller.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "capacity/fleet/fleet.h"

namespace wavetank::capacity {

// Services, proxies and nodes of each cluster `times` as many, at least one; what changes, as often as before.
Fleet Scaled(Fleet fleet, double times);

// The same, and each Service, pod and node changes as often as before: there is as much more churn. Clusters, and with
// them remote Secrets and istiods, stay as many.
Fleet ScaledWithChurn(const Fleet& fleet, double times);

// "10x", "0.5x", "3". InvalidArgument: none, or not between 0.001 and 10,000.
absl::StatusOr<double> ParseScale(std::string_view text);

}  // namespace wavetank::capacity
