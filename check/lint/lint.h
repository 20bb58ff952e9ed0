// All rules over one mesh, what is silenced in place, and what a baseline knows already.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "check/rules/rule.h"

namespace wavetank::check {

struct LintOptions {
  int64_t unix_now = 0;            // today, for certificates that files bring
  std::set<std::string> baseline;  // fingerprints of findings that are known
};

struct LintResult {
  std::vector<Finding> findings;   // by level, then code, cluster, object
  int silenced = 0;                // in place
  int known = 0;                   // by the baseline
  std::vector<std::string> notes;  // what was not looked at, and why
  // At or above `level`.
  int Count(Level level) const;
};

// InvalidArgument: a silencing comment names a code that does not exist.
absl::StatusOr<LintResult> Lint(const Mesh& mesh, const LintOptions& options);

// "info", "warning", "error"; InvalidArgument otherwise.
absl::StatusOr<Level> ParseLevel(std::string_view text);

// A baseline is a JSON list of fingerprints, as WriteBaseline writes it.
absl::StatusOr<std::set<std::string>> ReadBaseline(const std::string& path);
absl::Status WriteBaseline(const std::string& path, const LintResult& result);

}  // namespace wavetank::check
