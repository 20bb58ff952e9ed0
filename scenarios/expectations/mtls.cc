#include <fmt/format.h>

#include "scenarios/expectations/expectation.h"

namespace wavetank::scenario {
namespace {

ExpectationResult JudgeMtls(const Expectation& e, const TrafficResult& sum) {
  ExpectationResult r;
  r.held = true;
  const int64_t answered = sum.sent - sum.failed;
  JudgeRange(e, "verified", Ppm(sum.mtls_verified, answered),
             fmt::format("{} of {} answered requests were", sum.mtls_verified, answered), &r);
  return r;
}

}  // namespace

void RegisterMtls(std::vector<ExpectationKind>& table) {
  table.push_back(
      {.row = {"mtls", "Mutual TLS",
               OfTraffic({row::Range("verified", {Range::Unit::kShare},
                                     "Share of answered requests whose client and server verified each other")
                              .Required()})},
       .example = "{verified: 100%}",
       .what = "answered requests whose ends verified each other",
       .describe = [](const Expectation& e) { return fmt::format("mtls of {}: {}", FlowsOf(e), DescribeRanges(e)); },
       .judge_traffic = JudgeMtls});
}

}  // namespace wavetank::scenario
