#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/status.h"
#include "scenarios/actions/action.h"
#include "scenarios/mesh/world.h"
#include "sim/inputs/kinds/network.h"
#include "sim/network/underlay.h"

namespace wavetank::scenario {
namespace {

void CheckRoute(const Field& f) {
  const bool ends = f["from"].present() && f["to"].present(), any = f["from"].present() || f["to"].present();
  if (any != ends || ends == f["between"].present())
    f.Fail("a route has two ends", "write from: and to: (one direction), or between: [one, other]");
}

Inputs InputsOfRoute(const Arguments& a, const ActionContext& context) {
  std::vector<std::pair<std::string, std::string>> ways;
  if (const std::vector<std::string> between = a.Texts("between"); between.size() == 2) {
    ways = {{between[0], between[1]}, {between[1], between[0]}};
  } else {
    ways = {{a.Text("from"), a.Text("to")}};
  }
  std::vector<sim::Input> out;
  for (const auto& [from, to] : ways) {
    // A log's own sites are known to its world alone.
    if (!context.scenario.of_log) {
      const absl::StatusOr<sim::Underlay> underlay = sim::Underlay::Create(MakeUnderlayPlan(context.scenario));
      if (!underlay.ok()) return underlay.status();
      if (const auto road = underlay->ReadRoad(from, to, a.Texts("ranges")); !road.ok()) {
        return absl::InvalidArgumentError(
            fmt::format("{}:{}: {}", context.scenario.file, a.line(), Message(road.status())));
      }
    }
    out.emplace_back(sim::inputs::SetRoute{from, to, a.Texts("ranges"), a.Text("state") == "lost"});
  }
  return out;
}

}  // namespace

void RegisterRoute(std::vector<ActionKind>& table) {
  FieldRow between = row::Other("between", FieldType::kTexts, "Two sites, in both directions");
  between.low = between.high = 2;
  table.push_back(
      {.row = {"route",
               "What one site sends to another gets lost, or no more",
               {row::Text("from", "Site; a cluster's network where no sites are named"), row::Text("to", "Site"),
                std::move(between),
                row::Other("ranges", FieldType::kTexts, "Of destinations; all addresses there if left out"),
                row::Choice("state", {"lost", "back"}, "").Required()}},
       .example = "{from: network1, to: network2, state: lost}",
       .what = "packets from one site to another are lost, answers of what the other opens among them, and connections "
               "that stand; `between` for both directions, `ranges` for a part; `back` ends it",
       .check = CheckRoute,
       .describe =
           [](const Arguments& a) {
             const std::string ends = a.Has("between")
                                          ? fmt::format("between {}", fmt::join(a.Texts("between"), " and "))
                                          : fmt::format("from {} to {}", a.Text("from"), a.Text("to"));
             return fmt::format("route {}{}{} is {}", ends, a.Has("ranges") ? " for " : "",
                                fmt::join(a.Texts("ranges"), ", "), a.Text("state"));
           },
       .inputs = InputsOfRoute});
}

}  // namespace wavetank::scenario
