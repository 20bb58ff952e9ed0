#include <fmt/format.h>

#include "scenarios/actions/action.h"
#include "sim/inputs/kinds/nodes.h"

namespace wavetank::scenario {

void RegisterClock(std::vector<ActionKind>& table) {
  table.push_back(
      {.row = {"clock",
               "A node's clock is wrong, or right again",
               {row::Cluster().Required(), row::Text("node", "A node's name").Required(),
                row::Other("skew", FieldType::kSignedDuration,
                           "How far it is ahead (25h) or behind (-10m); 0s: it is right")
                    .Required()}},
       .example = "{cluster: c1, node: c1-node1, skew: 25h}",
       .what = "what runs there holds the dates of certificates and tokens against a wrong time, and istiod dates what "
               "it signs by it; how long things take stays as it is. An API server has its own: `apiServer`",
       .describe =
           [](const Arguments& a) {
             const bool wrong = a.Time("skew").value_or(Duration::zero()) != Duration::zero();
             return fmt::format("the clock of node {} of {} is {}", a.Text("node"), a.Text("cluster"),
                                wrong ? "wrong by " + a.Text("skew") : "right");
           },
       .inputs = [](const Arguments& a, const ActionContext&) -> Inputs {
         return std::vector<sim::Input>{
             sim::inputs::SetClock{a.Text("cluster"), a.Text("node"), a.Time("skew").value_or(Duration::zero())}};
       }});
}

}  // namespace wavetank::scenario
