// A router's listeners: the servers of the Gateways that select it
// (istiod: pilot/pkg/networking/core/v1alpha3/gateway.go).
#pragma once

#include <string>
#include <vector>

#include "core/config/kinds/gateway.h"
#include "core/config/kinds/virtual_service.h"
#include "core/gen/lds/listener_builder.h"

namespace wavetank::pilot {

// In order of first use of their address. None without a Gateway. AUTO_PASSTHROUGH costs a filter chain per port and
// subset of every service that the router sees.
std::vector<Listener> BuildGatewayListeners(ListenerScope& scope);

// True if one of the server's hosts ("host" or "ns/host") and one of the rule's meet.
bool ServesHostsOf(const config::Server& server, const config::TypedConfig<config::VirtualService>& rule);

}  // namespace wavetank::pilot
