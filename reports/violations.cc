#include "reports/violations.h"

#include <algorithm>

#include "core/base/duration.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::report {

std::string ViolationsText(const std::vector<sim::Violation>& violations, Time beginning) {
  if (violations.empty()) return "no invariant was broken\n";
  std::string out;
  for (const sim::Violation& v : violations) {
    out += fmt::format("{} {}: {} {}; {}{}{}\n", FormatDuration(v.at - beginning), v.invariant, v.subject, v.what,
                       v.until ? "until " + FormatDuration(*v.until - beginning) : "still so at the end",
                       v.inputs.empty() ? "" : fmt::format("; because of input {}", fmt::join(v.inputs, ", ")),
                       v.known.empty() ? "" : "; known: " + v.known);
  }
  return out;
}

nlohmann::ordered_json ViolationsJson(const std::vector<sim::Violation>& violations, Time beginning) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const sim::Violation& v : violations) {
    out.push_back({{"invariant", v.invariant},
                   {"subject", v.subject},
                   {"what", v.what},
                   {"known", v.known},
                   {"inputs", v.inputs},
                   {"atNs", (v.at - beginning).count()}});
    if (v.until) out.back()["untilNs"] = (*v.until - beginning).count();
  }
  return out;
}

bool AnySurprise(const std::vector<sim::Violation>& violations) {
  return std::any_of(violations.begin(), violations.end(), [](const auto& v) { return v.known.empty(); });
}

}  // namespace wavetank::report
