#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenarios/expectations/expectation.h"

namespace wavetank::scenario {
namespace {

ExpectationResult JudgeCodes(const Expectation& e, const TrafficResult& sum) {
  ExpectationResult r;
  r.held = true;
  int64_t counted = 0;
  for (const auto& [code, count] : sum.by_code) {
    const std::string name = code == 0 ? "none" : std::to_string(code);
    r.explanation += fmt::format("{}{} with {}", r.explanation.empty() ? "" : ", ", count, name);
    if (code == e.port) counted = count;
    r.held = r.held && (e.names.empty() || std::find(e.names.begin(), e.names.end(), name) != e.names.end());
  }
  const auto range = e.ranges.find("count");
  if (range == e.ranges.end()) return r;
  const bool share = range->second.unit == Range::Unit::kShare;
  r.held = r.held && range->second.Holds(share ? Ppm(counted, sum.sent) : counted);
  return r;
}

void ReadCodes(const Field& f, Expectation* e) {
  for (const Field& code : f["only"].Items()) e->names.push_back(code.Text());
  e->port = static_cast<int>(f["code"].Integer(0, 100, 599));
  if (f["code"].present() != f["count"].present())
    f.Fail("says half of a quantity", "write code: 503, count: '>= 10%'");
  if (!f["only"].present() && !f["code"].present()) f.Fail("names no code", "write only: [200], or code and count");
}

std::string DescribeCodes(const Expectation& e) {
  std::string what;
  if (!e.names.empty()) what = fmt::format("only {}", fmt::join(e.names, ", "));
  if (e.ranges.contains("count"))
    what += fmt::format("{}{} {}", what.empty() ? "" : "; ", e.port, e.ranges.at("count").text);
  return fmt::format("codes of {}: {}", FlowsOf(e), what);
}

}  // namespace

void RegisterCodes(std::vector<ExpectationKind>& table) {
  using enum Range::Unit;
  table.push_back({.row = {"codes", "Status codes of answers",
                           OfTraffic({row::Other("only", FieldType::kTexts, "Codes that may occur; `none`: no answer"),
                                      row::Integer("code", 100, 599, "A code"),
                                      row::Range("count", {kCount, kShare}, "Requests that it answered")})},
                   .example = "{only: [200, 503], code: 503, count: <= 10%}",
                   .what = "each request was answered by one of these codes; so many by that one",
                   .read = ReadCodes,
                   .describe = DescribeCodes,
                   .judge_traffic = JudgeCodes});
}

}  // namespace wavetank::scenario
