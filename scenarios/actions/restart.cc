#include <fmt/format.h>

#include "core/kube/time_format.h"
#include "scenarios/actions/action.h"
#include "sim/inputs/kinds/nodes.h"

namespace wavetank::scenario {
namespace {

constexpr std::pair<std::string_view, std::string_view> kWorkloads[] = {
    {"deployment", "Deployment"}, {"statefulSet", "StatefulSet"}, {"daemonSet", "DaemonSet"}};

void CheckRestart(const Field& f) {
  if (f["at"].present() && !kube::ParseRfc3339(f["at"].Text()))
    f["at"].Fail("is no date", "write one such as 2023-07-01T12:00:00Z");
}

Inputs InputsOfRestart(const Arguments& a, const ActionContext&) {
  std::vector<sim::Input> out;
  for (const auto& [field, kind] : kWorkloads) {
    if (!a.Has(field)) continue;
    const kube::NamespacedName name = a.Named(field);
    out.emplace_back(
        sim::inputs::RestartWorkload{a.Text("cluster"), std::string(kind), name.ns, name.name, a.Text("at")});
  }
  return out;
}

}  // namespace

void RegisterRestart(std::vector<ActionKind>& table) {
  table.push_back(
      {.row = {"restart",
               "Make all pods of a workload anew, a few at a time",
               {row::Cluster().Required(), row::Named("deployment", "namespace/name"),
                row::Named("statefulSet", "namespace/name"), row::Named("daemonSet", "namespace/name"),
                row::Text("at", "What kubectl's clock says, 2023-07-01T12:00:00Z; left out: what the world's does")},
               {"deployment", "statefulSet", "daemonSet"}},
       .example = "{cluster: c1, deployment: istio-system/istiod}",
       .what = "`kubectl rollout restart`: the workload makes its pods anew as its strategy has it, istiod's too; "
               "also of a `statefulSet` or `daemonSet`. The template remembers the time, and pods' names come of it: "
               "with `at` kubectl's clock says that",
       .check = CheckRestart,
       .describe =
           [](const Arguments& a) {
             return fmt::format("restart {} in {}", a.Text("deployment") + a.Text("statefulSet") + a.Text("daemonSet"),
                                a.Text("cluster"));
           },
       .inputs = InputsOfRestart});
}

}  // namespace wavetank::scenario
