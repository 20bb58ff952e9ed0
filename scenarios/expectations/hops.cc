#include <fmt/format.h>

#include "scenarios/expectations/expectation.h"

namespace wavetank::scenario {
namespace {

ExpectationResult JudgeHops(const Expectation& e, const TrafficResult& sum) {
  ExpectationResult r;
  r.held = true;
  const auto judge = [&](const std::string& name, const std::map<int, int64_t>& hops) {
    const auto range = e.ranges.find(name);
    if (range == e.ranges.end()) return;
    int64_t outside = 0, all = 0;
    for (const auto& [count, requests] : hops) {
      all += requests;
      if (!range->second.Holds(count)) outside += requests;
    }
    r.held = r.held && outside == 0;
    r.explanation +=
        fmt::format("{}{} of {} requests answered {} passed {} gateways", r.explanation.empty() ? "" : "; ",
                    all - outside, all, name == "remote" ? "from the other side" : "at home", range->second.text);
  };
  if (sum.sent == sum.failed) {
    r.held = false;
    r.explanation = "no request was answered";
    return r;
  }
  judge("remote", sum.remote_hops);
  judge("local", sum.local_hops);
  if (!e.sni.empty()) {
    std::string others;
    int64_t right = 0;
    for (const auto& [sni, count] : sum.gateway_snis) {
      if (sni == e.sni) {
        right = count;
      } else {
        others += fmt::format(" {} with SNI {}", count, sni);
      }
    }
    r.held = r.held && others.empty() && (right > 0 || sum.remote == 0);
    r.explanation += fmt::format("{}{} with SNI {}{}", r.explanation.empty() ? "" : "; ", right, e.sni,
                                 others.empty() ? "" : ", but" + others);
  }
  return r;
}

}  // namespace

void RegisterHops(std::vector<ExpectationKind>& table) {
  using enum Range::Unit;
  table.push_back({.row = {"hops", "Gateways on the way",
                           OfTraffic({row::Range("remote", {kCount},
                                                 "Gateways passed by a request that was answered from the other side"),
                                      row::Range("local", {kCount}, "Gateways passed by one answered at home"),
                                      row::Text("sni", "SNI at every gateway")})},
                   .example = "{remote: 1, local: 0, sni: outbound_.5000_._.helloworld.sample.svc.cluster.local}",
                   .what = "gateways passed by answers from the other side, from home; the SNI at each",
                   .read =
                       [](const Field& f, Expectation* e) {
                         e->sni = f["sni"].Text();
                         if (e->ranges.empty() && e->sni.empty()) f.Fail("names no quantity", "write remote: 1");
                       },
                   .describe =
                       [](const Expectation& e) {
                         return fmt::format("hops of {}: {}{}", FlowsOf(e), DescribeRanges(e),
                                            e.sni.empty() ? "" : ", SNI " + e.sni);
                       },
                   .judge_traffic = JudgeHops});
}

}  // namespace wavetank::scenario
