#include <fmt/format.h>

#include "core/base/duration.h"
#include "scenarios/expectations/expectation.h"

namespace wavetank::scenario {
namespace {

ExpectationResult JudgeRequests(const Expectation& e, const TrafficResult& sum) {
  ExpectationResult r;
  r.held = true;
  const auto judge = [&](const std::string& name, int64_t count) {
    const auto range = e.ranges.find(name);
    const bool share = range != e.ranges.end() && range->second.unit == Range::Unit::kShare;
    JudgeRange(e, name, share ? Ppm(count, sum.sent) : count, fmt::format("{} of {}", count, sum.sent), &r);
  };
  judge("failed", sum.failed);
  JudgeRange(e, "sent", sum.sent, std::to_string(sum.sent), &r);
  judge("retried", sum.retried);
  JudgeRange(e, "attempts", sum.attempts, fmt::format("{} attempts", sum.attempts), &r);
  JudgeRange(e, "clientAttempts", sum.client_attempts, fmt::format("{} attempts of clients", sum.client_attempts), &r);
  JudgeRange(e, "pods", static_cast<int64_t>(sum.by_pod.size()), fmt::format("{} pods answered", sum.by_pod.size()),
             &r);
  JudgeRange(e, "p50", sum.p50.count(), FormatDuration(sum.p50), &r);
  JudgeRange(e, "p99", sum.p99.count(), FormatDuration(sum.p99), &r);
  return r;
}

void ReadRequests(const Field& f, Expectation* e) {
  if (e->ranges.empty()) f.Fail("names no quantity", "write failed: 0");
  for (const char* const whole : {"sent", "attempts", "clientAttempts", "pods"}) {
    if (e->mode.empty() || !f[whole].present()) continue;
    f[whole].Fail("counts the requests of a whole step, of which no instant has all", "write it outside of " + e->mode);
  }
}

}  // namespace

void RegisterRequests(std::vector<ExpectationKind>& table) {
  using enum Range::Unit;
  table.push_back(
      {.row = {"requests", "What became of requests",
               OfTraffic({row::Range("failed", {kCount, kShare}, "Failed requests"),
                          row::Range("sent", {kCount}, "Sent requests"),
                          row::Range("retried", {kCount, kShare}, "Retried requests"),
                          row::Range("attempts", {kCount}, "Tries of all of them together"),
                          row::Range("clientAttempts", {kCount}, "Those of the clients, with their own retries"),
                          row::Range("pods", {kCount}, "Different pods that answered"),
                          row::Range("p50", {kDuration}, "Median latency"),
                          row::Range("p99", {kDuration}, "99th percentile of latency")})},
       .example = "{of: meanwhile, failed: 0, sent: 1000, retried: <= 3, attempts: <= 1003, pods: 4, p50: <= 10ms, "
                  "p99: <= 1s}",
       .what = "each quantity lies in its range; of a `call: backend.sample:5000` instead of flows: what applications "
               "call; `clientAttempts` counts clients' own retries",
       .always = true,
       .eventually = true,
       .read = ReadRequests,
       .describe =
           [](const Expectation& e) { return fmt::format("requests of {}: {}", FlowsOf(e), DescribeRanges(e)); },
       .judge_traffic = JudgeRequests});
}

}  // namespace wavetank::scenario
