#include <fmt/format.h>

#include "scenarios/actions/action.h"
#include "sim/inputs/kinds/pods.h"

namespace wavetank::scenario {

void RegisterKill(std::vector<ActionKind>& table) {
  table.push_back(
      {.row = {"kill",
               "An app's pods are gone at once, without a goodbye",
               {row::Cluster().Required(), row::Text("namespace", "Namespace; every one if left out"),
                row::Text("app", "The pods' label app, or app.kubernetes.io/name").Required()}},
       .example = "{cluster: c1, namespace: sample, app: sleep}",
       .what = "the app's pods (`istiod` too) are gone at once, without a goodbye; their Deployment makes "
               "new ones",
       .describe = [](const Arguments& a) { return fmt::format("kill {} in {}", a.Text("app"), a.Text("cluster")); },
       .inputs = [](const Arguments& a, const ActionContext&) -> Inputs {
         return std::vector<sim::Input>{sim::inputs::KillPods{a.Text("cluster"), a.Text("namespace"), a.Text("app")}};
       }});
}

}  // namespace wavetank::scenario
