#include "cli/tables/filters.h"

#include "absl/strings/match.h"

namespace wavetank::cli::tables {

bool SameLetters(const std::string& a, const std::string& b) { return absl::EqualsIgnoreCase(a, b); }

}  // namespace wavetank::cli::tables
