#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/actions/action.h"
#include "sim/inputs/kinds/network.h"

namespace wavetank::scenario {
namespace {

Inputs InputsOfLink(const Arguments& a, const ActionContext&) {
  sim::inputs::SetLink link;
  link.between = a.Texts("between");
  if (const std::string state = a.Text("state", "changed"); state != "changed") link.cut = state == "cut";
  link.latency = a.Time("latency");
  link.jitter = a.Time("jitter");
  link.loss_ppm = a.Share("loss");
  return std::vector<sim::Input>{std::move(link)};
}

}  // namespace

void RegisterLink(std::vector<ActionKind>& table) {
  FieldRow between =
      row::Other("between", FieldType::kClusters, "Two clusters, or one twice for the inside of its site");
  between.low = between.high = 2;
  table.push_back({.row = {"link",
                           "Cut, heal or change a line",
                           {std::move(between).Required(), row::Choice("state", {"cut", "healed", "changed"}, ""),
                            row::Other("latency", FieldType::kDuration, "One way"),
                            row::Other("jitter", FieldType::kDuration, "Added, uniform"),
                            row::Other("loss", FieldType::kShare, "Lost segments (50% or 0.5)")}},
                   .example = "{between: [c1, c2], state: cut}",
                   .what = "also `healed`; without state: new `latency`, `jitter`, `loss`",
                   .describe =
                       [](const Arguments& a) {
                         return fmt::format("link of {} {}", fmt::join(a.Texts("between"), " and "),
                                            a.Text("state", "changed"));
                       },
                   .inputs = InputsOfLink});
}

}  // namespace wavetank::scenario
