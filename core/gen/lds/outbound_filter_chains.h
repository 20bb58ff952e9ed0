// Filter chains of sidecars for TCP and TLS traffic to one service port: its VirtualServices' routes, else the service
// itself (istiod: pilot/pkg/networking/core/v1alpha3/tls.go).
#pragma once

#include <string>
#include <vector>

#include "core/config/kinds/virtual_service.h"
#include "core/gen/lds/listener_builder.h"

namespace wavetank::pilot {

// `destination_cidr`: of a service whose address is a prefix, else empty. `bind`: where the listener will stand.
// `listen_port`: the service port, or the port that a Sidecar names instead.
std::vector<FilterChainOptions> OutboundTcpTlsFilterChains(const ListenerScope& scope, const Service& service,
                                                           const std::string& destination_cidr, std::string_view bind,
                                                           const Port& listen_port,
                                                           const std::vector<config::VirtualServiceRef>& rules);

}  // namespace wavetank::pilot
