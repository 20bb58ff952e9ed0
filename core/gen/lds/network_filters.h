// Network filters of listeners: TCP proxies to clusters, with what protocols and DestinationRules add to them
// (istiod: pilot/pkg/networking/core/v1alpha3/networkfilter.go).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/time.h"
#include "core/config/kinds/destination_rule.h"
#include "core/config/kinds/virtual_service.h"
#include "core/gen/extensions/wasm_filters.h"
#include "core/gen/view/listener_types.h"
#include "core/model/proxy.h"
#include "core/model/service.h"

namespace wavetank::pilot {

class ProxyTelemetry;
class PushContext;

// Encoded FilterChain.filters fields, one each; the last terminates the chain.
using FilterStack = std::vector<std::string>;

class NetworkFilters {
 public:
  // All must outlive the object.
  NetworkFilters(const Proxy& proxy, const PushContext& push, ProxyTelemetry& telemetry);

  // A plain TCP proxy: idle timeout and access log are the proxy's. What measures comes before it (Metrics).
  std::string TcpProxy(ListenerClass listener_class, std::string_view stat_prefix, std::string_view cluster) const;
  const std::string& Metrics(ListenerClass listener_class) const;
  // WasmPlugins of type NETWORK: FilterChain.filters fields, one each. istiod: buildCompleteNetworkFilters.
  const WasmFilters& wasm() const { return wasm_; }
  // One that logs nothing and keeps Envoy's idle timeout, for blackholes.
  static std::string BareTcpProxy(std::string_view stat_prefix, std::string_view cluster);

  // To the cluster that the client's SNI names. istiod: buildOutboundAutoPassthroughFilterStack
  FilterStack ToSni(const Port& port) const;
  // Stacks of outbound listeners and gateways, what measures among them.
  // To the cluster of one service port, under the service's name or the mesh's outboundClusterStatName. Of a service
  // whose names a sidecar resolves (IsDynamic) without WasmPlugins, as policies stand between them.
  FilterStack ToService(const Service& service, std::string_view subset, const Port& cluster_port,
                        const Port& listener_port, bool sni_dnat) const;
  // To the destinations of a TCP or TLS route.
  FilterStack ToRoute(const std::vector<config::RouteDestination>& routes, const Port& port,
                      const config::ConfigMeta& rule) const;
  // What a protocol wants in front of `tcp_proxy`.
  FilterStack ForProtocol(Protocol protocol, std::string tcp_proxy, std::string_view stat_prefix) const;

 private:
  struct Target;
  std::string Encode(const Target& target) const;
  FilterStack Measured(FilterStack stack, int port, bool with_modules = true) const;
  FilterStack SingleDestination(std::string_view stat_prefix, std::string_view cluster, std::string_view subset,
                                const Port& port, const config::DestinationRule* rule, bool tunnels,
                                const Service* resolved = nullptr) const;

  const Proxy& proxy_;
  const PushContext& push_;
  ProxyTelemetry& telemetry_;
  const WasmFilters wasm_;
  const ListenerClass outbound_;        // what its listeners for its own requests are
  const std::optional<Duration> idle_;  // the proxy's own
};

}  // namespace wavetank::pilot
