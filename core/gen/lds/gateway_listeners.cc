#include "core/gen/lds/gateway_listeners.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/gen/lds/downstream_tls.h"
#include "core/gen/view/listener_filters.h"
#include "core/gen/view/metadata_exchange.h"
#include "core/gen/view/proxy_view.h"
#include "core/model/gateway.h"
#include "core/model/host_name.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "core/push/sidecar_scope.h"

namespace wavetank::pilot {
namespace {

using ServerTlsMode = config::ServerTlsSettings::Mode;

template <typename Match>
bool MatchesServer(const Match& match, const config::Server& server, std::string_view gateway) {
  return (match.port == 0 || match.port == server.port.number) &&
         (match.gateways.empty() ||
          std::find(match.gateways.begin(), match.gateways.end(), gateway) != match.gateways.end());
}

class GatewayListeners {
 public:
  explicit GatewayListeners(ListenerScope& scope) : scope_(scope), proxy_(scope.proxy), push_(scope.push) {}

  std::vector<Listener> Build() {
    for (const ServerPort& port : proxy_.merged_gateway->server_ports) AddPort(port);
    std::vector<Listener> out;
    for (ListenerOptions& options : listeners_) {
      if (!options.chains.empty()) out.push_back(BuildListener(scope_, std::move(options)));
    }
    return out;
  }

 private:
  void AddPort(const ServerPort& port) {
    if (IsUnprivileged(proxy_) && port.number < 1024) return;
    const auto servers = proxy_.merged_gateway->merged_servers.find(port);
    if (servers == proxy_.merged_gateway->merged_servers.end()) return;
    const std::string bind = port.bind.empty() ? std::string(scope_.wildcard) : port.bind;
    // Ports that differ in protocol only share a listener.
    ListenerOptions& listener = ListenerAt(bind, port.number);
    if (port.bind.empty()) listener.extra_binds = scope_.ExtraWildcard();
    std::vector<FilterChainOptions>& chains = listener.chains;
    const Protocol protocol = ParseProtocol(port.protocol);
    if (IsHttp(protocol)) {
      chains.push_back(HttpChain(protocol, servers->second.route_name));
      return;
    }
    for (const GatewayServer* server : servers->second.servers) {
      if (config::IsHttpsServerWithTlsTermination(server->server)) {
        chains.push_back(HttpsChain(*server));
      } else {
        AddTcpServer(*server, port.number, chains);
      }
    }
  }

  ListenerOptions& ListenerAt(const std::string& bind, uint32_t port) {
    const auto at = std::find_if(listeners_.begin(), listeners_.end(), [&](const ListenerOptions& options) {
      return options.bind == bind && options.port == port;
    });
    if (at != listeners_.end()) return *at;
    ListenerOptions& options = listeners_.emplace_back();
    options.bind = bind;
    options.port = port;
    options.bind_to_port = true;
    options.listener_class = ListenerClass::kGateway;
    if (scope_.istio_authn) options.authentication = {IstioAuthnFilter()};
    return options;
  }

  static FilterChainOptions HttpChain(Protocol protocol, std::string_view route_name) {
    FilterChainOptions chain;
    HttpOptions& http = chain.http.emplace();
    http.listener_class = ListenerClass::kGateway;
    http.protocol = protocol;
    http.rds = route_name;
    return chain;
  }

  FilterChainOptions HttpsChain(const GatewayServer& server) {
    FilterChainOptions chain = HttpChain(ParseProtocol(server.server.port.protocol), server.route_name);
    chain.http->stat_prefix = server.server.name;
    chain.sni_hosts.assign(server.sni_hosts.begin(), server.sni_hosts.end());
    chain.transport_socket = TlsSocket(server.server);
    return chain;
  }

  // Servers of many hosts are alike, one after the other.
  const std::string& TlsSocket(const config::Server& server) {
    const bool tcp = config::IsTcpServerWithTlsTermination(server);
    if (last_tls_ == nullptr || last_tcp_ != tcp || !(*last_tls_ == *server.tls)) {
      last_socket_ = ServerTlsSocket(*server.tls, proxy_, push_.mesh(), push_.profile(), tcp);
      last_tls_ = &*server.tls;
      last_tcp_ = tcp;
    }
    return last_socket_;
  }

  void AddTcpServer(const GatewayServer& server, uint32_t port, std::vector<FilterChainOptions>& out) {
    if (!server.server.tls || !config::IsPassThroughServer(server.server)) {
      FilterChainOptions chain;
      chain.network_filters = TcpRouteFilters(server, &chain.ahead);
      if (chain.network_filters.empty()) return;  // no VirtualService says where to
      if (server.server.tls) {
        chain.sni_hosts.assign(server.sni_hosts.begin(), server.sni_hosts.end());
        chain.transport_socket = TlsSocket(server.server);
      }
      out.push_back(std::move(chain));
    } else if (server.server.tls->mode == ServerTlsMode::kAutoPassthrough) {
      AddAutoPassthrough(server, out);
    } else {
      AddTlsRoutes(server, port, out);
    }
  }

  static Port PortOf(const config::Server& server) {
    return {server.port.name, static_cast<int>(server.port.number), ParseProtocol(server.port.protocol)};
  }

  // `ahead`: of FilterChainOptions. The first TCP route that any VirtualService of the gateway has for the server.
  FilterStack TcpRouteFilters(const GatewayServer& server, size_t* ahead) const {
    for (const auto& rule : push_.VirtualServicesForGateway(proxy_.config_namespace, server.gateway_name)) {
      if (!ServesHostsOf(server.server, *rule)) continue;
      for (const config::TcpRoute& route : rule->spec.tcp) {
        const bool matches =
            route.match.empty() || std::any_of(route.match.begin(), route.match.end(), [&](const auto& match) {
              return MatchesServer(match, server.server, server.gateway_name);
            });
        if (!matches) continue;
        FilterStack out;
        if (scope_.istio_filters && server.server.tls && server.server.tls->mode == ServerTlsMode::kIstioMutual) {
          out.push_back(MetadataExchangeFilter(push_));
          *ahead = out.size();
        }
        for (std::string& filter : scope_.network_filters.ToRoute(route.route, PortOf(server.server), rule->meta)) {
          out.push_back(std::move(filter));
        }
        return out;
      }
      // A TLSRoute at a listener that ends TLS itself. istiod: buildGatewayNetworkFiltersFromTCPRoutes.
      const auto parent = rule->meta.annotations.find("internal.istio.io/parents");
      if (parent == rule->meta.annotations.end() || !parent->second.starts_with("TLSRoute/")) continue;
      for (const config::TlsRoute& route : rule->spec.tls) {
        if (route.match.empty()) continue;
        FilterStack out;
        for (std::string& filter : scope_.network_filters.ToRoute(route.route, PortOf(server.server), rule->meta)) {
          out.push_back(std::move(filter));
        }
        return out;
      }
    }
    return {};
  }

  void AddTlsRoutes(const GatewayServer& server, uint32_t port, std::vector<FilterChainOptions>& out) {
    for (const auto& rule : push_.VirtualServicesForGateway(proxy_.config_namespace, server.gateway_name)) {
      if (!ServesHostsOf(server.server, *rule)) continue;
      for (const config::TlsRoute& route : rule->spec.tls) {
        for (const config::TlsMatchAttributes& match : route.match) {
          if (!MatchesServer(match, server.server, server.gateway_name)) continue;
          // Envoy refuses two chains with the same name.
          if (!TakeSniHosts(match.sni_hosts, server.server.bind, tls_hosts_[port])) continue;
          FilterChainOptions chain;
          chain.sni_hosts = match.sni_hosts;
          chain.network_filters = scope_.network_filters.ToRoute(route.route, PortOf(server.server), rule->meta);
          out.push_back(std::move(chain));
        }
      }
    }
  }

  // All of them, or none if one is taken at this bind. istiod: model.CheckDuplicates.
  static bool TakeSniHosts(const std::vector<std::string>& hosts, const std::string& bind,
                           std::map<std::string, std::string>& taken) {
    for (const std::string& host : hosts) {
      const auto it = taken.find(host);
      if (it != taken.end() && it->second == bind) return false;
    }
    for (const std::string& host : hosts) taken[host] = bind;
    return true;
  }

  // Cross-network traffic: the name asked for is the cluster to go to. Istio's ALPNs are required, so that only mTLS
  // passes; EDS for these clusters leaves out plain-text endpoints. istiod: builtAutoPassthroughFilterChains.
  void AddAutoPassthrough(const GatewayServer& server, std::vector<FilterChainOptions>& out) const {
    if (push_.env().features.legacy_auto_passthrough) {
      // Whatever name is asked for. istiod: buildOutboundAutoPassthroughFilterStack
      FilterChainOptions& chain = out.emplace_back();
      chain.sni_hosts.assign(server.sni_hosts.begin(), server.sni_hosts.end());
      chain.network_filters = scope_.network_filters.ToSni(PortOf(server.server));
      return;
    }
    for (const ServiceRef& service : proxy_.sidecar_scope->services()) {
      if (service->mesh_external) continue;
      const bool served = std::any_of(server.sni_hosts.begin(), server.sni_hosts.end(),
                                      [&](std::string_view host) { return HostSubsetOf(service->hostname, host); });
      if (!served) continue;
      const ConsolidatedDestRuleRef rule =
          proxy_.sidecar_scope->DestinationRule(TrafficDirection::kOutbound, proxy_, service->hostname);
      for (const Port& port : service->ports) {
        if (port.protocol == Protocol::kUdp) continue;
        out.push_back(AutoPassthroughChain(*service, "", port));
        if (rule == nullptr) continue;
        for (const config::Subset& subset : rule->rule->spec.subsets) {
          out.push_back(AutoPassthroughChain(*service, subset.name, port));
        }
      }
    }
  }

  FilterChainOptions AutoPassthroughChain(const Service& service, std::string_view subset, const Port& port) const {
    FilterChainOptions chain;
    chain.sni_hosts = {BuildDnsSrvSubsetKey(TrafficDirection::kOutbound, subset, service.hostname, port.port)};
    chain.match.emplace().application_protocols = AllMutualTlsAlpns();
    chain.unguarded = push_.profile().Has(Change::kPassthroughUnguarded);
    chain.network_filters = scope_.network_filters.ToService(service, subset, port, port, true);
    return chain;
  }

  ListenerScope& scope_;
  const Proxy& proxy_;
  const PushContext& push_;
  std::vector<ListenerOptions> listeners_;
  std::map<uint32_t, std::map<std::string, std::string>> tls_hosts_;  // port -> SNI host -> bind
  const config::ServerTlsSettings* last_tls_ = nullptr;
  bool last_tcp_ = false;
  std::string last_socket_;
};

}  // namespace

bool ServesHostsOf(const config::Server& server, const config::TypedConfig<config::VirtualService>& rule) {
  for (const std::string& served : server.hosts) {
    std::string_view host = served;
    if (const size_t slash = host.find('/'); slash != std::string_view::npos) {
      if (host.substr(0, slash) != rule.meta.ns) continue;
      host = host.substr(slash + 1);
    }
    for (const std::string& wanted : rule.spec.hosts) {
      if (HostMatches(host, wanted)) return true;
    }
  }
  return false;
}

std::vector<Listener> BuildGatewayListeners(ListenerScope& scope) {
  if (scope.proxy.merged_gateway == nullptr || scope.proxy.sidecar_scope == nullptr) return {};
  return GatewayListeners(scope).Build();
}

}  // namespace wavetank::pilot
