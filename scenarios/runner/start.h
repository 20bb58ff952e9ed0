// How a mesh begins: the inputs that install it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scenarios/language/scenario.h"
#include "sim/inputs/input.h"

namespace wavetank::scenario {

// In the order of Istio's guides. Between two phases the world settles:
// 1. namespaces, CA Secrets and the control plane; 2. remote Secrets and gateways; 3. everything else.
struct StartPhases {
  std::vector<sim::Input> phases[3];
  std::vector<std::string> notes;  // on its manifests and those of its steps
};
// Errors are those of manifests (scenarios/mesh/manifests.h), of the steps' too.
absl::StatusOr<StartPhases> MakeStart(const Scenario& scenario);

// The manifests that the steps bring, looked at before the first of them is done: a typo in the last costs no waiting.
absl::Status CheckSteps(const Scenario& scenario, std::vector<std::string>* notes);

}  // namespace wavetank::scenario
