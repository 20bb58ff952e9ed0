#include "core/gen/cds/cluster_builder.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/envoyapi/any.h"
#include "core/gen/cds/cluster_tls.h"
#include "core/gen/eds/load_assignment_builder.h"
#include "core/gen/view/cluster_names.h"
#include "core/gen/view/dynamic_names.h"
#include "core/gen/view/metadata_exchange.h"
#include "core/gen/view/stat_prefix.h"
#include "core/gen/wire/duration.h"
#include "core/gen/wire/wire.h"
#include "core/model/addresses.h"
#include "core/model/labels.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "google/protobuf/any.pb.h"

namespace wavetank::pilot {
namespace {

namespace envoy_core = ::envoy::config::core::v3;
using Cluster = envoy_cluster::Cluster;

// Source addresses that iptables leaves alone, so that inbound traffic does not come back to the proxy.
constexpr std::string_view kInboundBindIpv4 = "127.0.0.6";
constexpr std::string_view kInboundBindIpv6 = "::6";

void SetSourceAddress(std::string_view address, Cluster& cluster) {
  auto* source = cluster.mutable_upstream_bind_config()->mutable_source_address();
  source->set_address(std::string(address));
  source->set_port_value(0);
}

void AddSourceAddress(std::string_view address, Cluster& cluster) {
  auto* other = cluster.mutable_upstream_bind_config()->add_extra_source_addresses()->mutable_address();
  other->set_address(std::string(address));
  other->set_port_value(0);
}

void SetAddress(std::string_view address, uint32_t port, envoy_core::Address* out) {
  if (port != 0) {
    out->mutable_socket_address()->set_address(std::string(address));
    out->mutable_socket_address()->set_port_value(port);
    return;
  }
  if (address.starts_with(kUnixPrefix)) address.remove_prefix(kUnixPrefix.size());
  out->mutable_pipe()->set_path(std::string(address));
}

// Deprecated in Envoy's API in favour of typed DNS clusters, and what istiod fills.
void SetDnsRefresh(const config::MeshConfig& mesh, std::optional<Duration> jitter, Cluster& cluster) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  if (jitter) SetDuration(*jitter, cluster.mutable_dns_jitter());
  if (mesh.dns_refresh_rate) SetDuration(*mesh.dns_refresh_rate, cluster.mutable_dns_refresh_rate());
  cluster.set_respect_dns_ttl(true);
#pragma GCC diagnostic pop
}

// c-ares asks anew from another port after so many questions. Encoded by hand: nothing else here knows the message
// (Envoy: extensions/network/dns_resolver/cares/v3/cares_dns_resolver.proto).
std::string MakeDnsResolver(int64_t most_queries) {
  constexpr int kUdpMaxQueries = 5;
  return wire::Encode([&](wire::Writer& out) {
    out.Message(Cluster::kTypedDnsResolverConfigFieldNumber, [&] {
      out.Bytes(envoy_core::TypedExtensionConfig::kNameFieldNumber, "envoy.network.dns_resolver.cares");
      out.Any(envoy_core::TypedExtensionConfig::kTypedConfigFieldNumber,
              "type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig",
              wire::Encode([&](wire::Writer& config) {
                config.UInt32Value(kUdpMaxQueries, static_cast<uint64_t>(most_queries));
              }));
    });
  });
}

const config::DestinationRule* SpecOf(const ConsolidatedDestRule* rule) {
  return rule != nullptr && rule->rule != nullptr ? &rule->rule->spec : nullptr;
}

const config::TrafficPolicy* PolicyOf(const std::optional<config::TrafficPolicy>& policy) {
  return policy ? &*policy : nullptr;
}

// istiod: buildOutboundClusters.
bool CanBeDynamic(Protocol protocol) {
  return protocol == Protocol::kHttp || protocol == Protocol::kTls || protocol == Protocol::kGrpc ||
         protocol == Protocol::kHttp2;
}

}  // namespace

ClusterBuilder::ClusterBuilder(const Proxy& proxy, const PushContext& push)
    : proxy_(proxy), push_(push), mesh_(push.mesh()) {
  bool all_v4 = true, all_v6 = true;
  for (const std::string& ip : proxy.ip_addresses) (IsIpv6(ip) ? all_v4 : all_v6) = false;
  supports_ipv4_ = all_v4 || !all_v6;
  supports_ipv6_ = !all_v4;
  if (push.profile().Has(Change::kDnsQueriesPerPort))
    dns_resolver_ = MakeDnsResolver(push.env().features.dns_queries_per_port);
}

std::vector<Resource> ClusterBuilder::Outbound(const Service& service, const Port& port,
                                               const ConsolidatedDestRule* rule) const {
  return WithSubsets(Mode::kOutbound, service, port, rule);
}

std::vector<Resource> ClusterBuilder::SniDnat(const Service& service, const Port& port,
                                              const ConsolidatedDestRule* rule) const {
  return WithSubsets(Mode::kSniDnat, service, port, rule);
}

std::string ClusterBuilder::Name(Mode mode, const config::Subset* subset, const Service& service,
                                 const Port& port) const {
  const std::string_view subset_name = subset == nullptr ? std::string_view() : std::string_view(subset->name);
  const auto build = mode == Mode::kOutbound ? BuildSubsetKey : BuildDnsSrvSubsetKey;
  return build(TrafficDirection::kOutbound, subset_name, service.hostname, port.port);
}

std::vector<Resource> ClusterBuilder::WithSubsets(Mode mode, const Service& service, const Port& port,
                                                  const ConsolidatedDestRule* consolidated) const {
  static const Labels kNoLabels;
  const config::DestinationRule* rule = SpecOf(consolidated);
  const config::TrafficPolicy* top = rule == nullptr ? nullptr : PolicyOf(rule->traffic_policy);
  const EffectivePolicy policy = MergeTrafficPolicy({}, top, port.port);

  std::vector<Resource> out;
  // Such a service has no subsets, nor its twin at gateways, which is empty. istiod: applyDestinationRule.
  const bool resolved = IsDynamic(service);
  const bool dynamic = resolved && mode == Mode::kOutbound;
  if (dynamic && !CanBeDynamic(port.protocol)) return out;
  auto draft =
      dynamic ? NewDynamic(Name(mode, nullptr, service, port), service, port)
              : NewOutbound(Name(mode, nullptr, service, port), DiscoveryTypeOf(service), service, port, kNoLabels);
  if (draft == nullptr) return out;
  if (mode == Mode::kOutbound && !dynamic) {
    if (const auto it = service.attributes.labels.find(kPersistentSessionLabel);
        it != service.attributes.labels.end() && !it->second.empty()) {
      // Draining endpoints stay reachable for the sessions that they have.
      auto* statuses = draft->cluster.mutable_common_lb_config()->mutable_override_host_status();
      for (auto status : {envoy_core::HEALTHY, envoy_core::DRAINING, envoy_core::UNKNOWN, envoy_core::DEGRADED}) {
        statuses->add_statuses(status);
      }
    }
  }
  const bool named = mode == Mode::kOutbound || push_.profile().Has(Change::kSniClustersNamed);
  if (named && !dynamic && !mesh_.outbound_cluster_stat_name.empty()) {
    draft->cluster.set_alt_stat_name(StatName(BuildStatPrefix(mesh_.outbound_cluster_stat_name, service.hostname, "",
                                                              port, service.attributes, push_.profile())));
  }
  ApplyOutboundPolicy(mode, service, port, policy, top, nullptr, rule, *draft);
  if (rule != nullptr) draft->rule = &consolidated->rule->meta;
  draft->mesh_external = service.mesh_external && push_.profile().Has(Change::kExternalServicesMarked);
  const Cluster::DiscoveryType type = draft->cluster.type();
  out.push_back(draft->Finish());
  if (rule == nullptr || resolved) return out;

  for (const config::Subset& subset : rule->subsets) {
    const config::TrafficPolicy* own = PolicyOf(subset.traffic_policy);
    const bool passthrough = own != nullptr && own->load_balancer &&
                             SimpleLbOf(&*own->load_balancer) == config::LoadBalancerSettings::Simple::kPassthrough;
    auto of_subset = NewOutbound(Name(mode, &subset, service, port), passthrough ? Cluster::ORIGINAL_DST : type,
                                 service, port, subset.labels);
    if (of_subset == nullptr) continue;
    if (!mesh_.outbound_cluster_stat_name.empty()) {
      of_subset->cluster.set_alt_stat_name(StatName(BuildStatPrefix(
          mesh_.outbound_cluster_stat_name, service.hostname, subset.name, port, service.attributes, push_.profile())));
    }
    EffectivePolicy effective = MergeTrafficPolicy(policy, own, port.port);
    const bool own_budget = own != nullptr && own->retry_budget;
    if (own != nullptr && !own_budget && !push_.profile().Has(Change::kRetryBudgetsInherited))
      effective.retry_budget = nullptr;
    ApplyOutboundPolicy(mode, service, port, effective, own, &subset, rule, *of_subset);
    of_subset->rule = &consolidated->rule->meta;
    of_subset->subset = subset.name;
    out.push_back(of_subset->Finish());
  }
  return out;
}

namespace {

// istiod: cluster_builder.go, buildCluster.
void OverridePort(const Service& service, const Port& port, Cluster& cluster) {
  if (cluster.type() != Cluster::ORIGINAL_DST) return;
  const auto& ports = service.attributes.passthrough_target_ports;
  if (const auto at = ports.find(static_cast<uint32_t>(port.port)); at != ports.end())
    cluster.mutable_original_dst_lb_config()->mutable_upstream_port_override()->set_value(at->second);
}

}  // namespace

// istiod: buildDefaultCluster.
std::unique_ptr<ClusterDraft> ClusterBuilder::NewOutbound(std::string name, Cluster::DiscoveryType type,
                                                          const Service& service, const Port& port,
                                                          const Labels& subset_labels) const {
  auto draft = std::make_unique<ClusterDraft>();
  Cluster& cluster = draft->cluster;
  if (type == Cluster::STRICT_DNS || type == Cluster::LOGICAL_DNS) {
    if (push_.profile().Has(Change::kDnsEndpointsInShards)) {
      draft->endpoints = std::make_unique<InlineEndpoints>();
      LoadAssignmentBuilder(name, proxy_, push_).BuildInline(draft->endpoints->assignment);
    } else {
      draft->endpoints = DnsEndpoints(service, port.port, subset_labels);
    }
    if (draft->endpoints->assignment.localities.empty()) return nullptr;
    cluster.set_dns_lookup_family(IsDualStack() || service.attributes.races_addresses ? Cluster::ALL
                                  : supports_ipv4_                                    ? Cluster::V4_ONLY
                                                                                      : Cluster::V6_ONLY);
    const Features& features = push_.env().features;
    SetDnsRefresh(mesh_, push_.profile().Has(Change::kDnsJitter) ? std::optional(features.dns_jitter) : std::nullopt,
                  cluster);
    draft->encoded.append(dns_resolver_);
  }
  cluster.set_name(std::move(name));
  NameStats(cluster.name(), cluster);
  cluster.set_type(type);
  OverridePort(service, port, cluster);
  cluster.mutable_common_lb_config();
  draft->tells_v1_paths = push_.profile().Has(Change::kConfigPathsOfV1);
  SetUpstreamProtocol(port, push_.env().features.sniffs_outbound, *draft);
  draft->services.emplace(1, &service);
  return draft;
}

// istiod: buildDFPCluster. Telemetry is told nothing of it, and it has none of the common settings.
std::unique_ptr<ClusterDraft> ClusterBuilder::NewDynamic(std::string name, const Service& service,
                                                         const Port& port) const {
  auto draft = std::make_unique<ClusterDraft>();
  draft->dns_cache = DnsCacheName(service.hostname);
  draft->cluster.set_name(std::move(name));
  draft->cluster.set_lb_policy(Cluster::CLUSTER_PROVIDED);
  NameStats(draft->cluster.name(), draft->cluster);
  draft->tells_v1_paths = push_.profile().Has(Change::kConfigPathsOfV1);
  SetUpstreamProtocol(port, push_.env().features.sniffs_outbound, *draft);
  return draft;
}

void ClusterBuilder::ApplyOutboundPolicy(Mode mode, const Service& service, const Port& port,
                                         const EffectivePolicy& policy, const config::TrafficPolicy* own_policy,
                                         const config::Subset* subset, const config::DestinationRule* rule,
                                         ClusterDraft& draft) const {
  const Profile& profile = push_.profile();
  const auto upgrade = [&] {
    // istiod: cluster_builder.go, setH2Options
    const bool sniffed = draft.upstream_protocol == ClusterDraft::UpstreamProtocol::kDownstream;
    if (sniffed && profile.Has(Change::kSniffedNotUpgraded)) return;
    if (ShouldUpgradeToH2(mesh_, policy.connection_pool, port, profile))
      draft.upstream_protocol = ClusterDraft::UpstreamProtocol::kHttp2;
  };
  if (profile.Has(Change::kUpgradeBeforePool)) upgrade();
  ApplyConnectionPool(mesh_, policy.connection_pool, profile, draft, policy.retry_budget);
  if (!profile.Has(Change::kUpgradeBeforePool)) upgrade();
  ApplyOutlierDetection(policy.outlier_detection, draft);
  const bool dynamic = !draft.dns_cache.empty();
  if (!dynamic) {
    ApplyLoadBalancer(mesh_, policy.load_balancer, service, PartsOf(proxy_.locality), proxy_.labels, push_.profile(),
                      push_.env().features.round_robin, draft);
  }
  Cluster& cluster = draft.cluster;
  if (mode == Mode::kOutbound) {
    TlsInputs tls;
    if (!dynamic) {
      tls.service_accounts = &push_.ServiceAccounts(service.hostname, service.attributes.ns, port.port);
      tls.default_sni = Name(Mode::kSniDnat, subset, service, port);
    }
    tls.mesh_external = service.mesh_external;
    tls.external_registry = service.attributes.registry == Provider::kExternal;
    tls.rule_has_workload_selector = rule != nullptr && rule->workload_selector.has_value();
    tls.service_mode = push_.InferServiceMtlsMode(own_policy, service, port);
    if (profile.Has(Change::kUpstreamProxyProtocol)) tls.proxy_protocol = policy.proxy_protocol;
    ApplyUpstreamTls(proxy_, mesh_, push_.profile(), policy.tls, tls, draft);
  }
  if (draft.IsOriginalDst()) cluster.set_lb_policy(Cluster::CLUSTER_PROVIDED);
  using TlsMode = config::ClientTlsSettings::Mode;
  const bool own_tls =
      policy.tls != nullptr && (policy.tls->mode == TlsMode::kSimple || policy.tls->mode == TlsMode::kMutual);
  draft.keeps_alpn = own_tls && push_.profile().Has(Change::kOwnTlsKeepsAlpn);
  AddMetadataExchange(draft);
}

bool ClusterBuilder::IsDualStack() const {
  return supports_ipv4_ && supports_ipv6_ && push_.profile().Has(Change::kDualStack);
}

std::string ClusterBuilder::StatName(std::string name) const {
  if (push_.profile().Has(Change::kDelimitedStatNames)) name.push_back(';');
  return name;
}

void ClusterBuilder::NameStats(const std::string& name, Cluster& cluster) const {
  if (push_.profile().Has(Change::kDelimitedStatNames)) cluster.set_alt_stat_name(StatName(name));
}

// istiod: buildLocalityLbEndpoints.
std::unique_ptr<InlineEndpoints> ClusterBuilder::DnsEndpoints(const Service& service, int port,
                                                              const Labels& subset_labels) const {
  auto out = std::make_unique<InlineEndpoints>();
  out->instances = push_.ServiceInstancesByPort(service, port, subset_labels);
  const bool cluster_local = push_.IsClusterLocal(service);
  std::map<std::string_view, LocalityLbEndpoints> groups;
  for (const ServiceInstance& instance : out->instances) {
    const IstioEndpoint& e = instance.endpoint;
    const EndpointProfile& p = e.p();
    if (!proxy_.IsVisible(p.network)) continue;
    if (cluster_local && p.locality.cluster != proxy_.metadata.cluster_id) continue;
    if (p.discoverable_in_same_cluster_only && !proxy_.InCluster(p.locality.cluster)) continue;
    LocalityLbEndpoints& group = groups[p.locality.label];
    group.locality = p.locality.label;
    // Unlike the sum over an EDS cluster's endpoints, this one stops at the maximum.
    const uint32_t weight = e.lb_weight == 0 ? 1 : e.lb_weight;
    const uint32_t sum = group.weight.value_or(0);
    constexpr uint32_t kMax = std::numeric_limits<uint32_t>::max();
    group.weight = kMax - weight < sum ? kMax : sum + weight;
    group.endpoints.push_back(
        {&e.address, e.endpoint_port, weight, static_cast<uint32_t>(out->assignment.shapes.size()), 0});
    out->assignment.shapes.push_back({ProfileMetadata(p, false), &p.labels, &p.more_addresses});
  }
  for (auto& [label, group] : groups) out->assignment.localities.push_back(std::move(group));
  return out;
}

Cluster::DiscoveryType ClusterBuilder::DiscoveryTypeOf(const Service& service) const {
  switch (service.resolution) {
    case Resolution::kDnsLb:
      return Cluster::STRICT_DNS;
    case Resolution::kDnsRoundRobinLb:
      return Cluster::LOGICAL_DNS;
    case Resolution::kPassthrough:
      // A gateway has no original destination to go to.
      if (proxy_.IsRouter()) return Cluster::EDS;
      if (service.attributes.registry == Provider::kKubernetes && push_.env().features.eds_for_headless)
        return Cluster::EDS;
      return Cluster::ORIGINAL_DST;
    case Resolution::kClientSideLb:
    case Resolution::kAlias:
    case Resolution::kDynamicDns:
      break;
  }
  return Cluster::EDS;
}

// istiod: setUpstreamProtocol.
void ClusterBuilder::SetUpstreamProtocol(const Port& port, bool sniffs, ClusterDraft& draft) const {
  if (pilot::IsHttp2(port.protocol)) {
    draft.upstream_protocol = ClusterDraft::UpstreamProtocol::kHttp2;
  } else if (sniffs && !proxy_.IsRouter() && IsUnsupported(port.protocol)) {
    draft.upstream_protocol =
        ClusterDraft::UpstreamProtocol::kDownstream;  // what the sidecar sniffed; gateways do not sniff
  }
}

void ClusterBuilder::AddMetadataExchange(ClusterDraft& draft) const {
  if (push_.profile().Has(Change::kUpstreamEnvoy)) return;
  static const auto make = [](const google::protobuf::Any& config) {
    Cluster only;
    only.add_filters()->set_name("istio.metadata_exchange");
    *only.mutable_filters(0)->mutable_typed_config() = config;
    return new std::string(Serialize(only));
  };
  static const std::string* const kFilters[] = {make(MetadataExchangeConfig(false)),
                                                make(MetadataExchangeConfig(true))};
  draft.encoded.append(*kFilters[push_.profile().Has(Change::kMetadataDiscovery) ? 1 : 0]);
}

std::vector<InboundCluster> ClusterBuilder::Inbound() const {
  if (proxy_.sidecar_scope != nullptr && proxy_.sidecar_scope->HasIngressListener()) {
    return InboundForIngressListeners();
  }
  std::vector<InboundCluster> out;
  // Without interception the application itself listens on its ports.
  if (proxy_.metadata.interception_mode == "NONE") return out;
  const bool to_localhost = !push_.env().features.inbound_passthrough ||
                            (mesh_.inbound_to_localhost && push_.profile().Has(Change::kInboundToLocalhost));
  const std::string bind = !to_localhost ? "" : supports_ipv4_ ? "127.0.0.1" : "::1";
  // The first instance of a port names its protocol and its DestinationRule; all are named in the metadata.
  std::map<uint32_t, std::vector<const ServiceInstance*>> by_port;
  for (const ServiceInstance& i : proxy_.service_instances) by_port[i.endpoint.endpoint_port].push_back(&i);
  for (const auto& [port, instances] : by_port) {
    InboundCluster& cluster = out.emplace_back();
    cluster.cluster = InboundFor(static_cast<int>(port), bind, port, *instances.front(), instances);
    for (const ServiceInstance* i : instances) cluster.hosts.push_back(i->service->hostname);
  }
  return out;
}

std::vector<InboundCluster> ClusterBuilder::InboundForIngressListeners() const {
  std::vector<InboundCluster> out;
  const SidecarScope& scope = *proxy_.sidecar_scope;
  const std::string localhost = supports_ipv4_ ? "127.0.0.1" : "::1";
  const auto own_address = [&](bool v6, const char* otherwise) -> std::string {
    for (const std::string& ip : proxy_.ip_addresses) {
      if (IsIpv6(ip) == v6) return ip;
    }
    return otherwise;
  };
  std::vector<const ServiceInstance*> all;
  for (const ServiceInstance& i : proxy_.service_instances) all.push_back(&i);
  // Whom the metadata tells: all, none, or the listener's own.
  const bool tells_own = push_.profile().Has(Change::kIngressClustersTellService);
  const bool tells_none = push_.profile().Has(Change::kNoMetadataOfNoService);

  for (const config::SidecarIngressListener& listener : scope.sidecar->spec.ingress) {
    std::string address;  // empty: wherever the request was going to
    uint32_t port = 0;
    const std::string_view target = listener.default_endpoint;
    if (target.starts_with(kUnixPrefix)) {
      address = target;
    } else if (!target.empty()) {
      const size_t colon = target.rfind(':');
      if (colon == target.npos || colon + 1 == target.size()) continue;
      const std::string_view digits = target.substr(colon + 1);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
      if (error != std::errc() || end != digits.data() + digits.size()) continue;
      std::string_view host = target.substr(0, colon);
      if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
      if (host == "0.0.0.0") {
        address = own_address(false, "127.0.0.1");
      } else if (host == "::") {
        address = own_address(true, "::1");
      } else if (host == "127.0.0.1" || host == "::1") {
        address = localhost;
      }
    }
    ServiceInstance instance;
    const auto known = std::find_if(all.begin(), all.end(), [&](const ServiceInstance* i) {
      return i->endpoint.endpoint_port == listener.port.number;
    });
    if (known != all.end()) {
      instance = **known;
    } else {
      // No service has the port: the Sidecar itself stands for one.
      auto service = std::make_shared<Service>();
      service->hostname = absl::StrCat(scope.name, ".", scope.ns);
      service->attributes.name = scope.name;
      service->attributes.ns = scope.ns;
      instance.service = std::move(service);
    }
    instance.service_port = {listener.port.name, static_cast<int>(listener.port.number),
                             ParseProtocol(listener.port.protocol)};
    std::vector<const ServiceInstance*> told;
    if (tells_own) {
      if (known != all.end()) told = {&instance};
    } else if (!tells_none) {
      told = all;
    }
    out.push_back({InboundFor(static_cast<int>(listener.port.number), address, port, instance, told),
                   {instance.service->hostname}});
  }
  return out;
}

// istiod: pilot/pkg/model/sidecar.go, InboundConnectionPoolForPort.
const config::ConnectionPoolSettings* ClusterBuilder::InboundPoolOfSidecar(int port) const {
  if (proxy_.sidecar_scope == nullptr || proxy_.sidecar_scope->sidecar == nullptr) return nullptr;
  const config::Sidecar& sidecar = proxy_.sidecar_scope->sidecar->spec;
  for (const config::SidecarIngressListener& listener : sidecar.ingress) {
    if (static_cast<int>(listener.port.number) == port && listener.connection_pool) return &*listener.connection_pool;
  }
  return sidecar.inbound_connection_pool ? &*sidecar.inbound_connection_pool : nullptr;
}

// istiod: buildInboundClusterForPortOrUDS.
Resource ClusterBuilder::InboundFor(int port_number, const std::string& bind, uint32_t endpoint_port,
                                    const ServiceInstance& instance,
                                    const std::vector<const ServiceInstance*>& all) const {
  const Port& port = instance.service_port;
  const Service& service = *instance.service;
  ClusterDraft draft;
  Cluster& cluster = draft.cluster;
  cluster.set_name(BuildInboundSubsetKey(port_number));
  NameStats(cluster.name(), cluster);
  cluster.mutable_common_lb_config();
  draft.tells_v1_paths = push_.profile().Has(Change::kConfigPathsOfV1);
  if (bind.empty()) {
    cluster.set_type(Cluster::ORIGINAL_DST);
    OverridePort(service, port, cluster);
    // As good as never: where requests were going to is the pod itself. istiod: maxSecondsValue.
    constexpr std::chrono::seconds kNever(9'223'372'035);
    if (push_.profile().Has(Change::kInboundClustersStay)) SetDuration(kNever, cluster.mutable_cleanup_interval());
  } else {
    cluster.set_type(Cluster::STATIC);
    cluster.mutable_load_assignment()->set_cluster_name(cluster.name());
    SetAddress(
        bind, endpoint_port,
        cluster.mutable_load_assignment()->add_endpoints()->add_lb_endpoints()->mutable_endpoint()->mutable_address());
  }
  SetUpstreamProtocol(port, push_.env().features.sniffs_inbound, draft);
  // istiod: addTelemetryMetadata.
  const bool untold = service.mesh_external && push_.profile().Has(Change::kExternalInboundUntold);
  if (!proxy_.service_instances.empty() && !untold) {
    std::vector<const Service*> listed;
    for (const ServiceInstance* i : all) {
      if (i->service_port.port != port.port) continue;
      const auto same_host = [&](const Service* s) { return s->hostname == i->service->hostname; };
      if (std::none_of(listed.begin(), listed.end(), same_host)) listed.push_back(i->service.get());
    }
    const bool told = !listed.empty() || !push_.profile().Has(Change::kNoMetadataOfNoService);
    if (told) draft.services = std::move(listed);
  }
  if (!mesh_.inbound_cluster_stat_name.empty()) {
    cluster.set_alt_stat_name(
        StatName(BuildStatPrefix(mesh_.inbound_cluster_stat_name, service.hostname, "", port, service.attributes,
                                 push_.profile(), static_cast<uint32_t>(port_number))));
  }
  // The server's side needs the limits that clients have, else its defaults would be the lower ones.
  ConsolidatedDestRuleRef rule;
  if (proxy_.sidecar_scope != nullptr) {
    rule = proxy_.sidecar_scope->DestinationRule(TrafficDirection::kInbound, proxy_, service.hostname);
  }
  EffectivePolicy policy;
  if (const config::DestinationRule* spec = SpecOf(rule.get()); spec != nullptr && spec->traffic_policy) {
    policy = MergeTrafficPolicy({}, &*spec->traffic_policy, port.port);
    if (draft.services) draft.rule = &rule->rule->meta;
  }
  if (push_.profile().Has(Change::kInboundPoolOfSidecar)) {
    if (const auto* pool = InboundPoolOfSidecar(port_number); pool != nullptr) policy.connection_pool = pool;
  }
  ApplyConnectionPool(mesh_, policy.connection_pool, push_.profile(), draft, policy.retry_budget);
  if (draft.IsOriginalDst()) cluster.set_lb_policy(Cluster::CLUSTER_PROVIDED);
  if (bind != "127.0.0.1" && bind != "::1") {
    SetSourceAddress(supports_ipv4_ ? kInboundBindIpv4 : kInboundBindIpv6, cluster);
    if (IsDualStack()) AddSourceAddress(kInboundBindIpv6, cluster);
  }
  return draft.Finish();
}

Resource ClusterBuilder::BlackHole() const {
  ClusterDraft draft;
  Cluster& cluster = draft.cluster;
  cluster.set_name(std::string(kBlackHoleCluster));
  NameStats(cluster.name(), cluster);
  cluster.set_type(Cluster::STATIC);
  if (mesh_.connect_timeout) SetDuration(*mesh_.connect_timeout, cluster.mutable_connect_timeout());
  cluster.set_lb_policy(Cluster::ROUND_ROBIN);
  return draft.Finish();
}

ClusterDraft ClusterBuilder::NewPassthrough() const {
  ClusterDraft draft;
  draft.cluster.set_name(std::string(kPassthroughCluster));
  NameStats(draft.cluster.name(), draft.cluster);
  draft.cluster.set_type(Cluster::ORIGINAL_DST);
  draft.cluster.set_lb_policy(Cluster::CLUSTER_PROVIDED);
  draft.upstream_protocol = ClusterDraft::UpstreamProtocol::kDownstream;
  SetDuration(std::chrono::minutes(5), draft.CommonHttp().mutable_idle_timeout());
  ApplyConnectionPool(mesh_, nullptr, push_.profile(), draft);
  return draft;
}

Resource ClusterBuilder::Passthrough() const {
  ClusterDraft draft = NewPassthrough();
  AddMetadataExchange(draft);
  return draft.Finish();
}

std::vector<Resource> ClusterBuilder::InboundPassthrough() const {
  std::vector<Resource> out;
  if (push_.profile().Has(Change::kOneInboundPassthrough)) {
    ClusterDraft draft = NewPassthrough();
    draft.cluster.set_name(std::string(kInboundPassthroughCluster));
    SetSourceAddress(supports_ipv4_ ? kInboundBindIpv4 : kInboundBindIpv6, draft.cluster);
    if (supports_ipv4_ && supports_ipv6_) AddSourceAddress(kInboundBindIpv6, draft.cluster);
    out.push_back(draft.Finish());
    return out;
  }
  const auto add = [&](const char* name, std::string_view source) {
    ClusterDraft draft = NewPassthrough();
    draft.cluster.set_name(name);
    SetSourceAddress(source, draft.cluster);
    out.push_back(draft.Finish());
  };
  if (supports_ipv4_) add("InboundPassthroughClusterIpv4", kInboundBindIpv4);
  if (supports_ipv6_) add("InboundPassthroughClusterIpv6", kInboundBindIpv6);
  return out;
}

Resource ClusterBuilder::ExternalSds() const {
  ClusterDraft draft;
  Cluster& cluster = draft.cluster;
  cluster.set_name("sds-external");
  NameStats(cluster.name(), cluster);
  cluster.set_type(Cluster::STATIC);
  if (mesh_.connect_timeout) SetDuration(*mesh_.connect_timeout, cluster.mutable_connect_timeout());
  cluster.mutable_load_assignment()->set_cluster_name(cluster.name());
  SetAddress(
      "./var/run/secrets/credential-uds/socket", 0,
      cluster.mutable_load_assignment()->add_endpoints()->add_lb_endpoints()->mutable_endpoint()->mutable_address());
  draft.upstream_protocol = ClusterDraft::UpstreamProtocol::kHttp2;
  return draft.Finish();
}

}  // namespace wavetank::pilot
