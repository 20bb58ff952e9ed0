// Reads scenarios. Every mistake is one error that names file, line, column and remedy.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scenarios/language/scenario.h"
#include "scenarios/language/setting.h"

namespace wavetank::scenario {

// `path` is a scenario file or a folder with a scenario.yaml. Errors name file, line and column, or what is missing.
// `mesh`: clusters that an event log brings; a scenario for them may leave its own out, and these stand in their place.
// `settings`: put in, one after the other, before anything is read; into the scenario that this one extends where the
// field is inherited. An error beside them names them.
absl::StatusOr<Scenario> LoadScenario(const std::string& path, const std::vector<ClusterSpec>& mesh = {},
                                      const std::vector<Setting>& settings = {});
absl::StatusOr<Scenario> ParseScenario(const std::string& name, const std::string& text,
                                       const std::vector<ClusterSpec>& mesh = {});

}  // namespace wavetank::scenario
