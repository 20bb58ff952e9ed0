#include <filesystem>

#include "core/base/json_text.h"
#include "reports/page.h"
#include "reports/report.h"

namespace wavetank::report {

absl::Status WriteReports(const std::string& directory, const scenario::RunResult& result,
                          const nlohmann::ordered_json& findings) {
  if (absl::Status status = MakeFolder(directory); !status.ok()) return status;
  const std::filesystem::path folder(directory);
  // All texts first: a failure while making one leaves nothing behind.
  const std::string html = ReportHtml(result, findings), json = JsonText(ResultsJson(result), 1) + "\n",
                    junit = JUnitXml(result), dot = TopologyDot(result);
  for (const auto& [name, text] : {std::pair<const char*, const std::string&>{"report.html", html},
                                   {"results.json", json},
                                   {"junit.xml", junit},
                                   {"topology.dot", dot}}) {
    if (absl::Status status = WriteWhole((folder / name).string(), text); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace wavetank::report
