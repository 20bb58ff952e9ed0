#include <fmt/format.h>

#include "scenarios/reader/mappings.h"
#include "scenarios/reader/parts.h"

namespace wavetank::scenario {

Incident ReadIncident(const Field& f) {
  CheckMapping(f, MappingNamed("incident"), nullptr);
  Incident out;
  for (const Field& issue : f["issues"].Items()) {
    out.issues.push_back(issue.Text());
    if (!out.issues.back().starts_with("https://")) issue.Fail("is no address", "write https://...");
  }
  out.reported = f["reported"].Text();
  out.symptom = f["symptom"].Text();
  out.cause = f["cause"].Text();
  out.see = f["see"].Text();
  out.remark = f["remark"].Text();
  for (const auto& [profile, verdict] : f["verdicts"].Entries()) {
    if (verdict.Text() != "shown" && verdict.Text() != "not shown")
      verdict.Fail(fmt::format("'{}' is no verdict", verdict.Text()), "write shown, or not shown");
    out.shown[profile] = verdict.Text() == "shown";
  }
  return out;
}

}  // namespace wavetank::scenario
