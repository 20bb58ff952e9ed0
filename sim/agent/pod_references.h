// The ConfigMaps and Secrets that a pod cannot start without (kubernetes: pkg/kubelet/kubelet_pods.go,
// makeEnvironmentVariables; pkg/volume/configmap, secret, projected).
#pragma once

#include <string>

#include "core/kube/object.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::sim {

// The first that is not there, in the kubelet's words; empty: all are. What is optional may be missing. The
// mesh's root certificates are left to whoever starts the agent.
std::string MissingReference(const fakekube::ApiServer& api, const kube::Object& pod);

}  // namespace wavetank::sim
