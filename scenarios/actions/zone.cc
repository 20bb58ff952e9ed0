#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "scenarios/actions/action.h"
#include "sim/inputs/kinds/nodes.h"

namespace wavetank::scenario {
namespace {

// The scenario's own nodes of that zone.
Inputs InputsOfZone(const Arguments& a, const ActionContext& context) {
  std::vector<sim::Input> out;
  std::set<std::string> zones;
  const std::string zone = a.Text("zone");
  for (const ClusterSpec& cluster : context.scenario.clusters) {
    if (a.Has("cluster") && cluster.name != a.Text("cluster")) continue;
    for (const NodeSpec& node : cluster.nodes) {
      if (!node.zone.empty()) zones.insert(node.zone);
      if (node.zone == zone) out.emplace_back(sim::inputs::SetNode{cluster.name, node.name, a.Text("state") == "lost"});
    }
  }
  if (!out.empty()) return out;
  return absl::InvalidArgumentError(fmt::format("{}:{}: zone: no node is in zone '{}'; there are {}",
                                                context.scenario.file, a.line(), zone, fmt::join(zones, ", ")));
}

}  // namespace

void RegisterZone(std::vector<ActionKind>& table) {
  table.push_back({.row = {"zone",
                           "All nodes of a zone go, or are back",
                           {row::Cluster("cluster", "Cluster; every one if left out"),
                            row::Text("zone", "topology.kubernetes.io/zone").Required(),
                            row::Choice("state", {"lost", "back"}, "").Required()}},
                   .example = "{zone: zone1, state: lost}",
                   .what = "as `node`, for each of the scenario's nodes in that zone, of one cluster or of all",
                   .describe =
                       [](const Arguments& a) {
                         return fmt::format("zone {}{} is {}", a.Text("zone"),
                                            a.Has("cluster") ? " of " + a.Text("cluster") : "", a.Text("state"));
                       },
                   .inputs = InputsOfZone});
}

}  // namespace wavetank::scenario
