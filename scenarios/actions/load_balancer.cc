#include <fmt/format.h>

#include "scenarios/actions/action.h"
#include "sim/inputs/kinds/network.h"

namespace wavetank::scenario {

void RegisterLoadBalancer(std::vector<ActionKind>& table) {
  table.push_back({.row = {"loadBalancer",
                           "Take or give a load balancer's address",
                           {row::Cluster().Required(), row::Named("service", "namespace/name").Required(),
                            row::Text("address", "none, new, or an address").Required()}},
                   .example = "{cluster: c2, service: istio-system/istio-eastwestgateway, address: none}",
                   .what = "its address goes (`none`), is another (`new`), or the given one",
                   .describe =
                       [](const Arguments& a) {
                         return fmt::format("address of {} in {} becomes {}", a.Text("service"), a.Text("cluster"),
                                            a.Text("address"));
                       },
                   .inputs = [](const Arguments& a, const ActionContext&) -> Inputs {
                     const kube::NamespacedName service = a.Named("service");
                     return std::vector<sim::Input>{
                         sim::inputs::SetLoadBalancer{a.Text("cluster"), service.ns, service.name, a.Text("address")}};
                   }});
}

}  // namespace wavetank::scenario
