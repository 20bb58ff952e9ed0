// pods/ephemeralcontainers, by which `kubectl debug` adds containers to a pod that runs (kubernetes:
// pkg/registry/core/pod/strategy.go, podEphemeralContainersStrategy).
#pragma once

#include <vector>

#include "fakes/kube/objects/api_error.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube::http {

// What is wrong with a pod's ephemeral containers in place of those that it has: none may go or change, and each new
// one has a name of its own and an image.
std::vector<FieldError> CheckEphemeralContainers(const nlohmann::json& pod, const nlohmann::json& previous);

}  // namespace wavetank::fakekube::http
