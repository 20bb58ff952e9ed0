// VirtualServices as Envoy routes, for sidecars and for routers
// (istiod: pilot/pkg/networking/core/v1alpha3/route/route.go).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/kinds/virtual_service.h"
#include "core/config/mesh/mesh_config.h"
#include "core/model/proxy.h"
#include "core/push/sidecar_scope.h"

namespace wavetank::pilot {

// One Route, encoded once and shared by all virtual hosts that carry it.
struct EncodedRoute {
  std::string bytes;
  bool catch_all = false;  // matches every request: nothing after it is reached
};
using EncodedRouteRef = std::shared_ptr<const EncodedRoute>;

// Of which listener the routes are. Most rules do not look at it: their routes serve any.
class RouteListener {
 public:
  // `is_tls`: requests arrive over TLS that the listener ends.
  RouteListener(int port, bool is_tls) : port_(port), is_tls_(is_tls) {}
  int port() const { return asked_ = true, port_; }
  bool is_tls() const { return asked_ = true, is_tls_; }
  bool asked() const { return asked_; }  // whether routes depend on it

 private:
  int port_;
  bool is_tls_;
  mutable bool asked_ = false;
};

struct HttpRouteScope {
  const Proxy& proxy;
  const PushContext& push;
  std::string_view gateway;  // "mesh" for sidecars, else "namespace/name"
  const RouteListener& listener;
  std::string_view retry_policy;  // the mesh's default, encoded
  // A destination's service, for its only port; may be null.
  std::function<const Service*(std::string_view hostname)> service;
};

// The rule's routes that hold for the proxy at this port and gateway, up to the first that catches all. Empty: the
// rule has no say here.
std::vector<EncodedRouteRef> BuildHttpRoutes(const HttpRouteScope& scope,
                                             const config::TypedConfig<config::VirtualService>& rule);

// Consistent hashing by DestinationRules: the encoded RouteAction.HashPolicy and the rule that asks for it.
struct HashPolicy {
  std::string bytes;  // empty: no policy (a rule may still hash by something that routes cannot say)
  ConsolidatedDestRuleRef rule;
};
// For a port without VirtualService, and for a route's destination. nullopt: no DestinationRule asks for
// consistent hashing. istiod: hashForService, hashForHTTPDestination.
// `attributes`: a cookie's count (Change::kHashCookieAttributes).
std::optional<HashPolicy> HashForService(const Proxy& proxy, std::string_view hostname, int port,
                                         bool attributes = false);
std::optional<HashPolicy> HashForDestination(const Proxy& proxy, const config::Destination& destination,
                                             bool attributes = false);

// Those DestinationRules that the rule's routes depend on.
std::vector<ConsolidatedDestRuleRef> HashRulesOf(const Proxy& proxy, const config::VirtualService& rule);

}  // namespace wavetank::pilot
