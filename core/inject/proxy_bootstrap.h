// What pilot-agent makes of the pod that it runs in: Envoy's node, whom to ask, as whom (istiod:
// pkg/bootstrap/config.go, pkg/istio-agent/agent.go, pilot/cmd/pilot-agent).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/kube/object.h"
#include "core/security/spiffe.h"
#include "core/xds/messages.h"

namespace wavetank::pilot {

struct ProxyBootstrap {
  bool router = false;
  Node node;  // id "sidecar~10.1.0.10~sleep-1.sample~sample.svc.cluster.local", metadata as the agent writes it
  std::string service_cluster;
  security::SpiffeIdentity identity;
  std::string discovery_host;  // "istiod.istio-system.svc"; also the name its certificate must have
  uint16_t discovery_port = 15012;
  std::string extra_roots_pem;                   // ProxyConfig caCertificatesPem
  Duration drain_time = 45s;                     // --drain-time-s
  Duration termination_drain = 5s;               // terminationDrainDuration
  std::vector<uint16_t> excluded_inbound_ports;  // traffic.sidecar.istio.io/excludeInboundPorts
};

// Nullopt for a pod without a proxy container. The pod runs: it has an address. InvalidArgument names the container's
// field that cannot be read.
absl::StatusOr<std::optional<ProxyBootstrap>> ReadProxyBootstrap(const kube::Object& pod);

}  // namespace wavetank::pilot
