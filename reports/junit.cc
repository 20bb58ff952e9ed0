#include <fmt/format.h>

#include "reports/report.h"

namespace wavetank::report {
namespace {

std::string Escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // XML 1.0 has no other control characters, not even escaped.
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') out += c;
    }
  }
  return out;
}

}  // namespace

std::string JUnitXml(const scenario::RunResult& result) {
  std::string cases;
  size_t tests = 0, failures = 0;
  for (const auto& step : result.steps) {
    for (const auto& e : step.expectations) {
      ++tests;
      cases += fmt::format("    <testcase classname=\"{}\" name=\"{}: {}\" time=\"{:.6f}\"", Escape(result.scenario),
                           Escape(step.name), Escape(e.text), ToMillis(step.end - step.start) / 1e3);
      if (e.held || (e.symptom && result.Passed())) {
        cases += "/>\n";
        continue;
      }
      ++failures;
      cases += fmt::format(">\n      <failure message=\"{}\">{}:{}\nseed {}, digest {}</failure>\n    </testcase>\n",
                           Escape(e.explanation), Escape(result.file), e.line, result.seed, result.digest);
    }
  }
  for (const std::string& name : result.invariants) {
    ++tests;
    std::string broken;
    for (const sim::Violation& v : result.violations) {
      if (v.invariant == name && v.known.empty() && broken.empty()) broken = v.subject + " " + v.what;
    }
    cases += fmt::format("    <testcase classname=\"{}\" name=\"invariant {}\"", Escape(result.scenario), name);
    failures += broken.empty() ? 0 : 1;
    cases += broken.empty()
                 ? "/>\n"
                 : fmt::format(">\n      <failure message=\"{}\">seed {}, digest {}</failure>\n    </testcase>\n",
                               Escape(broken), result.seed, result.digest);
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" "
      "time=\"{:.6f}\">\n{}  </testsuite>\n</testsuites>\n",
      Escape(result.scenario), tests, failures, ToMillis(result.end.time_since_epoch()) / 1e3, cases);
}

}  // namespace wavetank::report
