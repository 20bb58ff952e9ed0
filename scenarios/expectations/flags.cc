#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "absl/strings/str_split.h"
#include "scenarios/expectations/expectation.h"

namespace wavetank::scenario {
namespace {

ExpectationResult JudgeFlags(const Expectation& e, const TrafficResult& sum) {
  ExpectationResult r;
  r.held = true;
  for (const auto& [flags, count] : sum.by_flags) {
    const bool none = flags == "-" || flags.empty();
    // A request can have several: each has to be one of those.
    const std::vector<std::string> each = absl::StrSplit(flags, ',');
    r.held = r.held && (none || std::all_of(each.begin(), each.end(), [&](const std::string& flag) {
                          return std::find(e.names.begin(), e.names.end(), flag) != e.names.end();
                        }));
    r.explanation += fmt::format("{}{} with {}", r.explanation.empty() ? "" : ", ", count, none ? "none" : flags);
  }
  return r;
}

void ReadFlags(const Field& f, Expectation* e) {
  for (const Field& flag : f["only"].Items()) {
    const std::vector<std::string> each = absl::StrSplit(flag.Text(), ',');
    e->names.insert(e->names.end(), each.begin(), each.end());
  }
}

}  // namespace

void RegisterFlags(std::vector<ExpectationKind>& table) {
  table.push_back(
      {.row = {"flags", "Response flags",
               OfTraffic({row::Other("only", FieldType::kTexts, "Envoy's response flags that may occur; [] for none")
                              .Required()})},
       .example = "{only: [UF, URX]}",
       .what = "each of Envoy's response flags was one of these, or there were none",
       .read = ReadFlags,
       .describe =
           [](const Expectation& e) {
             return fmt::format("flags of {}: {}", FlowsOf(e),
                                e.names.empty() ? "none" : fmt::format("only {}", fmt::join(e.names, ", ")));
           },
       .judge_traffic = JudgeFlags});
}

}  // namespace wavetank::scenario
