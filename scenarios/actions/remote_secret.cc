#include "sim/inputs/kinds/remote_secret.h"

#include <fmt/format.h>

#include "scenarios/actions/action.h"

namespace wavetank::scenario {

void RegisterRemoteSecret(std::vector<ActionKind>& table) {
  table.push_back({.row = {"remoteSecret",
                           "Change a remote Secret",
                           {row::Cluster("of").Required(), row::Cluster("in").Required(),
                            row::Choice("state", {"deleted", "restored", "rotated", "broken"}, "").Required(),
                            row::Text("secret", "The Secret's name; istio-remote-secret-CLUSTER if left out")}},
                   .example = "{of: c2, in: c1, state: deleted}",
                   .what = "also `restored`, `rotated` (another token), `broken` (no kubeconfig); `secret`: another "
                           "one of that cluster",
                   .describe =
                       [](const Arguments& a) {
                         return fmt::format("remote Secret of {} in {} {}", a.Text("of"), a.Text("in"),
                                            a.Text("state"));
                       },
                   .inputs = [](const Arguments& a, const ActionContext&) -> Inputs {
                     return std::vector<sim::Input>{
                         sim::inputs::SetRemoteSecret{a.Text("of"), a.Text("in"), a.Text("state"), a.Text("secret")}};
                   }});
}

}  // namespace wavetank::scenario
