#include <fmt/format.h>

#include <set>

#include "scenarios/expectations/expectation.h"
#include "scenarios/results/statistics.h"

namespace wavetank::scenario {
namespace {

ExpectationResult JudgeSplit(const Expectation& e, const TrafficResult& sum) {
  ExpectationResult r;
  const auto& counts = e.by == "version" ? sum.by_version : e.by == "cluster" ? sum.by_cluster : sum.by_pod;
  std::vector<int64_t> observed;
  std::vector<double> shares;
  std::string found;
  int64_t total = 0;
  for (const auto& [name, count] : counts) total += count;
  std::set<std::string> names;
  for (const auto& [name, share] : e.shares_ppm) names.insert(name);
  for (const auto& [name, count] : counts) names.insert(name);
  for (const std::string& name : names) {
    const auto count = counts.find(name);
    const auto share = e.shares_ppm.find(name);
    observed.push_back(count == counts.end() ? 0 : count->second);
    shares.push_back(share == e.shares_ppm.end() ? 0 : static_cast<double>(share->second) / 1e6);
    found += fmt::format("{}{} {} ({})", found.empty() ? "" : ", ", name.empty() ? "(unlabelled)" : name,
                         Percent(Ppm(observed.back(), total)), observed.back());
  }
  const GoodnessOfFit fit = ChiSquaredTest(observed, shares);
  const double alpha = 1 - static_cast<double>(e.confidence_ppm) / 1e6;
  r.held = fit.p_value >= alpha;
  if (total == 0) {
    r.explanation = "no request was answered";
  } else if (fit.impossible) {
    r.explanation = fmt::format("{}: an answer came whose share should be 0", found);
  } else {
    r.explanation = fmt::format("{}; chi-squared {:.2f}, p = {:.3g} {} {:.3g}", found, fit.statistic, fit.p_value,
                                r.held ? ">=" : "<", alpha);
  }
  return r;
}

void ReadSplit(const Field& f, Expectation* e) {
  e->by = f["by"].Text("version");
  e->confidence_ppm = f["confidence"].Share(e->confidence_ppm);
  if (e->confidence_ppm >= 1'000'000) f["confidence"].Fail("no test is certain", "write 99.9%");
  int64_t sum = 0;
  for (const auto& [name, share] : f["is"].Entries()) sum += e->shares_ppm[name] = share.Share(0);
  if (e->shares_ppm.empty()) f["is"].Fail("names no share", "write is: {v1: 50%, v2: 50%}");
  if (!e->shares_ppm.empty() && (sum < 999'000 || sum > 1'001'000))
    f["is"].Fail(fmt::format("shares add up to {:.1f} %", static_cast<double>(sum) / 1e4), "make them 100 %");
}

std::string DescribeSplit(const Expectation& e) {
  std::string shares;
  for (const auto& [name, share] : e.shares_ppm) {
    shares += fmt::format("{}{} {}", shares.empty() ? "" : ", ", name, Percent(share));
  }
  return fmt::format("split of {} by {}: {} ({} confidence)", FlowsOf(e), e.by, shares, Percent(e.confidence_ppm));
}

}  // namespace

void RegisterSplit(std::vector<ExpectationKind>& table) {
  table.push_back({.row = {"split", "How answers split",
                           OfTraffic({row::Choice("by", {"version", "cluster", "pod"}, ""),
                                      row::Other("is", FieldType::kShares, "Shares that add up to 100 %").Required(),
                                      row::Other("confidence", FieldType::kShare,
                                                 "Of the chi-squared test; 99.9% if left out (50% or 0.5)")})},
                   .example = "{flow: f, by: version, is: {v1: 50%, v2: 50%}, confidence: 99.9%}",
                   .what = "a chi-squared test does not refuse it; by label `version`, else "
                           "`app.kubernetes.io/version`; also `by: cluster`, `by: pod`",
                   .eventually = true,
                   .read = ReadSplit,
                   .describe = DescribeSplit,
                   .judge_traffic = JudgeSplit});
}

}  // namespace wavetank::scenario
