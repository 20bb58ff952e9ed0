// Many fleets, or many runs of a scenario, that differ in some settings, each in a process of its own: `wavetank
// sweep`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "capacity/plan/evaluate.h"
#include "nlohmann/json.hpp"
#include "scenarios/language/setting.h"

namespace wavetank::capacity {

// A setting by its path in the fleet's YAML ("istiod.debounceAfter") or the scenario's
// ("timing.istiod.debounce_after"), or of a fleet "churn" for how many times as fast all churn is.
struct SweepSetting {
  std::string path;
  std::vector<std::string> values;
};

// A column of a scenario's table besides those that all have: something of the results, or of the istiods' metrics at
// the run's end.
struct SweepColumn {
  std::string name;
  std::string result;                         // a path in a run of docs/results.schema.json; or else
  std::string metric;                         // a series by its name
  std::map<std::string, std::string> labels;  // that it has
  std::optional<double> quantile;             // of a histogram
  // What is made of several values; empty: of results an error, of metrics their sum.
  std::string take;
  std::string otherwise;  // where there is nothing
};

struct Sweep {
  std::string fleet_path;
  nlohmann::json fleet;
  std::string scenario_path;  // instead of a fleet
  std::string until;          // of its runs, as `run --until` takes it; empty: to their end
  std::vector<SweepColumn> columns;
  std::vector<std::string> objectives;  // columns in which less is better
  std::vector<SweepSetting> settings;
  enum class Sample { kGrid, kRandom, kSobol } sample = Sample::kGrid;
  int64_t points = 0;  // kRandom, kSobol
  int64_t seeds = 1;
  uint64_t seed = 1;  // of the sample

  bool of_scenario() const { return !scenario_path.empty(); }
};

// Errors name file, line, column and remedy. NotFound: the fleet or the scenario is not there.
absl::StatusOr<Sweep> LoadSweep(const std::string& path);

// One row of the table: a function of its text alone, or of a scenario and the files that it names.
struct SweepTask {
  std::vector<std::string> values;  // of each setting
  std::string fleet;                // its YAML
  double faster = 1;
  std::vector<scenario::Setting> settings;  // of a scenario
  int64_t seed = 0;                         // of a fleet's churn, or the scenario's own
  std::string key;                          // of all that its result depends on
};

// `program`: what tells builds apart, since a run of a scenario is what this very program makes of it.
// InvalidArgument: a setting or a value that the fleet or the scenario does not take; says which.
absl::StatusOr<std::vector<SweepTask>> TasksOf(const Sweep& sweep, const Parameters& parameters,
                                               std::string_view program);

// A value for each column, in the columns' order; the last is the error, empty if there is none.
using SweepRow = std::vector<std::string>;
std::vector<std::string> ResultColumns(const Sweep& sweep);
SweepRow RunTask(const Sweep& sweep, const SweepTask& task, const CostModel& model);
SweepRow FailedRow(const Sweep& sweep, const std::string& why);

// What results of fleets are judged by.
const std::vector<std::string>& FleetObjectives();

}  // namespace wavetank::capacity
