// From a scenario to what a world is made of and what is done to it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scenarios/scenario.h"
#include "sim/world.h"

namespace wavetank::scenario {

// The manifests of one cluster, read and selected; what names no namespace has the spec's or "default". `notes`: see
// CheckManifest().
absl::StatusOr<std::vector<nlohmann::json>> LoadClusterManifests(const ClusterSpec& cluster,
                                                                 std::vector<std::string>* notes);

sim::WorldOptions MakeWorldOptions(const Scenario& scenario);

// How a mesh is installed, in the order of Istio's guides. Between two phases the world settles:
// 1. namespaces, CA Secrets and the control plane; 2. remote Secrets and gateways; 3. everything else.
struct StartPhases {
  std::vector<sim::Input> phases[3];
  std::vector<std::string> notes;  // on its manifests and those of its steps
};
// InvalidArgument also for a step that CheckSteps() refuses.
absl::StatusOr<StartPhases> MakeStart(const Scenario& scenario);

// What one action of a step does to the world. InvalidArgument names what is wrong with its manifest; `notes`
// as above.
absl::StatusOr<std::vector<sim::Input>> MakeInputs(const Scenario& scenario, const Action& action,
                                                   std::vector<std::string>* notes);

// The manifests that the steps bring, looked at before the first of them is done: a typo in the last costs no waiting.
absl::Status CheckSteps(const Scenario& scenario, std::vector<std::string>* notes);

// `id` names this run of the flow, for the results.
sim::Input MakeTraffic(const FlowSpec& flow, const Traffic& traffic, const std::string& id);

}  // namespace wavetank::scenario
