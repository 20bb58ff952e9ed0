// Runs golden cases and compares what istiod makes of them with what was recorded.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/profile/profile.h"
#include "nlohmann/json.hpp"
#include "replay/golden/compare.h"

namespace wavetank::golden {

struct RunOptions {
  std::set<std::string> kinds;  // empty: all
  pilot::Profile profile;
  size_t max_differences = 20;  // per file
  bool unified_diff = false;
};

struct FileResult {
  size_t step = 0;
  std::string proxy, kind;
  bool equal = false;
  std::vector<Difference> differences;
  std::string unified_diff;
};

struct CaseResult {
  std::string name;
  absl::Status status;  // the case could not be run, or stopped in the middle
  std::vector<FileResult> files;
  bool AllEqual() const;
};

CaseResult RunCase(const std::string& directory, const RunOptions& options);

// Files compared, equal and different per kind; in order of `kKinds`.
struct Tally {
  size_t compared = 0, equal = 0, cases = 0, cases_equal = 0;
};
std::map<std::string, Tally> TallyByKind(const std::vector<CaseResult>& results);

std::string TallyTable(const std::vector<CaseResult>& results);
// Each difference of a case in a line: step, proxy, file, resource and field path, both values.
std::string DifferencesText(const CaseResult& result);
nlohmann::json ToJson(const std::vector<CaseResult>& results);

}  // namespace wavetank::golden
