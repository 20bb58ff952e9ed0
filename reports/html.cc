#include <string>

#include "reports/assets.h"
#include "reports/page.h"
#include "reports/report.h"

namespace wavetank::report {

std::string ReportHtml(const scenario::RunResult& result, const nlohmann::ordered_json& findings) {
  nlohmann::ordered_json data = ResultsJson(result);
  data["findings"] = findings;
  return PageHtml(result.scenario, assets::ReportJs(), data);
}

}  // namespace wavetank::report
