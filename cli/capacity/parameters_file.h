// The cost model that a verb was told to use.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "capacity/model/parameters.h"

namespace wavetank::cli {

// Of istiod 1.18.2 if `path` is empty. NotFound, InvalidArgument: names file, line and remedy.
absl::StatusOr<capacity::Parameters> ReadParameters(const std::string& path);

}  // namespace wavetank::cli
