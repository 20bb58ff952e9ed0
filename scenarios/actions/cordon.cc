#include <fmt/format.h>

#include "scenarios/actions/action.h"
#include "sim/inputs/kinds/nodes.h"

namespace wavetank::scenario {
namespace {

ActionKind NodeAction(std::string_view name, std::string_view meaning, std::string_view what) {
  ActionKind kind;
  kind.row = {name, meaning, {row::Cluster().Required(), row::Text("node", "A node's name").Required()}};
  kind.example = "{cluster: c1, node: c1-node1}";
  kind.what = what;
  return kind;
}

}  // namespace

void RegisterCordon(std::vector<ActionKind>& table) {
  ActionKind cordon =
      NodeAction("cordon", "No further pods for a node", "no pod is scheduled there any more; those that run stay");
  cordon.describe = [](const Arguments& a) {
    return fmt::format("cordon {} in {}", a.Text("node"), a.Text("cluster"));
  };
  cordon.inputs = [](const Arguments& a, const ActionContext&) -> Inputs {
    return std::vector<sim::Input>{sim::inputs::CordonNode{a.Text("cluster"), a.Text("node"), true}};
  };
  table.push_back(std::move(cordon));
  ActionKind uncordon = NodeAction("uncordon", "Pods for a node again", "the end of `cordon` and `drain`");
  uncordon.describe = [](const Arguments& a) {
    return fmt::format("uncordon {} in {}", a.Text("node"), a.Text("cluster"));
  };
  uncordon.inputs = [](const Arguments& a, const ActionContext&) -> Inputs {
    return std::vector<sim::Input>{sim::inputs::CordonNode{a.Text("cluster"), a.Text("node"), false}};
  };
  table.push_back(std::move(uncordon));
}

}  // namespace wavetank::scenario
