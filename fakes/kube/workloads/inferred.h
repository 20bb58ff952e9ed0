// Workloads that a record of a cluster does not hold, inferred from its pods: who owns them by ownerReferences, and
// what they look like. A record of pods and Services so becomes a cluster that can be scaled, drained and rolled.
#pragma once

#include <string>
#include <vector>

#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

// Writes Deployments with their ReplicaSets, StatefulSets and DaemonSets that are not there, as many replicas as there
// are pods, and makes pods theirs. To be called before controllers start. Returns what could not be told: pods that
// nobody makes again, rollouts under way.
std::vector<std::string> InferWorkloads(ApiServer& api);

}  // namespace wavetank::fakekube
