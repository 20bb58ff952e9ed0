#include <fmt/format.h>

#include "core/base/bounds.h"
#include "scenarios/actions/action.h"
#include "sim/inputs/kinds/objects.h"

namespace wavetank::scenario {

void RegisterScale(std::vector<ActionKind>& table) {
  table.push_back(
      {.row = {"scale",
               "Scale a Deployment or a StatefulSet",
               {row::Cluster().Required(), row::Named("deployment", "namespace/name"),
                row::Named("statefulSet", "namespace/name, instead of a deployment"),
                row::Integer("replicas", 0, bounds::kReplicas, "Replicas").Required()},
               {"deployment", "statefulSet"}},
       .example = "{cluster: c2, deployment: sample/helloworld-v2, replicas: 0}",
       .what = "replicas of a Deployment (istiod's: `istio-system/istiod`), or of a `statefulSet: namespace/name`",
       .describe =
           [](const Arguments& a) {
             return fmt::format("scale {} in {} to {}", a.Text("deployment") + a.Text("statefulSet"), a.Text("cluster"),
                                a.Integer("replicas"));
           },
       .inputs = [](const Arguments& a, const ActionContext&) -> Inputs {
         const bool stateful = a.Has("statefulSet");
         const kube::NamespacedName name = a.Named(stateful ? "statefulSet" : "deployment");
         return std::vector<sim::Input>{sim::inputs::PatchObject{a.Text("cluster"),
                                                                 stateful ? "StatefulSet" : "Deployment",
                                                                 name.ns,
                                                                 name.name,
                                                                 {{"spec", {{"replicas", a.Integer("replicas")}}}}}};
       }});
}

}  // namespace wavetank::scenario
