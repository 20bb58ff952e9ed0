#include "core/gen/gateway_routes.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/gen/default_routes.h"
#include "core/model/gateway.h"
#include "core/model/host_name.h"
#include "core/model/push_context.h"

namespace wavetank::pilot {
namespace {

using Rule = config::TypedConfig<config::VirtualService>;

class GatewayRoutes {
 public:
  GatewayRoutes(const Proxy& proxy, const PushContext& push)
      : proxy_(proxy), push_(push), retry_policy_(RetryPolicy(push.mesh().default_http_retry_policy)) {}

  std::vector<VirtualHost> Build(const std::vector<const GatewayServer*>& servers) {
    for (const GatewayServer* server : servers) {
      for (const config::VirtualServiceRef& rule :
           push_.VirtualServicesForGateway(proxy_.config_namespace, server->gateway_name)) {
        AddRule(*server, *rule);
      }
      if (server->server.tls && server->server.tls->https_redirect) Redirect(server->server);
    }
    if (hosts_.empty()) {
      // A virtual host without routes: Envoy answers 404.
      VirtualHost blackhole;
      blackhole.name = DomainName("blackhole", static_cast<int>(servers[0]->server.port.number));
      blackhole.domains = {"*"};
      blackhole.include_attempt_count = false;
      return {std::move(blackhole)};
    }
    std::vector<VirtualHost> out = Collapse();
    for (VirtualHost& host : out) {
      // Routes of several rules for one host: what catches all must not hide the others.
      std::stable_partition(host.routes.begin(), host.routes.end(),
                            [](const EncodedRouteRef& route) { return !route->catch_all; });
    }
    SortByName(out);
    return out;
  }

 private:
  // Lists of the very same routes; as hash, by addresses: it decides nothing but where to look.
  struct SameRoutes {
    using is_transparent = void;
    size_t operator()(absl::Span<const EncodedRouteRef> routes) const {
      size_t hash = routes.size();
      for (const EncodedRouteRef& route : routes) hash = hash * 31 + std::hash<const void*>()(route.get());
      return hash;
    }
    bool operator()(absl::Span<const EncodedRouteRef> a, absl::Span<const EncodedRouteRef> b) const { return a == b; }
  };

  // A host on its way to a virtual host.
  struct Host {
    int port = 0;  // of the first server that has it
    bool require_tls = false;
    EncodedRoutes routes;
  };

  void AddRule(const GatewayServer& server, const Rule& rule) {
    const HostList hosts = IntersectHosts(HostsForNamespace(server.server.hosts, rule.meta.ns), rule.spec.hosts);
    if (hosts.empty()) return;
    const std::vector<EncodedRouteRef>& routes = RoutesOf(server, rule);
    if (routes.empty()) return;
    for (std::string_view hostname : hosts) {
      Host& host = HostOf(hostname, server.server);
      host.routes.insert(host.routes.end(), routes.begin(), routes.end());
      if (server.server.tls && server.server.tls->https_redirect) host.require_tls = true;
    }
  }

  Host& HostOf(std::string_view hostname, const config::Server& server) {
    const auto [at, added] = hosts_.try_emplace(absl::string_view(hostname.data(), hostname.size()));
    if (added) at->second.port = static_cast<int>(server.port.number);
    return at->second;
  }

  // One rule's routes are the same for all servers of a gateway: those of the first server's port.
  const std::vector<EncodedRouteRef>& RoutesOf(const GatewayServer& server, const Rule& rule) {
    std::vector<EncodedRouteRef>& routes = routes_[{server.gateway_name, &rule}];
    if (!routes.empty()) return routes;
    absl::InlinedVector<std::pair<std::string, ServiceRef>, 2> services;  // keeps what the scope hands out alive
    const HttpRouteScope scope{proxy_,
                               push_.mesh(),
                               server.gateway_name,
                               static_cast<int>(server.server.port.number),
                               server.server.tls.has_value(),
                               retry_policy_,
                               [&](std::string_view host) -> const Service* {
                                 for (const auto& [name, service] : services) {
                                   if (name == host) return service.get();
                                 }
                                 return services.emplace_back(host, ServiceFor(host, rule.meta.ns)).second.get();
                               }};
    routes = BuildHttpRoutes(scope, rule);
    return routes;
  }

  // The rule's own namespace first, as far as the router may see it.
  ServiceRef ServiceFor(std::string_view host, const std::string& ns) const {
    ServiceRef own = push_.ServiceInNamespace(host, ns);
    if (own != nullptr && push_.IsServiceVisible(*own, proxy_.config_namespace)) return own;
    return push_.ServiceForHostname(proxy_, host);
  }

  void Redirect(const config::Server& server) {
    for (const std::string& hostname : server.hosts) HostOf(hostname, server).require_tls = true;
  }

  // Hosts with the very same routes become one, named after the most specific. istiod: collapseDuplicateRoutes.
  std::vector<VirtualHost> Collapse() {
    std::vector<std::pair<std::string_view, Host*>> sorted;
    sorted.reserve(hosts_.size());
    for (auto& [hostname, host] : hosts_) {  // order: sorted below
      sorted.emplace_back(std::string_view(hostname.data(), hostname.size()), &host);
    }
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return HostMoreSpecific(a.first, b.first); });
    std::vector<VirtualHost> out;
    out.reserve(sorted.size());
    absl::flat_hash_map<absl::Span<const EncodedRouteRef>, size_t, SameRoutes, SameRoutes> known;
    known.reserve(sorted.size());
    for (const auto& [hostname, host] : sorted) {
      const auto it = known.find(host->routes);
      if (it != known.end() && out[it->second].require_tls == host->require_tls) {
        out[it->second].domains.emplace_back(hostname);
        continue;
      }
      known.insert_or_assign(absl::Span<const EncodedRouteRef>(host->routes), out.size());
      VirtualHost& made = out.emplace_back();
      made.name = DomainName(hostname, host->port);
      made.domains.emplace_back(hostname);
      made.routes = host->routes;  // a copy: `known` looks at the host's
      made.require_tls = host->require_tls;
    }
    return out;
  }

  const Proxy& proxy_;
  const PushContext& push_;
  const std::string retry_policy_;
  // By gateway's name, which its servers share for the time of the generation, and rule.
  absl::flat_hash_map<std::pair<absl::string_view, const Rule*>, std::vector<EncodedRouteRef>> routes_;
  absl::flat_hash_map<absl::string_view, Host> hosts_;  // by names that servers and rules have
};

}  // namespace

RouteConfiguration BuildGatewayRoutes(const Proxy& proxy, const PushContext& push, const std::string& route_name) {
  RouteConfiguration out;
  out.name = route_name;
  const MergedGateway* gateway = proxy.merged_gateway.get();
  const auto servers = gateway == nullptr ? decltype(gateway->servers_by_route_name.begin()){}
                                          : gateway->servers_by_route_name.find(route_name);
  // A listener that drains may still ask for the routes of a Gateway that is gone.
  if (gateway == nullptr || servers == gateway->servers_by_route_name.end()) {
    out.empty = true;
    return out;
  }
  out.virtual_hosts = GatewayRoutes(proxy, push).Build(servers->second);
  return out;
}

}  // namespace wavetank::pilot
