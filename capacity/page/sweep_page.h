// A sweep's table as a page: Pareto fronts, what each setting does, the best rows by name, what failed.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "capacity/sweep/table.h"

namespace wavetank::capacity {

// One self-contained page. FailedPrecondition: no row of `table`, which was read from `path`, has a result.
absl::StatusOr<std::string> SweepPage(const std::string& path, const SweepTable& table);

}  // namespace wavetank::capacity
