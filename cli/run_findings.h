// What `check` finds of the mesh behind a run's errors, with remedies: for the report's page, as `why` has it for a
// log.
#pragma once

#include <string>

#include "nlohmann/json.hpp"
#include "scenarios/results/result.h"

namespace wavetank::cli {

// The log that findings are read from: the one that the run writes anyway, or one in a folder of its own that is gone
// at the end.
class LogForFindings {
 public:
  // `wanted`: a report is written. `log` stays empty if nothing needs one.
  LogForFindings(bool wanted, std::string* log);
  ~LogForFindings();
  LogForFindings(const LogForFindings&) = delete;
  LogForFindings& operator=(const LogForFindings&) = delete;

 private:
  std::string own_;  // a folder
};

// [{step, code, name, cluster, object, message, remedy, before}], of the steps in which requests failed or were
// retried: of each what the last input before its first failure did, and what was there before. Steps beyond the first
// `kStepsWithFindings` are left out. Empty where nothing failed, or the log cannot be read.
inline constexpr size_t kStepsWithFindings = 8;
nlohmann::ordered_json FindingsBehind(const scenario::RunResult& result, const std::string& log);

}  // namespace wavetank::cli
