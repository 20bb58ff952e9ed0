// Probes of an application outside Kubernetes, on real sockets and processes (istiod: pkg/istio-agent/health,
// health_probers.go). Each runs on a thread of its own; its answer comes on the host's.
#pragma once

#include <cstdint>

#include "core/agent/health_checker.h"
#include "serve/agent/environment.h"

namespace wavetank::serve {

class RealHost;

// Asks the Envoy whose admin interface is there whether it is ready, then the application, by a command in this
// `environment` if the probe is one. `host` lives as long as the process.
agent::HealthChecker::Probe ProberOf(RealHost& host, uint16_t admin_port, Environment environment);

}  // namespace wavetank::serve
