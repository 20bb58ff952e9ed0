#include <fmt/format.h>

#include "scenarios/actions/action.h"
#include "sim/inputs/kinds/nodes.h"

namespace wavetank::scenario {

void RegisterDrain(std::vector<ActionKind>& table) {
  table.push_back(
      {.row = {"drain",
               "Empty a node",
               {row::Cluster().Required(), row::Text("node", "A node's name").Required(),
                row::Other("timeout", FieldType::kDuration,
                           "How long to ask for what a PodDisruptionBudget keeps back; for ever if left out")}},
       .example = "{cluster: c1, node: c1-node1, timeout: 5m}",
       .what = "`kubectl drain --ignore-daemonsets`: `cordon`, and its pods are evicted; those that a "
               "PodDisruptionBudget keeps back again every 5 s",
       .describe = [](const Arguments& a) { return fmt::format("drain {} in {}", a.Text("node"), a.Text("cluster")); },
       .inputs = [](const Arguments& a, const ActionContext&) -> Inputs {
         return std::vector<sim::Input>{
             sim::inputs::DrainNode{a.Text("cluster"), a.Text("node"), a.Time("timeout").value_or(0ns)}};
       }});
}

}  // namespace wavetank::scenario
