// What a recording's clusters are in their mesh, read off the objects that they hold: cluster IDs, networks, who serves
// whom. A replay's world begins with it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/kube/object.h"
#include "sim/world_options.h"

namespace wavetank::record {

// Of one cluster when the recording began, as its API server gave them.
struct ClusterSnapshot {
  std::string context;
  std::vector<kube::ObjectRef> objects;
};

struct MeshFacts {
  sim::WorldOptions world;         // its clusters in the order of the snapshots
  std::vector<std::string> notes;  // what was assumed, and what will differ from the real mesh
};

// `others`: clusters that the world has besides these.
MeshFacts ReadMeshFacts(const std::vector<ClusterSnapshot>& clusters, const std::string& system_namespace,
                        const std::set<std::string>& others = {});

}  // namespace wavetank::record
