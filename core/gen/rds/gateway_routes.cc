#include "core/gen/rds/gateway_routes.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/gen/rds/default_routes.h"
#include "core/gen/rds/patch_routes.h"
#include "core/gen/rds/virtual_hosts.h"
#include "core/model/addresses.h"
#include "core/model/gateway.h"
#include "core/model/host_name.h"
#include "core/push/push_context.h"

namespace wavetank::pilot {
namespace {

using Rule = config::TypedConfig<config::VirtualService>;

// One route configuration after the other: a Gateway with TLS has one per server, so what one needed of memory serves
// the next. Names are those of servers and rules, which live longer.
class GatewayRoutes {
 public:
  GatewayRoutes(const Proxy& proxy, const PushContext& push)
      : proxy_(proxy),
        push_(push),
        headers_(ProxyHeadersOf(proxy, push)),
        retry_policy_(RetryPolicy(push.mesh().default_http_retry_policy, push)) {}

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
    if (servers->size() > kFew) MakeRoom(*servers);
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
        out.Add({host.name, host.domains, routes, hosts_[host.host].require_tls, headers_.attempt_count});
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
      uint64_t hash = routes.size();
      for (const EncodedRoute* route : routes) {
        hash = (hash ^ reinterpret_cast<uintptr_t>(route)) * 0x9E3779B97F4A7C15u;  // address: looked up only
        hash ^= hash >> 32;
      }
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
  using HostGroup = absl::InlinedVector<size_t, 4>;  // hosts with the very same routes
  struct VirtualHost {
    size_t host = 0;  // the most specific of them
    std::string_view name;
    absl::InlinedVector<std::string_view, 4> domains;
  };
  // Up to so many are found without a table: most configurations are of one server.
  static constexpr size_t kFew = 8;

  const GatewayServers* ServersOf(const std::string& route_name) const {
    if (proxy_.merged_gateway == nullptr) return nullptr;
    const auto& by_name = proxy_.merged_gateway->servers_by_route_name;
    const auto it = by_name.find(route_name);
    return it == by_name.end() ? nullptr : &it->second;
  }

  // What a rule says at one gateway, for all of its servers.
  struct RuleAtGateway {
    config::VirtualServiceRef rule;
    const std::vector<std::string>* server_hosts = nullptr;  // of which `names` are
    HostList names;                                          // that fall under the server's hosts and the rule's
    std::vector<EncodedRouteRef> routes;
    size_t configuration = 0;  // for which they were made
    bool of_listener = false;  // they look at the listener: not for other configurations
  };
  using RulesAtGateway = std::vector<RuleAtGateway>;

  void Clear() {
    ++configuration_;
    virtual_hosts_.clear();
    hosts_.clear();
    by_hostname_.clear();
    groups_.clear();
    same_.clear();  // looks at hosts
  }

  void MakeRoom(const GatewayServers& servers) {
    size_t hosts = 0;
    for (const GatewayServer* server : servers) hosts += server->server.hosts.size();
    hosts_.reserve(hosts);
    by_hostname_.reserve(hosts);
    rules_.reserve(servers.size());
    groups_.reserve(servers.size());
    same_.reserve(servers.size());
    virtual_hosts_.reserve(servers.size());
  }

  RulesAtGateway& RulesOf(std::string_view gateway) {
    const auto [at, added] = rules_.try_emplace(absl::string_view(gateway.data(), gateway.size()));
    if (added) {
      for (config::VirtualServiceRef& rule : push_.VirtualServicesForGateway(proxy_.config_namespace, gateway)) {
        at->second.emplace_back().rule = std::move(rule);
      }
    }
    return at->second;
  }

  void AddServer(const GatewayServer& server) {
    const bool redirects = server.server.tls && server.server.tls->https_redirect;
    for (RuleAtGateway& rule : RulesOf(server.gateway_name)) AddRule(server, rule, redirects);
    if (!redirects) return;
    for (const std::string& hostname : server.server.hosts) HostOf(hostname, server.server).require_tls = true;
  }

  void AddRule(const GatewayServer& server, RuleAtGateway& at, bool redirects) {
    if (at.server_hosts == nullptr || *at.server_hosts != server.server.hosts) {
      at.server_hosts = &server.server.hosts;
      at.names = IntersectHosts(HostsForNamespace(server.server.hosts, at.rule->meta.ns), at.rule->spec.hosts);
    }
    if (at.names.empty()) return;
    // One rule's routes are the same for all servers of a gateway in one configuration: those of the first server's
    // port.
    if (at.routes.empty() || (at.of_listener && at.configuration != configuration_)) Translate(server, at);
    if (at.routes.empty()) return;
    for (std::string_view hostname : at.names) {
      Host& host = HostOf(hostname, server.server);
      for (const EncodedRouteRef& route : at.routes) host.routes.push_back(route.get());
      if (redirects) host.require_tls = true;
    }
  }

  Host& HostOf(std::string_view hostname, const config::Server& server) {
    const auto key = [](std::string_view name) { return absl::string_view(name.data(), name.size()); };
    if (hosts_.size() < kFew) {
      for (Host& host : hosts_) {
        if (host.hostname == hostname) return host;
      }
    } else {
      if (by_hostname_.empty()) {
        for (size_t i = 0; i < hosts_.size(); ++i) by_hostname_.emplace(key(hosts_[i].hostname), i);
      }
      const auto [at, added] = by_hostname_.try_emplace(key(hostname), hosts_.size());
      if (!added) return hosts_[at->second];
    }
    Host& host = hosts_.emplace_back();
    host.hostname = hostname;
    host.port = static_cast<int>(server.port.number);
    return host;
  }

  void Translate(const GatewayServer& server, RuleAtGateway& at) const {
    absl::InlinedVector<ServiceRef, 4> services;  // keeps what the scope hands out alive
    const RouteListener listener(static_cast<int>(server.server.port.number), server.server.tls.has_value());
    const HttpRouteScope scope{
        proxy_, push_, server.gateway_name, listener, retry_policy_, [&](std::string_view host) -> const Service* {
          return services.emplace_back(ServiceFor(host, at.rule->meta.ns)).get();
        }};
    at.routes = BuildHttpRoutes(scope, *at.rule);
    at.configuration = configuration_;
    at.of_listener = listener.asked();
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
    const bool collapses = push_.env().features.route_collapse;
    size_t text = 0;
    for (size_t i = 0; i < hosts_.size(); ++i) {
      GroupOf(hosts_[i]).push_back(i);
      text += hosts_[i].hostname.size() + kPortText;
    }
    names_.clear();
    names_.reserve(text);  // so that names stay where they are
    for (HostGroup& group : groups_) {
      std::sort(group.begin(), group.end(),
                [&](size_t a, size_t b) { return HostMoreSpecific(hosts_[a].hostname, hosts_[b].hostname); });
      const Host* before = nullptr;
      for (const size_t i : group) {
        const Host& host = hosts_[i];
        if (before != nullptr && collapses && before->require_tls == host.require_tls) {
          virtual_hosts_.back().domains.push_back(host.hostname);
          continue;
        }
        before = &host;
        const size_t start = names_.size();
        AppendHostPort(host.hostname, host.port, names_);
        virtual_hosts_.push_back({i, std::string_view(names_).substr(start), {host.hostname}});
      }
    }
    std::sort(virtual_hosts_.begin(), virtual_hosts_.end(),
              [](const VirtualHost& a, const VirtualHost& b) { return a.name < b.name; });  // no two have one name
  }

  // That with the host's routes. Those of one rule mostly come one after the other.
  HostGroup& GroupOf(const Host& host) {
    const RouteSpan routes(host.routes);
    const auto has = [&](const HostGroup& group) { return RouteSpan(hosts_[group.front()].routes) == routes; };
    if (!groups_.empty() && has(groups_.back())) return groups_.back();
    if (hosts_.size() <= kFew) {
      const auto known = std::find_if(groups_.begin(), groups_.end(), has);
      return known == groups_.end() ? groups_.emplace_back() : *known;
    }
    const auto [at, added] = same_.try_emplace(routes, groups_.size());
    return added ? groups_.emplace_back() : groups_[at->second];
  }

  static constexpr size_t kPortText = 13;  // brackets, a colon, a number

  const Proxy& proxy_;
  const PushContext& push_;
  const ProxyHeaders headers_;
  const std::string retry_policy_;
  absl::flat_hash_map<absl::string_view, RulesAtGateway> rules_;  // by gateway's name, which its servers share
  size_t configuration_ = 0;                                      // counts them
  std::vector<Host> hosts_;                                       // in order of first use
  absl::flat_hash_map<absl::string_view, size_t> by_hostname_;    // empty for few
  std::vector<HostGroup> groups_;
  absl::flat_hash_map<RouteSpan, size_t, SameRoutes, SameRoutes> same_;  // groups by routes; empty for few hosts
  std::vector<VirtualHost> virtual_hosts_;
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
