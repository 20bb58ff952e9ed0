// What a node's status says of it, as its kubelet reports it and as the node lifecycle controller does in its place.
#pragma once

#include <string>

#include "nlohmann/json.hpp"

namespace wavetank::fakekube {

// As of a kubelet that posts (kubernetes: pkg/kubelet/nodestatus/setters.go). `conditions`: those before, or null.
// Heartbeats within are not modelled: the last one is the last change.
nlohmann::json ConditionsOfHealthyNode(nlohmann::json conditions, const std::string& now);
// As of a kubelet that is not heard of (kubernetes: pkg/controller/nodelifecycle/node_lifecycle_controller.go,
// tryUpdateNodeHealth()).
nlohmann::json ConditionsOfSilentNode(nlohmann::json conditions, const std::string& now);

}  // namespace wavetank::fakekube
