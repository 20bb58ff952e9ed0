// Runs golden cases with proxies that stay connected, and compares what istiod pushes, to which proxy and when, with
// what was recorded (docs/golden-pushes.md).
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/profile/profile.h"
#include "nlohmann/json.hpp"

namespace wavetank::golden {

struct PushOptions {
  bool delta = false;
  pilot::Profile profile;
};

// One recorded file.
struct PushFileResult {
  size_t step = 0;   // from 1
  std::string file;  // "server" or a proxy
  bool equal = false;
  nlohmann::json expected, actual;  // null: no such file, nothing happened
};

struct PushCaseResult {
  std::string name;
  absl::Status status;  // the case could not be run
  std::vector<PushFileResult> files;
  bool AllEqual() const;
};

// `case_directory` holds the case, `recorded` its recording (push/NAME or push-delta/NAME). Proxies that the recording
// never mentions were left out of it and are not compared.
PushCaseResult RunPushCase(const std::string& case_directory, const std::string& recorded, const PushOptions& options);

// Every recording in `golden`/push or push-delta whose name matches `glob`. NotFound if there is none.
absl::StatusOr<std::vector<PushCaseResult>> RunPushCases(const std::string& golden, const std::string& glob,
                                                         const PushOptions& options);

// Writes what happened into `recorded`, in the form of the recordings: for cases of our own, to be read before they are
// kept. What stood there goes.
absl::Status WritePushes(const PushCaseResult& result, const std::string& recorded);

// Each differing file, expected and actual entry by entry.
std::string PushDifferencesText(const PushCaseResult& result);

}  // namespace wavetank::golden
