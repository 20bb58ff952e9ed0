// A node as its kubelet registers it.
#pragma once

#include <string>

#include "core/base/time.h"
#include "fakes/kube/control/cluster_options.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube {

// `place`: which of the cluster's nodes it is, from 0; its InternalIP follows from it. `date`: since when it is
// healthy.
nlohmann::json MakeNode(const ClusterOptions& options, const NodeOptions& node, size_t place, const std::string& date);

}  // namespace wavetank::fakekube
