#include "sim/inputs/kinds/pods.h"

#include <vector>

#include "fmt/format.h"
#include "sim/inputs/fields.h"
#include "sim/world_inputs.h"

namespace wavetank::sim::inputs {

void KillPods::Fields(FieldVisitor& visitor) {
  visitor.Visit("cluster", Need::kRequired, cluster);
  visitor.Visit("namespace", Need::kLenient, ns);
  visitor.Visit("app", Need::kRequired, app);
}

absl::Status KillPods::Apply(InputTarget& target) const {
  absl::StatusOr<World::Site*> site = target.FindSite(cluster);
  if (!site.ok()) return site.status();
  std::vector<kube::NamespacedName> victims;
  for (const auto& [key, pod] : (*site)->pods()) {
    if ((ns.empty() || key.ns == ns) && pod->app() == app) victims.push_back(key);
  }
  if (victims.empty()) {
    return absl::InvalidArgumentError(fmt::format("no pod of app '{}' runs in cluster '{}'", app, cluster));
  }
  for (const kube::NamespacedName& victim : victims) (*site)->cluster().api().Finalize("Pod", victim).IgnoreError();
  return absl::OkStatus();
}

}  // namespace wavetank::sim::inputs

namespace wavetank::sim {
void RegisterPods(InputTable& table) { table.Add<inputs::KillPods>(); }
}  // namespace wavetank::sim
