#include "core/gen/rds/sidecar_routes.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <optional>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/containers/text_arena.h"
#include "core/gen/rds/default_routes.h"
#include "core/gen/rds/patch_route_list.h"
#include "core/gen/rds/patch_routes.h"
#include "core/gen/view/destination_cluster.h"
#include "core/gen/view/listener_types.h"
#include "core/gen/view/proxy_view.h"
#include "core/model/addresses.h"
#include "core/model/host_name.h"
#include "core/model/proxyless.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "core/push/virtual_service_index.h"
#include "core/xds/cache.h"

namespace wavetank::pilot {
namespace {

constexpr int kDefaultHttpPort = 80;

bool CarriesHttp(const Port& port, const PushContext& push) {
  return IsHttp(port.protocol) || (push.env().features.sniffs_outbound && IsUnsupported(port.protocol));
}

// A service of the egress listener, with those of its ports that the route configuration is about.
struct RoutedService {
  const Service* service = nullptr;
  const Service* registered = nullptr;  // the same as its registry has it, whose changes count
  const Port* only_port = nullptr;      // null: all of them
  size_t place = 0;                     // among the egress listener's, from 0 on
};

// A service without VirtualService is a group of its own; so are most.
struct VirtualHostGroup {
  int port = 0;
  absl::InlinedVector<const RoutedService*, 1> services;
  std::vector<std::string> rule_hosts;  // hosts of a VirtualService that no service has
  EncodedRoutes routes;
  size_t room_for_routes = 0;
};

std::optional<int> ParsePort(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return port;
}

// Its routes hold for some workloads only, so they cannot be shared. istiod: Cache.Cacheable.
bool DependsOnSource(const config::VirtualService& rule) {
  for (const config::HttpRoute& route : rule.http) {
    for (const config::HttpMatchRequest& match : route.match) {
      if (!match.source_labels.empty() || !match.source_namespace.empty()) return true;
    }
  }
  return false;
}

bool HasCapitals(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

template <typename Visit>
void ForEachPort(const RoutedService& routed, Visit visit) {
  if (routed.only_port != nullptr) {
    visit(*routed.only_port);
    return;
  }
  for (const Port& port : routed.service->ports) visit(port);
}

}  // namespace

struct SidecarRoutes::Inputs {
  std::string route_name;
  int listen_port = 0;  // 0: the HTTP proxy's or a unix socket's
  bool sniffed = false;
  bool small_letters = false;                                 // Change::kHostsInSmallLetters
  std::deque<Service> written;                                // services that are not written so, as they are then
  absl::btree_map<std::string_view, RoutedService> services;  // by host
  const std::vector<config::VirtualServiceRef>* all_rules = nullptr;
  // The first rule with each host, all but wildcards and wildcards; filled when a wildcard asks.
  using RuleByHost = std::map<std::string_view, const config::TypedConfig<config::VirtualService>*>;
  mutable std::optional<std::pair<RuleByHost, RuleByHost>> rules_by_host;
  std::vector<const config::TypedConfig<config::VirtualService>*> rules;  // those with a say in these services
  std::vector<ConsolidatedDestRuleRef> hash_rules;                        // DestinationRules that routes hash by

  std::string AsCompared(const std::string& host) const { return small_letters ? absl::AsciiStrToLower(host) : host; }

  void Take(const EgressListener& egress) {
    const bool http_proxy = egress.listener != nullptr && egress.listener->port &&
                            ParseProtocol(egress.listener->port->protocol) == Protocol::kHttpProxy;
    if (http_proxy) listen_port = 0;
    for (const ServiceRef& service : egress.services) {
      const Port* port = listen_port == 0 ? nullptr : service->FindPort(listen_port);
      if (listen_port != 0 && port == nullptr) continue;
      const Service* named = service.get();
      if (small_letters && HasCapitals(named->hostname)) {
        Service& copy = written.emplace_back(*named);
        copy.hostname = absl::AsciiStrToLower(copy.hostname);
        named = &copy;
      }
      RoutedService& routed =
          services.try_emplace(named->hostname, RoutedService{.place = services.size()}).first->second;
      routed.service = named;
      routed.registered = service.get();
      routed.only_port = port;
    }
    all_rules = &egress.virtual_services.list();
    SelectRules();
  }

  // istiod: selectVirtualServices. On port 80 every rule counts, hosts without service included.
  void SelectRules() {
    for (const config::VirtualServiceRef& rule : *all_rules) {
      const auto concerns = [&](const std::string& as_written) {
        const std::string host = AsCompared(as_written);
        if (services.contains(host)) return true;
        const bool any = IsWildcard(host);
        return std::any_of(services.begin(), services.end(), [&](const auto& service) {
          return (any || IsWildcard(service.first)) && HostMatches(host, service.first);
        });
      };
      if (listen_port == kDefaultHttpPort || std::any_of(rule->spec.hosts.begin(), rule->spec.hosts.end(), concerns)) {
        rules.push_back(rule.get());
      }
    }
  }

  // The rule that names the host best. istiod: computeWildcardHostVirtualServiceIndex, MostSpecificHostMatch.
  const config::TypedConfig<config::VirtualService>* BestRuleFor(std::string_view host) const {
    if (!rules_by_host) {
      rules_by_host.emplace();
      for (const config::VirtualServiceRef& rule : *all_rules) {
        for (const std::string& name : rule->spec.hosts) {
          (IsWildcard(name) ? rules_by_host->second : rules_by_host->first).try_emplace(name, rule.get());
        }
      }
    }
    const auto& [exact, wildcards] = *rules_by_host;
    const bool any = IsWildcard(host);
    const RuleByHost& same = any ? wildcards : exact;
    if (const auto it = same.find(host); it != same.end()) return it->second;
    if (any) host.remove_prefix(1);
    RuleByHost::const_iterator best = wildcards.end();
    for (auto it = wildcards.begin(); it != wildcards.end(); ++it) {
      const bool longer = best == wildcards.end() || it->first.size() > best->first.size();
      if (longer && host.ends_with(it->first.substr(1))) best = it;
    }
    return best == wildcards.end() ? nullptr : best->second;
  }

  void CollectHashRules(const Proxy& proxy) {
    for (const auto* rule : rules) {
      for (auto& found : HashRulesOf(proxy, rule->spec)) hash_rules.push_back(std::move(found));
    }
    for (const auto& [host, routed] : services) {
      ForEachPort(routed, [&, name = host](const Port& port) {
        if (!IsHttp(port.protocol) && !IsUnsupported(port.protocol)) return;
        if (auto hash = HashForService(proxy, name, port.port)) hash_rules.push_back(std::move(hash->rule));
      });
    }
  }
};

namespace {

// Builds the groups of virtual hosts, then the hosts with domains that nobody has yet.
template <typename Inputs>
class HostBuilder {
 public:
  HostBuilder(const Proxy& proxy, const PushContext& push, const Inputs& inputs)
      : proxy_(proxy),
        push_(push),
        inputs_(inputs),
        // gRPC clients match a whole Host header, port included. istiod: SidecarIgnorePort.
        ignores_port_(inputs.listen_port != 0 && !IsProxylessGrpc(proxy) && push.env().features.ignores_ports),
        retry_policy_(RetryPolicy(push.mesh().default_http_retry_policy, push)),
        attempt_count_(ProxyHeadersOf(proxy, push).attempt_count),
        by_place_(inputs.services.size()) {
    for (const auto& [host, routed] : inputs.services) by_place_[routed.place] = &routed;
  }

  std::vector<VirtualHost> Build() {
    for (const auto* rule : inputs_.rules) AddRule(*rule);
    // Services that no rule took.
    for (const RoutedService* routed : by_place_) {
      // A route may lead to an alias, but its name is served where what it stands for is.
      if (routed->service->resolution == Resolution::kAlias) continue;
      if (!ruled_.contains(routed->service->hostname)) AddService(*routed);
    }
    full_names_.reserve(groups_.size());
    for (const VirtualHostGroup& group : groups_) {
      for (const RoutedService* routed : group.services) {
        full_names_.insert(routed->service->hostname);
        if (!ignores_port_) {  // only then have domains one
          full_names_.insert(Keep(JoinHostPort(routed->service->hostname, group.port)));
        }
      }
    }
    names_.reserve(groups_.size());
    domains_.reserve(4 * groups_.size());
    std::map<int, std::vector<VirtualHost>> by_port;
    for (const VirtualHostGroup& group : groups_) {
      std::vector<VirtualHost>& out = by_port[group.port];
      for (const std::string& host : group.rule_hosts) AddHost(host, nullptr, group, out);
      for (const RoutedService* routed : group.services) AddHost(routed->service->hostname, routed, group, out);
    }
    if (inputs_.listen_port != 0) return std::move(by_port[inputs_.listen_port]);
    return MergePorts(std::move(by_port));
  }

 private:
  using Rule = config::TypedConfig<config::VirtualService>;

  void AddRule(const Rule& rule) {
    const RouteListener listener(inputs_.listen_port, false);
    const HttpRouteScope scope{proxy_,        push_,
                               "mesh",        listener,
                               retry_policy_, [&](std::string_view host) -> const Service* { return ServiceAt(host); }};
    std::vector<EncodedRouteRef> routes = BuildHttpRoutes(scope, rule);
    if (routes.empty()) return;
    std::vector<std::string> hosts;
    std::vector<const RoutedService*> services;
    SplitHosts(rule, hosts, services);
    // A route of the Gateway API is for clients of its namespace, or for services of its namespace.
    if (push_.profile().Has(Change::kGatewayApiMeshPorts) && OfGatewayApi(rule) &&
        std::none_of(services.begin(), services.end(), [&](const RoutedService* routed) {
          return routed->service->attributes.ns == rule.meta.ns || proxy_.config_namespace == rule.meta.ns;
        })) {
      return;
    }
    std::map<int, std::vector<const RoutedService*>> by_port;
    for (const RoutedService* routed : services) {
      ForEachPort(*routed, [&](const Port& port) {
        if (CarriesHttp(port, push_)) by_port[port.port].push_back(routed);
      });
    }
    // Hosts that are no service of ours are served where HTTP usually is.
    if (by_port.empty() && inputs_.listen_port == kDefaultHttpPort) by_port[kDefaultHttpPort];
    for (auto& [port, list] : by_port) {
      for (const RoutedService* routed : list) ruled_.insert(routed->service->hostname);
      groups_.push_back({port,
                         {list.begin(), list.end()},
                         hosts,
                         {routes.begin(), routes.end()},
                         patch::RoomLeft(rule.spec.http.size(), routes.size())});
    }
  }

  // A destination's only port counts among the ports at hand. The service is cut down to the route's port then.
  const Service* ServiceAt(std::string_view host) {
    const auto it = inputs_.services.find(host);
    if (it == inputs_.services.end()) return nullptr;
    if (it->second.only_port == nullptr || it->second.service->ports.size() == 1) return it->second.service;
    auto& trimmed = trimmed_[it->first];
    if (trimmed == nullptr) {
      trimmed = std::make_unique<Service>();
      trimmed->hostname = it->second.service->hostname;
      trimmed->ports = {*it->second.only_port};
      trimmed->resolution = it->second.service->resolution;
      trimmed->attributes.external_name = it->second.service->attributes.external_name;
    }
    return trimmed.get();
  }

  // istiod: separateVSHostsAndServices.
  void SplitHosts(const Rule& written, std::vector<std::string>& hosts,
                  std::vector<const RoutedService*>& services) const {
    const config::VirtualService& rule = written.spec;
    const bool best_alone = push_.profile().Has(Change::kMostSpecificWildcard);
    for (const std::string& host : rule.hosts) {
      if (IsWildcard(host)) continue;
      const auto it = inputs_.services.find(inputs_.AsCompared(host));
      if (it == inputs_.services.end()) {
        hosts.push_back(inputs_.AsCompared(host));
      } else {
        services.push_back(&it->second);
      }
    }
    for (const std::string& host : rule.hosts) {
      if (!IsWildcard(host)) continue;
      bool found = false;
      for (const RoutedService* routed : by_place_) {
        if (!HostMatches(routed->service->hostname, host)) continue;
        found = true;
        if (best_alone && inputs_.BestRuleFor(routed->service->hostname) != &written) continue;
        services.push_back(routed);
      }
      if (!found) hosts.push_back(inputs_.AsCompared(host));
    }
  }

  void AddService(const RoutedService& routed) {
    const Service& service = *routed.service;
    ForEachPort(routed, [&](const Port& port) {
      if (!CarriesHttp(port, push_)) return;
      const auto hash =
          HashForService(proxy_, service.hostname, port.port, push_.profile().Has(Change::kHashCookieAttributes));
      auto route = std::make_shared<EncodedRoute>();
      route->bytes = DefaultOutboundRoute(service.hostname, port.port, retry_policy_,
                                          hash ? std::string_view(hash->bytes) : std::string_view(),
                                          push_.env().features.request_timeout);
      route->catch_all = true;
      groups_.push_back({port.port, {&routed}, {}, {std::move(route)}});
    });
  }

  void AddHost(const std::string& hostname, const RoutedService* routed, const VirtualHostGroup& group,
               std::vector<VirtualHost>& out) {
    if (!names_.emplace(hostname, group.port).second) return;  // Envoy refuses two of one name
    VirtualHost host;
    host.name = JoinHostPort(hostname, group.port);
    host.include_attempt_count = attempt_count_;
    std::vector<std::string> short_names;
    if (routed == nullptr) {
      host.domains = {InBrackets(hostname)};
      if (IsProxylessGrpc(proxy_) || !push_.env().features.ignores_ports) host.domains.push_back(host.name);
    } else {
      // With ports ignored in matching, no domain needs one; a route for all ports does need them.
      const int port = ignores_port_ ? 0 : group.port;
      short_names = ShortNames(hostname, port, proxy_, push_);
      host.domains = DomainsOf(*routed->service, port, short_names);
    }
    std::erase_if(host.domains, [&](const std::string& domain) {
      if (domains_.contains(domain)) return true;
      // "foo.com.cluster.local" shortened must not hide a real "foo.com".
      if (full_names_.contains(domain) &&
          std::find(short_names.begin(), short_names.end(), domain) != short_names.end()) {
        return true;
      }
      domains_.insert(Keep(domain));
      return false;
    });
    if (host.domains.empty()) return;
    host.routes = group.routes;
    host.room_for_routes = group.room_for_routes;
    out.push_back(std::move(host));
  }

  // istiod: generateVirtualHostDomains. Aliases' short names join the others.
  std::vector<std::string> DomainsOf(const Service& service, int port, std::vector<std::string>& short_names) const {
    std::vector<std::string> out;
    out.reserve(4 + short_names.size());
    AddDomain(service.hostname, port, out);
    out.insert(out.end(), short_names.begin(), short_names.end());
    for (const kube::NamespacedName& alias : service.attributes.aliases) {
      AddDomain(alias.name, port, out);
      for (std::string& name : ShortNames(alias.name, port, proxy_, push_)) {
        out.push_back(name);
        short_names.push_back(std::move(name));
      }
    }
    // Pods of headless services have names below the service's.
    if (service.resolution == Resolution::kPassthrough && service.attributes.registry == Provider::kKubernetes) {
      const size_t own = out.size();
      for (size_t i = 0; i < own; ++i) out.push_back(absl::StrCat("*.", out[i]));
    }
    for (const std::string& address : AddressesForProxy(service, proxy_, push_.profile())) {
      if (!address.empty() && address != kUnspecifiedIp) AddDomain(address, port, out);
    }
    return out;
  }

  // Without a port of its own, a route configuration tells ports apart by the Host header; only port 80 may be left
  // out there. istiod: mergeAllVirtualHosts.
  static std::vector<VirtualHost> MergePorts(std::map<int, std::vector<VirtualHost>> by_port) {
    std::vector<VirtualHost> out;
    for (auto& [port, hosts] : by_port) {
      for (VirtualHost& host : hosts) {
        if (port != kDefaultHttpPort) {
          std::erase_if(host.domains, [](const std::string& domain) { return domain.find(':') == std::string::npos; });
        }
        if (!host.domains.empty()) out.push_back(std::move(host));
      }
    }
    return out;
  }

  absl::string_view Keep(std::string_view text) {
    const std::string_view kept = texts_.Keep(text);
    return {kept.data(), kept.size()};
  }

  const Proxy& proxy_;
  const PushContext& push_;
  const Inputs& inputs_;
  const bool ignores_port_;
  const std::string retry_policy_;
  const bool attempt_count_;
  // The first to claim a domain has it. istiod asks a Go map for the order: of few services (eight, in one bucket)
  // their own order, begun anywhere, which most often gives the domain to the first; of more any order.
  std::vector<const RoutedService*> by_place_;
  std::vector<VirtualHostGroup> groups_;
  std::map<std::string_view, std::unique_ptr<Service>> trimmed_;
  // Of services and of groups_, which live longer, or of texts_.
  using Names = absl::flat_hash_set<absl::string_view>;
  TextArena texts_;
  Names ruled_, domains_, full_names_;
  absl::flat_hash_set<std::pair<absl::string_view, int>> names_;  // host and port
};

// The listener stands at the service's own address: whatever the Host header says, it is for this service.
std::vector<VirtualHost> ForSniffedPort(const std::vector<VirtualHost>& hosts, const std::string& route_name) {
  const std::string_view host = std::string_view(route_name).substr(0, route_name.find(':'));
  std::vector<VirtualHost> out;
  for (const VirtualHost& candidate : hosts) {
    const bool serves = std::any_of(candidate.domains.begin(), candidate.domains.end(),
                                    [&](const std::string& domain) { return domain == route_name || domain == host; });
    if (serves) out.push_back(candidate);
  }
  if (out.size() == 1) out[0].domains = {"*"};
  return out;
}

}  // namespace

SidecarRoutes::SidecarRoutes(const Proxy& proxy, const PushContext& push, XdsCache* cache, Time push_start,
                             SharedRoutes* shared, const EnvoyPatches* patches)
    : proxy_(proxy),
      push_(push),
      headers_(ProxyHeadersOf(proxy, push)),
      cache_(cache),
      push_start_(push_start),
      shared_(shared),
      patches_(PatchesRoutes(patches) ? patches : nullptr) {
  using ApplyTo = EnvoyPatches::ApplyTo;
  if (patches_ == nullptr) return;
  envoy_filters_ = patches_->From({ApplyTo::kRouteConfiguration, ApplyTo::kVirtualHost, ApplyTo::kHttpRoute});
}
SidecarRoutes::~SidecarRoutes() = default;

std::vector<VirtualHost> SidecarRoutes::VirtualHosts(const Inputs& inputs) const {
  std::vector<VirtualHost> out = HostBuilder<Inputs>(proxy_, push_, inputs).Build();
  SortByName(out);
  return out;
}

bool SidecarRoutes::IsCacheable(const Inputs& inputs) const {
  return cache_ != nullptr && cache_->enabled() && inputs.listen_port > 0 &&
         std::none_of(inputs.all_rules->begin(), inputs.all_rules->end(),
                      [](const auto& rule) { return DependsOnSource(rule->spec); });
}

RouteCacheEntry SidecarRoutes::CacheEntry(const Inputs& inputs) const {
  const NodeMetadata& metadata = proxy_.metadata;
  RouteCacheEntry out;
  out.route_name = inputs.route_name;
  out.istio_version = metadata.istio_version;
  out.cluster = metadata.cluster_id.str();
  out.dns_domain = proxy_.dns_domain;
  out.dns_capture = metadata.dns_capture;
  out.dns_auto_allocate = metadata.dns_auto_allocate;
  out.allow_any = IsAllowAnyOutbound(proxy_);
  out.services.reserve(inputs.services.size());
  for (const auto& [host, routed] : inputs.services) out.services.push_back(routed.registered);
  out.rules = *inputs.all_rules;
  for (const auto& rule : *inputs.all_rules) {
    for (const ConfigKey& delegate : push_.DelegatesOf(rule->meta)) out.delegates.push_back(&delegate);
  }
  out.hash_rules = inputs.hash_rules;
  out.envoy_filters = envoy_filters_;
  return out;
}

Resource SidecarRoutes::BuildForPort(const std::string& route_name, int port) {
  RouteConfiguration out;
  out.name = route_name;
  out.bare = true;
  Inputs inputs;
  inputs.route_name = route_name;
  inputs.small_letters = push_.profile().Has(Change::kHostsInSmallLetters);
  inputs.listen_port = port;
  const EgressListener* egress =
      proxy_.sidecar_scope == nullptr ? nullptr : proxy_.sidecar_scope->GetEgressListenerForRds(port, route_name);
  if (egress != nullptr) {
    inputs.Take(*egress);
    out.virtual_hosts = VirtualHosts(inputs);
  }
  return {route_name, EncodeRouteConfiguration(out)};
}

std::optional<Resource> SidecarRoutes::Known(const SharedRoutes::Question& question, int port) {
  if (const Resource* hit = cache_->Get(XdsCache::Type::kRds, question.cache_key)) {
    ++cache_hits_;
    return *hit;
  }
  if (shared_ == nullptr) return std::nullopt;
  const auto known = shared_->made.find(question.shared_key);
  if (known == shared_->made.end()) return std::nullopt;
  if (port > 0) by_port_[port] = known->second.hosts;
  if (cache_->Takes(XdsCache::Type::kRds, push_start_)) {
    cache_->Add(XdsCache::Type::kRds, question.cache_key, push_start_, question.dependencies, known->second.resource);
  }
  return known->second.resource;
}

Resource SidecarRoutes::Patched(const RouteConfiguration& routes, const std::vector<VirtualHost>& hosts, int port,
                                bool known) {
  PatchableHosts patchable = known ? patchable_by_port_[port] : MakePatchable(hosts);
  if (!known && port > 0) patchable_by_port_[port] = patchable;
  const std::string encoded = PatchRoutes(*patches_, config::EnvoyFilter::Context::kSidecarOutbound, proxy_,
                                          EncodeRouteConfiguration(routes), patchable);
  return {RouteConfigurationName(encoded), encoded};
}

Resource SidecarRoutes::Build(const std::string& route_name) {
  RouteConfiguration out;
  out.name = route_name;
  out.ignore_port = push_.env().features.ignores_ports;
  const auto encode = [&] { return Resource(route_name, EncodeRouteConfiguration(out)); };
  Inputs inputs;
  inputs.route_name = route_name;
  inputs.small_letters = push_.profile().Has(Change::kHostsInSmallLetters);
  const bool unix_socket = route_name.starts_with(kUnixPrefix);
  if (!unix_socket && route_name != kRdsHttpProxy) {
    const size_t colon = route_name.find(':');
    inputs.sniffed = colon != std::string::npos;
    const std::optional<int> port = ParsePort(std::string_view(route_name).substr(inputs.sniffed ? colon + 1 : 0));
    if (!port) {
      out.empty = true;
      return encode();
    }
    inputs.listen_port = *port;
  }
  const int wanted_port = inputs.listen_port;

  SharedRoutes::Question question;
  std::shared_ptr<const std::vector<VirtualHost>> hosts;
  if (inputs.sniffed) {
    if (const auto shared = by_port_.find(wanted_port); shared != by_port_.end()) hosts = shared->second;
  }
  const bool known_hosts = hosts != nullptr;
  if (hosts == nullptr) {
    std::optional<std::pair<SidecarScopeRef, std::string>> asked_as;
    if (shared_ != nullptr && proxy_.sidecar_scope != nullptr && !proxy_.sidecar_scope->SelectsWorkloads()) {
      const NodeMetadata& metadata = proxy_.metadata;
      asked_as.emplace(
          proxy_.sidecar_scope,
          absl::StrCat(route_name, "~", metadata.istio_version, "~", metadata.cluster_id.str(), "~", proxy_.dns_domain,
                       "~", metadata.dns_capture, metadata.dns_auto_allocate, SupportsIpv4(proxy_)));
      if (const auto asked = shared_->questions.find(*asked_as); asked != shared_->questions.end()) {
        if (std::optional<Resource> known = Known(asked->second, wanted_port)) return *std::move(known);
      }
    }
    const EgressListener* egress = proxy_.sidecar_scope == nullptr
                                       ? nullptr
                                       : proxy_.sidecar_scope->GetEgressListenerForRds(inputs.listen_port, route_name);
    if (egress != nullptr) {
      inputs.Take(*egress);
      if (IsCacheable(inputs)) {
        inputs.CollectHashRules(proxy_);
        const RouteCacheEntry entry = CacheEntry(inputs);
        question.cache_key = entry.Key();
        // The cache's key says whether unknown hosts are let through, not to which cluster, and not whether a service
        // that has no address but an automatic one can be reached there.
        question.shared_key =
            absl::StrCat(question.cache_key, "\n", SupportsIpv4(proxy_), OutboundCatchAllCluster(proxy_));
        question.dependencies = entry.Dependencies();
        if (asked_as) shared_->questions.insert_or_assign(*asked_as, question);
        if (std::optional<Resource> known = Known(question, wanted_port)) return *std::move(known);
      }
      hosts = std::make_shared<const std::vector<VirtualHost>>(VirtualHosts(inputs));
      if (wanted_port > 0) by_port_[wanted_port] = hosts;
    } else {
      hosts = std::make_shared<const std::vector<VirtualHost>>();
    }
  }
  if (inputs.sniffed) {
    out.virtual_hosts = ForSniffedPort(*hosts, route_name);
    SortByName(out.virtual_hosts);
  } else {
    out.shared_hosts = hosts;
    out.last_virtual_host = IsAllowAnyOutbound(proxy_)
                                ? PassthroughVirtualHost(OutboundCatchAllCluster(proxy_), headers_)
                                : BlackHoleVirtualHost(headers_);
  }
  Resource resource = patches_ == nullptr ? encode() : Patched(out, *hosts, wanted_port, known_hosts);
  if (question.cache_key.empty()) return resource;
  if (shared_ != nullptr) shared_->made[question.shared_key] = {resource, hosts};
  if (cache_->Takes(XdsCache::Type::kRds, push_start_)) {
    cache_->Add(XdsCache::Type::kRds, std::move(question.cache_key), push_start_, question.dependencies, resource);
  }
  return resource;
}

}  // namespace wavetank::pilot
