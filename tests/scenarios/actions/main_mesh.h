// The main mesh, two primaries on two networks, with steps of a test's own.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"
#include "sim/world.h"

namespace wavetank::scenario {

// `steps`: items of the list. `nodes`: of cluster1; none: as the scenario has them.
inline absl::StatusOr<RunResult> RunOnMainMesh(const std::string& steps, const std::vector<std::string>& nodes = {},
                                               std::function<void(sim::World&)> at_end = nullptr) {
  absl::StatusOr<Scenario> scenario = LoadScenario(WAVETANK_SOURCE_DIR "/scenarios/multi-primary-multi-network");
  if (!scenario.ok()) return scenario.status();
  // The mesh's own names, so that steps can speak of them.
  const absl::StatusOr<Scenario> own = ParseScenario(
      "own.yaml",
      "name: n\nclusters: [{name: cluster1}, {name: cluster2}]\n"
      "flows:\n"
      "  - {name: from-cluster1, from: {cluster: cluster1, app: sleep}, to: \"helloworld.sample:5000\", rate: 100/s}\n"
      "  - {name: from-cluster2, from: {cluster: cluster2, app: sleep}, to: \"helloworld.sample:5000\", rate: 100/s}\n"
      "steps:\n" +
          steps);
  if (!own.ok()) return own.status();
  if (!nodes.empty()) scenario->clusters[0].nodes.clear();
  for (const std::string& node : nodes) scenario->clusters[0].nodes.push_back({node, "region1", "zone1", ""});
  scenario->steps = own->steps;
  RunOptions options;
  options.on_end = std::move(at_end);
  return Run(*scenario, options);
}

}  // namespace wavetank::scenario
