// A sidecar's outbound listeners: one per address and port of the services that it sees, the one that iptables
// redirects to, and the HTTP proxy port (istiod: listener.go, buildSidecarOutboundListeners; listener_builder.go).
#pragma once

#include <optional>
#include <vector>

#include "core/gen/lds/listener_builder.h"

namespace wavetank::pilot {

struct OutboundListeners {
  std::vector<Listener> of_services;  // TCP, then HTTP and sniffed
  std::optional<Listener> http_proxy, virtual_outbound;
};
// In the order of the answer. Complexity: services times ports.
OutboundListeners BuildOutboundListeners(ListenerScope& scope);

}  // namespace wavetank::pilot
