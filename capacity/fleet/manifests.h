// A fleet as a scenario: a folder that `wavetank run` runs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "capacity/fleet/fleet.h"

namespace wavetank::capacity {

// Writes scenario.yaml and a file of manifests for each cluster into `folder`, which is made. The same fleet gives the
// same bytes. FailedPrecondition: the folder holds something else. Unavailable: it cannot be written; says why.
absl::Status WriteScenario(const Fleet& fleet, const std::string& folder);

// The text of one of these files, for tests.
std::string ClusterManifests(const Fleet& fleet, int64_t cluster);
std::string ScenarioText(const Fleet& fleet);

// What of the fleet's churn the scenario does not have, a sentence each.
std::vector<std::string> LeftOut(const Fleet& fleet);

}  // namespace wavetank::capacity
