// From filter chain options to a listener: matches, inspectors, filters (istiod: listener.go, buildListener and
// MutableListener.build).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/gen/authz/authz_filters.h"
#include "core/gen/lds/http_connection_manager.h"
#include "core/gen/lds/network_filters.h"
#include "core/gen/telemetry/proxy_telemetry.h"
#include "core/gen/view/listener_filters.h"
#include "core/gen/view/listener_types.h"
#include "core/push/policies/envoy_filters.h"

namespace wavetank::pilot {

// What all listeners of one proxy are generated with.
struct ListenerScope {
  ListenerScope(const Proxy& node, const PushContext& context);

  const Proxy& proxy;
  const PushContext& push;
  ProxyTelemetry telemetry;
  std::shared_ptr<const EnvoyPatches> patches;  // null: none
  NetworkFilters network_filters;
  AuthzFilters authz;
  HttpConnectionManagers http;
  bool istio_filters;  // false: for a stock Envoy (profile upstream-envoy)
  bool istio_authn;    // istio_authn takes the peer's identity from its certificate
  Inspector tls_inspector;
  std::string_view wildcard, extra_wildcard;  // extra_wildcard: of the other family of a proxy that has both
  bool dual_stack;                            // ISTIO_DUAL_STACK of istiod

  // Additional addresses of a listener for which istiod looks at ISTIO_DUAL_STACK: that wildcard, or none.
  std::vector<std::string> ExtraWildcard() const;
};

struct FilterChainOptions {
  std::vector<std::string> sni_hosts;          // "*" among them: no match on names
  std::vector<std::string> destination_cidrs;  // addresses or prefixes
  std::optional<FilterChainMatch> match;
  std::string transport_socket;  // encoded; empty: plain text
  std::string metadata;          // encoded
  FilterStack network_filters;   // without `http`; the last one terminates
  size_t ahead = 0;              // so many of them stand before all others, a gateway's policies too
  std::optional<HttpOptions> http;
  bool unguarded = false;     // a gateway's AuthorizationPolicies do not count here
  bool resolves_sni = false;  // to what the name in the ClientHello resolves (SniDynamicForward)
};

struct ListenerOptions {
  std::string bind;
  std::vector<std::string> extra_binds;
  int64_t port = 0;  // below 0, as a mesh config may say, it shows in the name
  bool bind_to_port = false;
  bool need_http_inspector = false;
  ListenerClass listener_class = ListenerClass::kSidecarOutbound;
  std::vector<FilterChainOptions> chains;
  FilterStack authentication;  // before the last filter of every chain
};

// Encoded FilterChain.filters of connections: AuthorizationPolicies, and WasmPlugins around them by their phases.
// istiod: networkfilter.go, buildCompleteNetworkFilters.
std::string PoliciesAndModules(ListenerScope& scope, ListenerClass listener_class, int port, bool with_policies);

// An outbound or a gateway's listener.
Listener BuildListener(ListenerScope& scope, ListenerOptions options);

}  // namespace wavetank::pilot
