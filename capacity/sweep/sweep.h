// Many fleets that differ in some settings, each evaluated in a process of its own: `wavetank sweep`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "capacity/plan/evaluate.h"
#include "nlohmann/json.hpp"

namespace wavetank::capacity {

// A setting by its path in the fleet's YAML ("istiod.debounceAfter"), or "churn" for how many times as fast all churn
// is.
struct SweepSetting {
  std::string path;
  std::vector<std::string> values;
};

struct Sweep {
  std::string fleet_path;
  nlohmann::json fleet;
  std::vector<SweepSetting> settings;
  enum class Sample { kGrid, kRandom, kSobol } sample = Sample::kGrid;
  int64_t points = 0;  // kRandom, kSobol
  int64_t seeds = 1;
  uint64_t seed = 1;  // of the sample
};

// Errors name file, line, column and remedy. NotFound: the fleet is not there.
absl::StatusOr<Sweep> LoadSweep(const std::string& path);

// One row of the table: a function of its text alone.
struct SweepTask {
  std::vector<std::string> values;  // of each setting
  std::string fleet;                // its YAML
  double faster = 1;
  int64_t seed = 0;
  std::string key;  // of all that its result depends on: fleet, seed, parameters, version of results
};

// InvalidArgument: a setting or a value that the fleet does not take; says which.
absl::StatusOr<std::vector<SweepTask>> TasksOf(const Sweep& sweep, const Parameters& parameters);

// A value for each column, in the columns' order; the last is the error, empty if there is none.
std::vector<std::string> ResultColumns();
std::vector<std::string> RunTask(const SweepTask& task, const CostModel& model);
std::vector<std::string> FailedRow(const std::string& why);

}  // namespace wavetank::capacity
