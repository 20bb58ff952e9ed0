// The bootstrap of a pod's Envoy, as Istio's agent writes it (istiod: tools/packaging/common/envoy_bootstrap.json,
// pkg/bootstrap/config.go).
#pragma once

#include <string>

#include "core/inject/proxy_bootstrap.h"
#include "nlohmann/json.hpp"

namespace wavetank::serve {

struct BootstrapOptions {
  // Where istiod's discovery service and the agent's secret service are: "host:port", or "unix:PATH". Istio's own
  // Envoys reach both at sockets of their agent.
  std::string xds = "unix:./etc/istio/proxy/XDS";
  std::string sds = "unix:./var/run/secrets/workload-spiffe-uds/socket";
  bool delta = false;
  // For an Envoy that knows nothing of Istio: neither its extensions nor its agent.
  bool upstream_envoy = false;
  std::string admin = "127.0.0.1:15000";
};

// InvalidArgument: an address that is none.
absl::StatusOr<nlohmann::ordered_json> MakeBootstrap(const pilot::ProxyBootstrap& proxy,
                                                     const BootstrapOptions& options);

}  // namespace wavetank::serve
