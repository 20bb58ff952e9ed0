// Runs golden cases and compares what istiod makes of them with what was recorded.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/profile/profile.h"
#include "nlohmann/json.hpp"
#include "oracles/golden/compare.h"
#include "oracles/golden/push_runner.h"

namespace wavetank::golden {

struct RunOptions {
  std::set<std::string> kinds;  // empty: all
  pilot::Profile profile;
  std::string inputs;           // of cases that hold recordings alone; see InputsOf()
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
// Cases on `jobs` threads; results in order of `directories`. `progress` is called with the number of cases done.
std::vector<CaseResult> RunCases(const std::vector<std::string>& directories, const RunOptions& options, int jobs,
                                 const std::function<void(size_t)>& progress);

// A comparison of pushes as one of files; `kind`: "push" or "push-delta".
CaseResult FromPushes(const PushCaseResult& pushes, const std::string& kind, const RunOptions& options);

// Writes expect/ of a case from this program's own run, in the form of docs/golden-cases.md; they have to be
// reviewed. Nothing is written if two runs differ (Internal) or the case cannot be run.
absl::Status RecordCase(const std::string& directory, const RunOptions& options);

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
