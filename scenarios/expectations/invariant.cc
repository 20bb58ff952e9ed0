#include <fmt/format.h>

#include <algorithm>

#include "scenarios/expectations/expectation.h"
#include "sim/invariants/catalogue.h"
#include "sim/invariants/invariant.h"

namespace wavetank::scenario {
namespace {

ExpectationResult JudgeInvariant(const Expectation& e, const StepResult& step) {
  ExpectationResult r;
  if (std::find(step.watched.begin(), step.watched.end(), e.names.front()) == step.watched.end()) {
    r.explanation = "it was not watched";
    return r;
  }
  size_t found = 0;
  for (const sim::Violation& v : step.violations) {
    // Without `always` what counts is how the step ends.
    if (v.invariant != e.names.front() || (e.mode.empty() && v.until)) continue;
    if (++found == 1) r.explanation = fmt::format("{} {}", v.subject, v.what);
  }
  r.held = found == 0;
  if (r.held) r.explanation = "no breach was seen";
  if (found > 1) r.explanation += fmt::format("; and {} more", found - 1);
  return r;
}

void ReadInvariant(const Field& f, Expectation* e) {
  const sim::Invariant* const named = sim::FindInvariant(f.Text());
  if (named != nullptr) {
    e->names = {std::string(named->name)};
    return;
  }
  std::vector<std::string_view> all;
  for (const sim::Invariant& each : sim::Invariants()) all.push_back(each.name);
  const std::string_view near = Nearest(f.Text(), all);
  f.Fail(fmt::format("no invariant is named '{}'", f.Text()),
         near.empty() ? "`wavetank invariants` lists them" : fmt::format("did you mean {}?", near));
}

}  // namespace

void RegisterInvariant(std::vector<ExpectationKind>& table) {
  table.push_back({.row = {"invariant",
                           "An invariant (`wavetank invariants`)",
                           {row::Text("invariant", "An invariant's name or ID (`wavetank invariants`)")}},
                   .example = "no-foreign-pod-address",
                   .what = "nothing breaks it when the step ends; `wavetank invariants` lists them",
                   .always = true,
                   .scalar = true,
                   .read = ReadInvariant,
                   .describe = [](const Expectation& e) { return fmt::format("invariant {}", e.names.front()); },
                   .judge_step = JudgeInvariant});
}

}  // namespace wavetank::scenario
