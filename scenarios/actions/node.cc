#include <fmt/format.h>

#include "scenarios/actions/action.h"
#include "sim/inputs/kinds/nodes.h"

namespace wavetank::scenario {

void RegisterNode(std::vector<ActionKind>& table) {
  table.push_back(
      {.row = {"node",
               "A node's machine goes, or is back",
               {row::Cluster().Required(), row::Text("node", "A node's name").Required(),
                row::Choice("state", {"lost", "back"}, "").Required()}},
       .example = "{cluster: c1, node: c1-node1, state: lost}",
       .what = "its machine is gone at once with all that runs there; after 40 s Kubernetes notices, and its pods are "
               "not ready; after 5 minutes more they are made elsewhere. `back`: its pods start again",
       .describe =
           [](const Arguments& a) {
             return fmt::format("node {} of {} is {}", a.Text("node"), a.Text("cluster"), a.Text("state"));
           },
       .inputs = [](const Arguments& a, const ActionContext&) -> Inputs {
         return std::vector<sim::Input>{
             sim::inputs::SetNode{a.Text("cluster"), a.Text("node"), a.Text("state") == "lost"}};
       }});
}

}  // namespace wavetank::scenario
