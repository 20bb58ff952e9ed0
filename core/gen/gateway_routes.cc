#include "core/gen/gateway_routes.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/gen/default_routes.h"
#include "core/gen/patch_routes.h"
#include "core/gen/virtual_hosts.h"
#include "core/model/addresses.h"
#include "core/model/gateway.h"
#include "core/model/host_name.h"
#include "core/model/push_context.h"

namespace wavetank::pilot {
namespace {

using Rule = config::TypedConfig<config::VirtualService>;

// One route configuration after the other: a Gateway with TLS has one per server, so what one needed of memory serves
// the next. Names are those of servers and rules, which live longer.
class GatewayRoutes {
 public:
  GatewayRoutes(const Proxy& proxy, const PushContext& push)
      : proxy_(proxy), push_(push), retry_policy_(RetryPolicy(push.mesh().default_http_retry_policy)) {}

  // `encoded` is emptied first.
  void Encode(const std::string& route_name, std::string* encoded) {
    RouteConfigurationWriter out(route_name, encoded);
    const GatewayServers* servers = ServersOf(route_name);
    // A listener that drains may still ask for the routes of a Gateway that is gone.
    if (servers == nullptr) {
      out.FinishEmpty();
      return;
    }
    Clear();
    for (const GatewayServer* server : *servers) AddServer(*server);
    if (hosts_.empty()) {
      AddBlackHole(*servers->front(), out);
    } else {
      Collapse();
      for (VirtualHost& host : virtual_hosts_) {
        // Routes of several rules for one host: what catches all must not hide the others.
        EncodedRouteList& routes = hosts_[host.host].routes;
        const auto is_first = [](const EncodedRoute* route) { return !route->catch_all; };
        if (!std::is_partitioned(routes.begin(), routes.end(), is_first)) {
          std::stable_partition(routes.begin(), routes.end(), is_first);
        }
        out.Add({host.name, host.domains, routes, hosts_[host.host].require_tls});
      }
    }
    out.Finish();
  }

 private:
  using EncodedRouteList = absl::InlinedVector<const EncodedRoute*, 1>;
  using RouteSpan = absl::Span<const EncodedRoute* const>;

  // Lists of the very same routes; as hash, by addresses: it decides nothing but where to look.
  struct SameRoutes {
    using is_transparent = void;
    size_t operator()(RouteSpan routes) const {
      size_t hash = routes.size();
      for (const EncodedRoute* route : routes) hash = hash * 31 + std::hash<const void*>()(route);
      return hash;
    }
    bool operator()(RouteSpan a, RouteSpan b) const { return a == b; }
  };

  // A host on its way to a virtual host.
  struct Host {
    std::string_view hostname;
    int port = 0;  // of the first server that has it
    bool require_tls = false;
    EncodedRouteList routes;
  };
  struct VirtualHost {
    size_t host = 0;  // the most specific of them
    std::string_view name;
    absl::InlinedVector<std::string_view, 4> domains;
  };

  const GatewayServers* ServersOf(const std::string& route_name) const {
    if (proxy_.merged_gateway == nullptr) return nullptr;
    const auto& by_name = proxy_.merged_gateway->servers_by_route_name;
    const auto it = by_name.find(route_name);
    return it == by_name.end() ? nullptr : &it->second;
  }

  // A rule's routes for one gateway.
  struct Translated {
    std::vector<EncodedRouteRef> routes;
    size_t configuration = 0;  // for which they were made
    bool of_listener = false;  // they look at the listener: not for other configurations
  };

  void Clear() {
    ++configuration_;
    same_.clear();  // looks at hosts
    virtual_hosts_.clear();
    hosts_.clear();
    by_hostname_.clear();
  }

  void AddServer(const GatewayServer& server) {
    const bool redirects = server.server.tls && server.server.tls->https_redirect;
    for (const config::VirtualServiceRef& rule :
         push_.VirtualServicesForGateway(proxy_.config_namespace, server.gateway_name)) {
      AddRule(server, *rule, redirects);
    }
    if (!redirects) return;
    for (const std::string& hostname : server.server.hosts) HostOf(hostname, server.server).require_tls = true;
  }

  void AddRule(const GatewayServer& server, const Rule& rule, bool redirects) {
    const HostList names = IntersectHosts(HostsForNamespace(server.server.hosts, rule.meta.ns), rule.spec.hosts);
    if (names.empty()) return;
    const std::vector<EncodedRouteRef>& routes = RoutesOf(server, rule);
    if (routes.empty()) return;
    for (std::string_view hostname : names) {
      Host& host = HostOf(hostname, server.server);
      for (const EncodedRouteRef& route : routes) host.routes.push_back(route.get());
      if (redirects) host.require_tls = true;
    }
  }

  Host& HostOf(std::string_view hostname, const config::Server& server) {
    const auto [at, added] =
        by_hostname_.try_emplace(absl::string_view(hostname.data(), hostname.size()), hosts_.size());
    if (!added) return hosts_[at->second];
    Host& host = hosts_.emplace_back();
    host.hostname = hostname;
    host.port = static_cast<int>(server.port.number);
    return host;
  }

  // One rule's routes are the same for all servers of a gateway in one configuration: those of the first server's
  // port.
  const std::vector<EncodedRouteRef>& RoutesOf(const GatewayServer& server, const Rule& rule) {
    const absl::string_view gateway(server.gateway_name.data(), server.gateway_name.size());
    Translated& known = routes_[{gateway, &rule}];
    if (!known.routes.empty() && (!known.of_listener || known.configuration == configuration_)) return known.routes;
    absl::InlinedVector<ServiceRef, 4> services;  // keeps what the scope hands out alive
    const RouteListener listener(static_cast<int>(server.server.port.number), server.server.tls.has_value());
    const HttpRouteScope scope{proxy_,
                               push_.mesh(),
                               server.gateway_name,
                               listener,
                               retry_policy_,
                               [&](std::string_view host) -> const Service* {
                                 return services.emplace_back(ServiceFor(host, rule.meta.ns)).get();
                               }};
    known = {BuildHttpRoutes(scope, rule), configuration_, listener.asked()};
    return known.routes;
  }

  // The rule's own namespace first, as far as the router may see it.
  ServiceRef ServiceFor(std::string_view host, const std::string& ns) const {
    ServiceRef own = push_.ServiceInNamespace(host, ns);
    if (own != nullptr && push_.IsServiceVisible(*own, proxy_.config_namespace)) return own;
    return push_.ServiceForHostname(proxy_, host);
  }

  // A virtual host without routes: Envoy answers 404.
  static void AddBlackHole(const GatewayServer& server, RouteConfigurationWriter& out) {
    static constexpr std::string_view kEveryDomain[] = {"*"};
    const std::string name = JoinHostPort("blackhole", static_cast<int>(server.server.port.number));
    VirtualHostView host{name, kEveryDomain, {}};
    host.include_attempt_count = false;
    out.Add(host);
  }

  // Hosts with the very same routes become one, named after the most specific. istiod: collapseDuplicateRoutes.
  void Collapse() {
    sorted_.resize(hosts_.size());
    size_t text = 0;
    for (size_t i = 0; i < hosts_.size(); ++i) {
      sorted_[i] = i;
      text += hosts_[i].hostname.size() + kPortText;
    }
    std::sort(sorted_.begin(), sorted_.end(),
              [&](size_t a, size_t b) { return HostMoreSpecific(hosts_[a].hostname, hosts_[b].hostname); });
    names_.clear();
    names_.reserve(text);  // so that names stay where they are
    for (const size_t i : sorted_) {
      const Host& host = hosts_[i];
      const auto it = same_.find(RouteSpan(host.routes));
      if (it != same_.end() && hosts_[virtual_hosts_[it->second].host].require_tls == host.require_tls) {
        virtual_hosts_[it->second].domains.push_back(host.hostname);
        continue;
      }
      same_.insert_or_assign(RouteSpan(host.routes), virtual_hosts_.size());
      const size_t start = names_.size();
      AppendHostPort(host.hostname, host.port, names_);
      virtual_hosts_.push_back({i, std::string_view(names_).substr(start), {host.hostname}});
    }
    std::sort(virtual_hosts_.begin(), virtual_hosts_.end(),
              [](const VirtualHost& a, const VirtualHost& b) { return a.name < b.name; });  // no two have one name
  }
  static constexpr size_t kPortText = 13;  // brackets, a colon, a number

  const Proxy& proxy_;
  const PushContext& push_;
  const std::string retry_policy_;
  // By gateway's name, which its servers share, and rule.
  absl::flat_hash_map<std::pair<absl::string_view, const Rule*>, Translated> routes_;
  size_t configuration_ = 0;  // counts them
  std::vector<Host> hosts_;   // in order of first use
  absl::flat_hash_map<absl::string_view, size_t> by_hostname_;
  std::vector<VirtualHost> virtual_hosts_;
  absl::flat_hash_map<RouteSpan, size_t, SameRoutes, SameRoutes> same_;
  std::vector<size_t> sorted_;
  std::string names_;
};

}  // namespace

std::vector<Resource> BuildGatewayRoutes(const Proxy& proxy, const PushContext& push, const EnvoyPatches* patches,
                                         const std::vector<std::string>& route_names, std::string* buffer) {
  GatewayRoutes routes(proxy, push);
  ResourceMaker maker;
  std::vector<Resource> out;
  out.reserve(route_names.size());
  for (const std::string& name : route_names) {
    routes.Encode(name, buffer);
    if (PatchesRoutes(patches)) {
      *buffer = PatchRoutes(*patches, config::EnvoyFilter::Context::kGateway, proxy, *buffer);
    }
    out.push_back(maker.Make(name, *buffer));
  }
  return out;
}

}  // namespace wavetank::pilot
