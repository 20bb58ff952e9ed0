// Reads scenarios. Every mistake is one error that names file, line, column and remedy.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scenarios/language/scenario.h"

namespace wavetank::scenario {

// `path` is a scenario file or a folder with a scenario.yaml. Errors name file, line and column, or what is missing.
// `mesh`: clusters that an event log brings; a scenario for them may leave its own out, and these stand in their place.
absl::StatusOr<Scenario> LoadScenario(const std::string& path, const std::vector<ClusterSpec>& mesh = {});
absl::StatusOr<Scenario> ParseScenario(const std::string& name, const std::string& text,
                                       const std::vector<ClusterSpec>& mesh = {});

}  // namespace wavetank::scenario
