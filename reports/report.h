// A run's result as a page, as files for machines, and as tables for a terminal.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "scenarios/results/result.h"

namespace wavetank::report {

nlohmann::ordered_json ResultsJson(const scenario::RunResult& result);
std::string JUnitXml(const scenario::RunResult& result);
std::string TopologyDot(const scenario::RunResult& result);
// One self-contained page: no file beside it, nothing loaded from a network. `findings`: what `check` knows of its
// errors, a list of {step, code, name, cluster, object, message, remedy, before} (docs/check.md).
std::string ReportHtml(const scenario::RunResult& result,
                       const nlohmann::ordered_json& findings = nlohmann::ordered_json::array());

struct TerminalOptions {
  bool colour = false;
  bool verbose = false;  // one row per proxy and stage
};
std::string TerminalTables(const scenario::RunResult& result, const TerminalOptions& options);

// report.html, results.json, junit.xml and topology.dot. Each is written beside its name first and renamed when whole,
// so that a failed run leaves no half of a file. Unavailable names the file that cannot be written.
absl::Status WriteReports(const std::string& directory, const scenario::RunResult& result,
                          const nlohmann::ordered_json& findings = nlohmann::ordered_json::array());

}  // namespace wavetank::report
