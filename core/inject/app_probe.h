// Kubelet's probes of applications, sent to the agent instead, which asks the application from inside the pod: mTLS
// would refuse the kubelet (istiod: pkg/kube/inject/app_probe.go).
#pragma once

#include <string>

#include "nlohmann/json.hpp"

namespace wavetank::pilot {

// The probes of all containers but istio-proxy, as the agent's ISTIO_KUBE_APP_PROBERS reads them; null if none.
// Probes that go to `status_port` already are left out, as are those of a port name that no container port has.
nlohmann::json DumpAppProbers(const nlohmann::json& pod_spec, int status_port);

// Turns these probes into HTTP probes of the agent.
void RewriteAppProbes(nlohmann::json& pod_spec, int status_port);

}  // namespace wavetank::pilot
