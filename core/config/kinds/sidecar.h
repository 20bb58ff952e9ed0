// networking.istio.io Sidecar.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/config/kinds/destination_rule.h"
#include "core/config/kinds/typed_config.h"

namespace wavetank::config {

enum class CaptureMode : uint8_t { kDefault, kIptables, kNone };

struct SidecarIngressListener {
  PortSpec port;
  std::string bind, default_endpoint;
  CaptureMode capture_mode = CaptureMode::kDefault;
  std::optional<ServerTlsSettings> tls;
  std::optional<ConnectionPoolSettings> connection_pool;
  friend bool operator==(const SidecarIngressListener&, const SidecarIngressListener&) = default;
};

struct SidecarEgressListener {
  std::optional<PortSpec> port;
  std::string bind;
  CaptureMode capture_mode = CaptureMode::kDefault;
  std::vector<std::string> hosts;  // "namespace/dnsName"
  friend bool operator==(const SidecarEgressListener&, const SidecarEgressListener&) = default;
};

struct OutboundTrafficPolicy {
  enum class Mode : uint8_t { kRegistryOnly, kAllowAny };
  Mode mode = Mode::kRegistryOnly;
  std::optional<Destination> egress_proxy;
  friend bool operator==(const OutboundTrafficPolicy&, const OutboundTrafficPolicy&) = default;
};

struct Sidecar {
  std::optional<Labels> workload_selector;
  std::vector<SidecarIngressListener> ingress;
  std::vector<SidecarEgressListener> egress;
  std::optional<OutboundTrafficPolicy> outbound_traffic_policy;
  std::optional<ConnectionPoolSettings> inbound_connection_pool;
  friend bool operator==(const Sidecar&, const Sidecar&) = default;
};
using SidecarRef = TypedConfigRef<Sidecar>;

}  // namespace wavetank::config
