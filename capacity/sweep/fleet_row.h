// A fleet's evaluation as a row of a sweep's table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "capacity/sweep/sweep.h"

namespace wavetank::capacity {

// Results of another version of the evaluation are not this one's.
inline constexpr std::string_view kFleetResults = "1";

// But for the error.
std::vector<std::string> FleetColumns();

// Into `sweep`, from its fleet_path. `path`: the sweep's, for messages. NotFound, or InvalidArgument with the place.
absl::Status ReadFleet(const std::string& path, Sweep* sweep);
// With the fleet that the task's values make. InvalidArgument: there is none such.
absl::StatusOr<SweepTask> FleetTask(const Sweep& sweep, SweepTask task);
// The row's cells but for the error.
absl::StatusOr<SweepRow> RunFleet(const SweepTask& task, const CostModel& model);

}  // namespace wavetank::capacity
