#include <fmt/format.h>

#include "scenarios/actions/action.h"
#include "sim/inputs/kinds/nodes.h"

namespace wavetank::scenario {
namespace {

constexpr std::pair<std::string_view, std::string_view> kWorkloads[] = {
    {"deployment", "Deployment"}, {"statefulSet", "StatefulSet"}, {"daemonSet", "DaemonSet"}};

Inputs InputsOfRestart(const Arguments& a, const ActionContext&) {
  std::vector<sim::Input> out;
  for (const auto& [field, kind] : kWorkloads) {
    if (!a.Has(field)) continue;
    const kube::NamespacedName name = a.Named(field);
    out.emplace_back(sim::inputs::RestartWorkload{a.Text("cluster"), std::string(kind), name.ns, name.name});
  }
  return out;
}

}  // namespace

void RegisterRestart(std::vector<ActionKind>& table) {
  table.push_back(
      {.row = {"restart",
               "Make all pods of a workload anew, a few at a time",
               {row::Cluster().Required(), row::Named("deployment", "namespace/name"),
                row::Named("statefulSet", "namespace/name"), row::Named("daemonSet", "namespace/name")},
               {"deployment", "statefulSet", "daemonSet"}},
       .example = "{cluster: c1, deployment: istio-system/istiod}",
       .what = "`kubectl rollout restart`: the workload makes its pods anew as its strategy has it, istiod's too; "
               "also of a `statefulSet` or `daemonSet`",
       .describe =
           [](const Arguments& a) {
             return fmt::format("restart {} in {}", a.Text("deployment") + a.Text("statefulSet") + a.Text("daemonSet"),
                                a.Text("cluster"));
           },
       .inputs = InputsOfRestart});
}

}  // namespace wavetank::scenario
