// The bootstrap of a pod's Envoy, as pilot-agent 1.18.2 makes it of its template (istiod:
// tools/packaging/common/envoy_bootstrap.json, pkg/bootstrap/config.go and option/).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/inject/proxy_bootstrap.h"
#include "nlohmann/json.hpp"

namespace wavetank::agent {

struct EnvoyBootstrapOptions {
  // Where the discovery service and the secret service are: "host:port", or "unix:PATH". Empty: the agent's own
  // sockets.
  std::string xds, sds;
  // The admin interface, "host:port"; empty: proxyAdminPort of the proxy's configuration, on loopback.
  std::string admin;
  bool delta = false;  // ISTIO_DELTA_XDS
  // For an Envoy that knows nothing of Istio: without keys of its runtime and extensions that only Istio's has.
  bool upstream_envoy = false;
  // Without an agent, its readiness is Envoy's own.
  bool without_agent = false;
  std::string outlier_log_path;                           // --outlierLogPath
  uint16_t status_port = 15021, prometheus_port = 15090;  // ENVOY_STATUS_PORT, ENVOY_PROMETHEUS_PORT
  bool exit_on_zero_active_connections = false;
  std::string host_ip;  // HOST_IP, for a tracer at "$(HOST_IP):8126"
};

// InvalidArgument: an address that is none, or a tracer that this bootstrap cannot have.
absl::StatusOr<nlohmann::ordered_json> MakeEnvoyBootstrap(const pilot::ProxyBootstrap& proxy,
                                                          const EnvoyBootstrapOptions& options);

// "host:port" or "unix:PATH" as Envoy's address.
absl::StatusOr<nlohmann::ordered_json> EnvoyAddress(const std::string& text);

}  // namespace wavetank::agent
