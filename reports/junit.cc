#include <fmt/format.h>

#include "core/base/text/xml_text.h"
#include "reports/report.h"

namespace wavetank::report {
std::string JUnitXml(const scenario::RunResult& result) {
  std::string cases;
  size_t tests = 0, failures = 0;
  for (const auto& step : result.steps) {
    for (const auto& e : step.expectations) {
      ++tests;
      cases += fmt::format("    <testcase classname=\"{}\" name=\"{}: {}\" time=\"{:.6f}\"", XmlText(result.scenario),
                           XmlText(step.name), XmlText(e.text), ToMillis(step.end - step.start) / 1e3);
      if (e.held || (e.symptom && result.Passed())) {
        cases += "/>\n";
        continue;
      }
      ++failures;
      cases += fmt::format(">\n      <failure message=\"{}\">{}:{}\nseed {}, digest {}</failure>\n    </testcase>\n",
                           XmlText(e.explanation), XmlText(result.file), e.line, result.seed, result.digest);
    }
  }
  for (const std::string& name : result.invariants) {
    ++tests;
    std::string broken;
    for (const sim::Violation& v : result.violations) {
      if (v.invariant == name && v.known.empty() && broken.empty()) broken = v.subject + " " + v.what;
    }
    cases += fmt::format("    <testcase classname=\"{}\" name=\"invariant {}\"", XmlText(result.scenario), name);
    failures += broken.empty() ? 0 : 1;
    cases += broken.empty()
                 ? "/>\n"
                 : fmt::format(">\n      <failure message=\"{}\">seed {}, digest {}</failure>\n    </testcase>\n",
                               XmlText(broken), result.seed, result.digest);
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" "
      "time=\"{:.6f}\">\n{}  </testsuite>\n</testsuites>\n",
      XmlText(result.scenario), tests, failures, ToMillis(result.end.time_since_epoch()) / 1e3, cases);
}

}  // namespace wavetank::report
