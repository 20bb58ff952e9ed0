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
  // Not of an Envoy but of the pod's application, which speaks xDS itself: MakeGrpcBootstrap at `xds`.
  bool grpc = false;
};

// InvalidArgument: an address that is none.
absl::StatusOr<nlohmann::ordered_json> MakeBootstrap(const pilot::ProxyBootstrap& proxy,
                                                     const BootstrapOptions& options);

struct GrpcBootstrapOptions {
  std::string xds;  // istiod's discovery service: "host:port", or "unix:PATH"
  // Folder with key.pem, cert-chain.pem and root-cert.pem, as Istio's agent writes them; empty: the application has no
  // certificate.
  std::string certificates;
};

// The bootstrap of an application that speaks xDS itself, as Istio's agent writes it for GRPC_XDS_BOOTSTRAP (istiod:
// pkg/istio-agent/grpcxds/grpc_bootstrap.go). Its metadata choose istiod's generator for gRPC. InvalidArgument: an
// address that is none.
absl::StatusOr<nlohmann::ordered_json> MakeGrpcBootstrap(const pilot::ProxyBootstrap& proxy,
                                                         const GrpcBootstrapOptions& options);

}  // namespace wavetank::serve
