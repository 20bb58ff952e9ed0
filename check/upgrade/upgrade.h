// `wavetank upgrade`: what another release of Istio does to a mesh, and in which order nothing is lost.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "check/mesh/source.h"
#include "check/upgrade/order.h"
#include "nlohmann/json.hpp"

namespace wavetank::check {

struct UpgradeOptions {
  std::string from, to;  // profiles; from empty: the source's own
  std::string revision;  // of the canary; empty: of the release's name
  OrdersWanted orders;
  int64_t rate = 50;  // of each flow, per second
  size_t flow_limit = 20;
  bool attribute = true;  // false: what changes is counted, not explained
  int processes = 1;
  std::function<void(std::string_view)> progress;
};

// docs/upgrade.md describes it. This process must have one thread. InvalidArgument: about the mesh or the options.
absl::StatusOr<nlohmann::ordered_json> RehearseUpgrade(const MeshSource& source, const UpgradeOptions& options);

// Whether there is an order in which no request fails, nothing is refused and every step ends.
bool LosesNothing(const nlohmann::ordered_json& report);

std::string UpgradeText(const nlohmann::ordered_json& report);

}  // namespace wavetank::check
