#include <fmt/format.h>

#include <algorithm>

#include "scenarios/expectations/expectation.h"

namespace wavetank::scenario {
namespace {

constexpr size_t kNacksNamed = 3;

bool Concerns(const Expectation& e, const Nack& nack) {
  return (e.type.empty() || e.type == nack.type) && nack.text.find(e.says) != std::string::npos;
}

ExpectationResult JudgeThese(const std::vector<Nack>& nacks, const Range& range) {
  ExpectationResult r;
  int64_t count = 0;
  std::string told;
  for (size_t i = 0; i < nacks.size(); ++i) {
    count += nacks[i].count;
    if (i >= kNacksNamed) continue;
    told += fmt::format("; {} refused {}: {}", nacks[i].proxy, nacks[i].type, nacks[i].text);
  }
  if (nacks.size() > kNacksNamed) told += fmt::format("; and {} more", nacks.size() - kNacksNamed);
  r.held = range.Holds(count);
  r.explanation = (count == 1 ? "1 response was refused" : fmt::format("{} responses were refused", count)) + told;
  return r;
}

ExpectationResult JudgeNacks(const Expectation& e, const StepResult& step) {
  std::vector<Nack> concerned;
  std::copy_if(step.nacks.begin(), step.nacks.end(), std::back_inserter(concerned),
               [&](const Nack& nack) { return Concerns(e, nack); });
  const auto range = e.ranges.find("count");
  return JudgeThese(concerned, range == e.ranges.end() ? Range{} : range->second);
}

}  // namespace

std::optional<ExpectationResult> UnexpectedNacks(const std::vector<Expectation>& expectations, const StepResult& step) {
  std::vector<Nack> unexpected;
  for (const Nack& nack : step.nacks) {
    const bool named = std::any_of(expectations.begin(), expectations.end(),
                                   [&](const Expectation& e) { return e.kind == "nacks" && Concerns(e, nack); });
    if (!named) unexpected.push_back(nack);
  }
  if (unexpected.empty()) return std::nullopt;
  ExpectationResult r = JudgeThese(unexpected, {.low = 0, .high = 0});
  r.text = "nacks: 0 (expected of every step)";
  return r;
}

void RegisterNacks(std::vector<ExpectationKind>& table) {
  table.push_back(
      {.row = {.name = "nacks",
               .meaning = "Responses that Envoys refused; 0 is expected of every step that says nothing else",
               .fields = {row::Range("count", {Range::Unit::kCount}, "How many; `any` allows them"),
                          row::Choice("type", {"CDS", "EDS", "LDS", "RDS", "SDS"}, "Of responses of this type alone"),
                          row::Text("says", "Part of Envoy's words; those that say otherwise are not concerned")},
               .bare = "count"},
       .example = "1",
       .what = "responses that Envoys refused since the step before had ended; also `any`, or `{count: 1, type: LDS, "
               "says: terminal filter}`",
       .read =
           [](const Field& f, Expectation* e) {
             e->type = f["type"].Text();
             e->says = f["says"].Text();
             if (e->ranges.empty()) f.Fail("names no quantity", "write nacks: 0, or nacks: any");
           },
       .describe =
           [](const Expectation& e) {
             return fmt::format("nacks: {}{}{}", DescribeRanges(e), e.type.empty() ? "" : " of " + e.type,
                                e.says.empty() ? "" : fmt::format(" that say '{}'", e.says));
           },
       .judge_step = JudgeNacks});
}

}  // namespace wavetank::scenario
