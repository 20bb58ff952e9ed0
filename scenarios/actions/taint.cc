#include <fmt/format.h>

#include "scenarios/actions/action.h"
#include "sim/inputs/kinds/nodes.h"

namespace wavetank::scenario {
namespace {

void CheckTaint(const Field& f) {
  if (!f["remove"].Flag(false) && !f["effect"].present())
    f.Fail("a taint has an effect", "write effect: NoSchedule, PreferNoSchedule or NoExecute");
}

}  // namespace

void RegisterTaint(std::vector<ActionKind>& table) {
  table.push_back(
      {.row = {"taint",
               "Taint a node, or take a taint away",
               {row::Cluster().Required(), row::Text("node", "A node's name").Required(),
                row::Text("key", "The taint's key").Required(), row::Text("value", "Its value"),
                row::Choice("effect", {"NoSchedule", "PreferNoSchedule", "NoExecute"}, ""),
                row::Other("remove", FieldType::kFlag, "Take it away; without effect those of all effects")}},
       .example = "{cluster: c1, node: c1-node1, key: maintenance, effect: NoSchedule}",
       .what = "pods that do not tolerate it are not scheduled there; `remove: true` takes it away",
       .check = CheckTaint,
       .describe =
           [](const Arguments& a) {
             return fmt::format("taint {} in {}: {}{}{}", a.Text("node"), a.Text("cluster"), a.Text("key"),
                                a.Has("effect") ? ":" + a.Text("effect") : "", a.Flag("remove") ? "-" : "");
           },
       .inputs = [](const Arguments& a, const ActionContext&) -> Inputs {
         return std::vector<sim::Input>{sim::inputs::TaintNode{a.Text("cluster"), a.Text("node"), a.Text("key"),
                                                               a.Text("value"), a.Text("effect"), a.Flag("remove")}};
       }});
}

}  // namespace wavetank::scenario
