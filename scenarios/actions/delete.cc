#include <fmt/format.h>

#include "fakes/kube/objects/kinds.h"
#include "scenarios/actions/action.h"
#include "sim/inputs/kinds/objects.h"

namespace wavetank::scenario {

void RegisterDelete(std::vector<ActionKind>& table) {
  table.push_back(
      {.row = {"delete",
               "Delete an object",
               {row::Cluster().Required(), row::Text("kind", "Kind").Required(),
                row::Text("namespace", "Namespace; default if left out"), row::Text("name", "Name").Required()}},
       .example = "{cluster: c1, kind: Service, namespace: sample, name: helloworld}",
       .what = "one object goes",
       .describe =
           [](const Arguments& a) {
             return fmt::format("delete {} {} in {}", a.Text("kind"), a.Text("name"), a.Text("cluster"));
           },
       .inputs = [](const Arguments& a, const ActionContext&) -> Inputs {
         const bool scoped = !fakekube::ClusterScoped(a.Text("kind"));
         return std::vector<sim::Input>{sim::inputs::DeleteObject{
             a.Text("cluster"), a.Text("kind"), scoped ? a.Text("namespace", "default") : "", a.Text("name")}};
       }});
}

}  // namespace wavetank::scenario
