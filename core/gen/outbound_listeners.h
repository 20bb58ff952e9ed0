// A sidecar's outbound listeners: one per address and port of the services that it sees, the one that iptables
// redirects to, and the HTTP proxy port (istiod: listener.go, buildSidecarOutboundListeners; listener_builder.go).
#pragma once

#include <vector>

#include "core/gen/listener_builder.h"

namespace wavetank::pilot {

// In the order: TCP, HTTP and sniffed, HTTP proxy, virtualOutbound. Complexity: services times ports.
std::vector<Listener> BuildOutboundListeners(ListenerScope& scope);

}  // namespace wavetank::pilot
