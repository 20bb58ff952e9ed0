#include <string>

#include "reports/assets.h"
#include "reports/page.h"
#include "reports/report.h"

namespace wavetank::report {

std::string ReportHtml(const scenario::RunResult& result) {
  return PageHtml(result.scenario, assets::ReportJs(), ResultsJson(result));
}

}  // namespace wavetank::report
