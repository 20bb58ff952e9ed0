// Files that verbs read whole.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace wavetank::cli {

// All bytes of a file. NotFound: it is a folder, or cannot be read; names it.
absl::StatusOr<std::string> ReadFile(const std::string& path);

}  // namespace wavetank::cli
