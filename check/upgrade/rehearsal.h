// One order of an upgrade, done to a settled mesh under traffic.
#pragma once

#include <string>
#include <vector>

#include "check/traffic/flows.h"
#include "check/upgrade/attribution.h"
#include "check/upgrade/order.h"
#include "nlohmann/json.hpp"

namespace wavetank::check {

struct RehearsalOptions {
  UpgradeOrder order;
  std::string to, revision;
  int64_t rate = 50;                  // of each flow, per second
  Duration lead = 10s, linger = 10s;  // before the first step; after each has come to rest
  Duration limit = 5min;              // of a step: what has not come to rest by then is stuck
  const Attribution* attribution = nullptr;
};

// As docs/upgrade.md describes a rehearsal. The world is another afterwards. Errors: a flow or an input that the mesh
// refuses.
absl::StatusOr<nlohmann::ordered_json> Rehearse(sim::World& world, const std::vector<scenario::FlowSpec>& flows,
                                                const Held& held, const RehearsalOptions& options);

}  // namespace wavetank::check
