#include "sim/inputs/kinds/machines.h"

#include "fakes/kube/cluster.h"
#include "sim/inputs/fields.h"
#include "sim/world_inputs.h"

namespace wavetank::sim::inputs {

void SetNode::Fields(FieldVisitor& visitor) {
  visitor.Visit("cluster", Need::kRequired, cluster);
  visitor.Visit("node", Need::kRequired, node);
  visitor.Visit("lost", Need::kRequired, lost);
}

absl::Status SetNode::Apply(InputTarget& target) const {
  absl::StatusOr<World::Site*> site = target.FindSite(cluster);
  if (!site.ok()) return site.status();
  return (*site)->cluster().SetNodeLost(node, lost);
}

}  // namespace wavetank::sim::inputs

namespace wavetank::sim {
void RegisterMachines(InputTable& table) { table.Add<inputs::SetNode>(); }
}  // namespace wavetank::sim
