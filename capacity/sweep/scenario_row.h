// A scenario's run as a row of a sweep's table.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "capacity/sweep/sweep.h"

namespace wavetank::scenario {
struct Scenario;
}

namespace wavetank::capacity {

// Those that every scenario's table has, then the sweep's own.
std::vector<std::string> ScenarioColumns(const Sweep& sweep);

// The scenario with these settings, as far as can be told without running it. InvalidArgument names what is wrong.
absl::StatusOr<scenario::Scenario> SweptScenario(const Sweep& sweep, const std::vector<scenario::Setting>& settings);
// And its manifests, which takes as long as applying them does.
absl::Status CheckManifestsOf(const scenario::Scenario& scenario);

// The files that it is made of, each once: their bytes are what its runs depend on.
std::vector<std::string> FilesOf(const scenario::Scenario& scenario);

// The row's cells but for the error. InvalidArgument: the run ended early, or a column has several values and does not
// say what to take of them.
absl::StatusOr<SweepRow> RunScenario(const Sweep& sweep, const SweepTask& task);

}  // namespace wavetank::capacity
