// Pods that controllers want and namespaces do not let them make.
#pragma once

#include <string>
#include <vector>

#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

// A line for each ReplicaSet and StatefulSet that has fewer pods than it wants, if the next one does not fit into its
// namespace's quotas or limits: "ReplicaSet sample/web-6d4: pods are refused: exceeded quota: ...". O(pods).
std::vector<std::string> RefusedPods(const ApiServer& api);

}  // namespace wavetank::fakekube
