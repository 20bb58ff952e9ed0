// Routes that follow from services alone, encoded directly: meshes have many of them
// (istiod: route.go, BuildDefaultHTTPInboundRoute, BuildDefaultHTTPOutboundRoute; httproute.go).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/config/kinds/virtual_service.h"
#include "core/gen/view/proxy_headers.h"

namespace wavetank::pilot {

class PushContext;

// The RouteConfiguration inside an inbound HTTP connection manager, encoded: everything to `cluster`, no timeouts.
// `retries`: requests that the application has not seen are tried again.
std::string InboundRouteConfiguration(std::string_view cluster, std::string_view hostname, int service_port,
                                      bool retries);

// The Route of a service port that no VirtualService rules over. `retry_policy`: encoded, the mesh's default;
// `hash_policy`: encoded RouteAction.HashPolicy or empty.
std::string DefaultOutboundRoute(std::string_view hostname, int port, std::string_view retry_policy,
                                 std::string_view hash_policy, Duration timeout);

// What unknown hosts get: through ("allow_any", to `cluster`), or a 502 ("block_all").
std::string PassthroughVirtualHost(std::string_view cluster, const ProxyHeaders& headers);
std::string BlackHoleVirtualHost(const ProxyHeaders& headers);

// Encoded RetryPolicy; empty: none. Without a policy istiod's default holds. `same_host`: the destination is chosen by
// a hash, which a retry keeps to, too. istiod: route/retry/retry.go.
std::string RetryPolicy(const std::optional<config::HttpRetry>& policy, const PushContext& push,
                        bool same_host = false);

}  // namespace wavetank::pilot
