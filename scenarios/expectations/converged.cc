#include <fmt/format.h>

#include "core/base/duration.h"
#include "scenarios/expectations/expectation.h"

namespace wavetank::scenario {
namespace {

ExpectationResult JudgeConverged(const Expectation& e, const StepResult& step) {
  ExpectationResult r;
  r.held = true;
  const Convergence& convergence = step.convergence;
  JudgeRange(e, "within", convergence.Total().count(), "took " + FormatDuration(convergence.Total()), &r);
  JudgeRange(e, "proxies", static_cast<int64_t>(convergence.proxies.size()), std::to_string(convergence.proxies.size()),
             &r);
  if (e.ranges.contains("within") && !convergence.proxies.empty())
    r.explanation += fmt::format("; last was {}", convergence.proxies.front().proxy);
  return r;
}

}  // namespace

void RegisterConverged(std::vector<ExpectationKind>& table) {
  using enum Range::Unit;
  table.push_back({.row = {"converged",
                           "Convergence of the step",
                           {row::Range("within", {kDuration}, "Event to the last proxy's configuration in force"),
                            row::Range("proxies", {kCount}, "Proxies that were sent anything")}},
                   .example = "{within: <= 500ms, proxies: 8}",
                   .what = "event to the last proxy's configuration in force; proxies that were sent anything",
                   .read =
                       [](const Field& f, Expectation* e) {
                         if (e->ranges.empty()) f.Fail("names no quantity", "write within: <= 500ms");
                       },
                   .describe = [](const Expectation& e) { return fmt::format("converged: {}", DescribeRanges(e)); },
                   .judge_step = JudgeConverged});
}

}  // namespace wavetank::scenario
