#include "core/gen/lds/network_filters.h"

#include "absl/strings/str_cat.h"
#include "core/gen/telemetry/proxy_telemetry.h"
#include "core/gen/view/destination_cluster.h"
#include "core/gen/view/dynamic_names.h"
#include "core/gen/view/listener_filters.h"
#include "core/gen/view/listener_types.h"
#include "core/gen/view/proxy_view.h"
#include "core/gen/view/stat_prefix.h"
#include "core/gen/wire/wire.h"
#include "core/model/addresses.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "core/push/sidecar_scope.h"
#include "envoy/extensions/filters/network/mongo_proxy/v3/mongo_proxy.pb.h"
#include "envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy.pb.h"

namespace wavetank::pilot {
namespace {

using TcpProxyPb = ::envoy::extensions::filters::network::tcp_proxy::v3::TcpProxy;
using MongoPb = ::envoy::extensions::filters::network::mongo_proxy::v3::MongoProxy;
using HashPolicyPb = ::envoy::type::v3::HashPolicy;

constexpr char kTcpProxyName[] = "envoy.filters.network.tcp_proxy";
constexpr char kTcpProxyType[] = "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy";

const config::Subset* FindSubset(const config::DestinationRule& rule, std::string_view name) {
  for (const config::Subset& subset : rule.subsets) {
    if (subset.name == name) return &subset;
  }
  return nullptr;
}

bool HashesSourceIp(const std::optional<config::TrafficPolicy>& policy) {
  return policy && policy->load_balancer && policy->load_balancer->consistent_hash &&
         policy->load_balancer->consistent_hash->use_source_ip;
}

// A subset that balances at all decides for itself. istiod: maybeSetHashPolicy.
bool HashesSourceIp(const config::DestinationRule& rule, std::string_view subset_name) {
  const config::Subset* subset = FindSubset(rule, subset_name);
  const bool decides = subset != nullptr && subset->traffic_policy && subset->traffic_policy->load_balancer;
  return HashesSourceIp(decides ? subset->traffic_policy : rule.traffic_policy);
}

const config::TunnelSettings* Tunnel(const config::DestinationRule& rule, std::string_view subset_name) {
  const std::optional<config::TrafficPolicy>* policy = &rule.traffic_policy;
  if (!subset_name.empty()) {
    const config::Subset* subset = FindSubset(rule, subset_name);
    if (subset == nullptr) return nullptr;
    policy = &subset->traffic_policy;
  }
  return *policy && (*policy)->tunnel ? &*(*policy)->tunnel : nullptr;
}

// Of the rule itself; null: it has none.
const auto* TcpPool(const config::DestinationRule* rule) {
  const bool has = rule != nullptr && rule->traffic_policy && rule->traffic_policy->connection_pool &&
                   rule->traffic_policy->connection_pool->tcp;
  return has ? &*rule->traffic_policy->connection_pool->tcp : nullptr;
}

}  // namespace

struct NetworkFilters::Target {
  ListenerClass listener_class = ListenerClass::kSidecarOutbound;
  std::string_view stat_prefix, cluster, subset;
  std::vector<std::pair<std::string, uint32_t>> weighted;  // instead of cluster
  const config::DestinationRule* rule = nullptr;
  bool tunnels = true;
};

NetworkFilters::NetworkFilters(const Proxy& proxy, const PushContext& push, ProxyTelemetry& telemetry)
    : proxy_(proxy),
      push_(push),
      telemetry_(telemetry),
      wasm_(proxy, push),
      outbound_(proxy.IsRouter() ? ListenerClass::kGateway : ListenerClass::kSidecarOutbound),
      idle_(IdleTimeout(proxy)) {}

std::string NetworkFilters::Encode(const Target& target) const {
  using Weighted = TcpProxyPb::WeightedCluster;
  const auto* const pool = TcpPool(target.rule);
  const bool rules = pool != nullptr && pool->idle_timeout && push_.profile().Has(Change::kTcpIdleTimeout);
  const std::optional<Duration> idle = rules ? pool->idle_timeout : idle_;
  const std::string config = wire::Encode([&](wire::Writer& w) {
    w.Bytes(TcpProxyPb::kStatPrefixFieldNumber, target.stat_prefix);
    if (target.weighted.empty()) {
      w.Bytes(TcpProxyPb::kClusterFieldNumber, target.cluster);
    } else {
      w.Message(TcpProxyPb::kWeightedClustersFieldNumber, [&] {
        for (const auto& [cluster, weight] : target.weighted) {
          w.Message(Weighted::kClustersFieldNumber, [&, &name = cluster, share = weight] {
            w.Bytes(Weighted::ClusterWeight::kNameFieldNumber, name);
            w.Varint(Weighted::ClusterWeight::kWeightFieldNumber, share);
          });
        }
      });
    }
    if (idle) w.Duration(TcpProxyPb::kIdleTimeoutFieldNumber, idle->count());
    w.Append(telemetry_.Logs(target.listener_class).tcp);
    if (target.rule == nullptr) return;
    if (pool != nullptr && pool->max_connection_duration) {
      w.Duration(TcpProxyPb::kMaxDownstreamConnectionDurationFieldNumber, pool->max_connection_duration->count());
    }
    if (HashesSourceIp(*target.rule, target.subset)) {
      w.Message(TcpProxyPb::kHashPolicyFieldNumber, [&] { w.Message(HashPolicyPb::kSourceIpFieldNumber, [] {}); });
    }
    const config::TunnelSettings* tunnel = target.tunnels ? Tunnel(*target.rule, target.subset) : nullptr;
    if (tunnel == nullptr) return;
    w.Message(TcpProxyPb::kTunnelingConfigFieldNumber, [&] {
      w.Bytes(TcpProxyPb::TunnelingConfig::kHostnameFieldNumber,
              JoinHostPort(tunnel->target_host, static_cast<int>(tunnel->target_port)));
      if (tunnel->protocol == "POST") w.Bool(TcpProxyPb::TunnelingConfig::kUsePostFieldNumber, true);
    });
  });
  return NetworkFilter(kTcpProxyName, kTcpProxyType, config);
}

const std::string& NetworkFilters::Metrics(ListenerClass listener_class) const {
  return telemetry_.TcpFilters(listener_class);
}

FilterStack NetworkFilters::Measured(FilterStack stack, int port, bool with_modules) const {
  if (const std::string& metrics = Metrics(outbound_); !metrics.empty()) stack.insert(stack.begin(), metrics);
  if (!with_modules || outbound_ == ListenerClass::kGateway) return stack;  // they stand around policies
  FilterStack modules = wasm_.Network(outbound_, port);
  stack.insert(stack.begin(), std::make_move_iterator(modules.begin()), std::make_move_iterator(modules.end()));
  return stack;
}

std::string NetworkFilters::TcpProxy(ListenerClass listener_class, std::string_view stat_prefix,
                                     std::string_view cluster) const {
  Target target;
  target.listener_class = listener_class;
  target.stat_prefix = stat_prefix;
  target.cluster = cluster;
  return Encode(target);
}

std::string NetworkFilters::BareTcpProxy(std::string_view stat_prefix, std::string_view cluster) {
  return NetworkFilter(kTcpProxyName, kTcpProxyType, wire::Encode([&](wire::Writer& w) {
                         w.Bytes(TcpProxyPb::kStatPrefixFieldNumber, stat_prefix);
                         w.Bytes(TcpProxyPb::kClusterFieldNumber, cluster);
                       }));
}

FilterStack NetworkFilters::ForProtocol(Protocol protocol, std::string tcp_proxy, std::string_view stat_prefix) const {
  FilterStack out;
  const Features& features = push_.env().features;
  // Redis has one too, off by default (PILOT_ENABLE_REDIS_FILTER).
  if (protocol == Protocol::kMysql && features.mysql_filter) {
    constexpr int kStatPrefix = 1;  // of envoy/extensions/filters/network/mysql_proxy/v3, which is not in our set
    out.push_back(NetworkFilter("envoy.filters.network.mysql_proxy",
                                "type.googleapis.com/envoy.extensions.filters.network.mysql_proxy.v3.MySQLProxy",
                                wire::Encode([&](wire::Writer& w) { w.Bytes(kStatPrefix, stat_prefix); })));
  }
  if (protocol == Protocol::kMongo && features.mongo_filter) {
    out.push_back(
        NetworkFilter("envoy.filters.network.mongo_proxy",
                      "type.googleapis.com/envoy.extensions.filters.network.mongo_proxy.v3.MongoProxy",
                      wire::Encode([&](wire::Writer& w) { w.Bytes(MongoPb::kStatPrefixFieldNumber, stat_prefix); })));
  }
  out.push_back(std::move(tcp_proxy));
  return out;
}

FilterStack NetworkFilters::ToSni(const Port& port) const {
  FilterStack out = SingleDestination(kBlackHoleCluster, kBlackHoleCluster, "", port, nullptr, false);
  out.insert(out.begin(), SniClusterFilter());
  return out;
}

FilterStack NetworkFilters::SingleDestination(std::string_view stat_prefix, std::string_view cluster,
                                              std::string_view subset, const Port& port,
                                              const config::DestinationRule* rule, bool tunnels,
                                              const Service* resolved) const {
  Target target;
  target.listener_class = outbound_;
  target.stat_prefix = stat_prefix;
  target.cluster = cluster;
  target.subset = subset;
  target.rule = rule;
  target.tunnels = tunnels;
  FilterStack stack = ForProtocol(port.protocol, Encode(target), stat_prefix);
  if (resolved != nullptr) stack.insert(stack.begin(), SniDynamicForward(DnsCacheName(resolved->hostname), port.port));
  return Measured(std::move(stack), port.port, resolved == nullptr);
}

FilterStack NetworkFilters::ToService(const Service& service, std::string_view subset, const Port& cluster_port,
                                      const Port& listener_port, bool sni_dnat) const {
  const std::string cluster =
      sni_dnat ? BuildDnsSrvSubsetKey(TrafficDirection::kOutbound, subset, service.hostname, cluster_port.port)
               : BuildSubsetKey(TrafficDirection::kOutbound, subset, service.hostname, cluster_port.port);
  const std::string& pattern = push_.mesh().outbound_cluster_stat_name;
  const std::string stat_prefix =
      pattern.empty()
          ? cluster
          : BuildStatPrefix(pattern, service.hostname, subset, {sni_dnat ? cluster_port.name : "", cluster_port.port},
                            service.attributes, push_.profile());
  const ConsolidatedDestRuleRef rule =
      proxy_.sidecar_scope->DestinationRule(TrafficDirection::kOutbound, proxy_, service.hostname);
  const bool resolved = outbound_ == ListenerClass::kSidecarOutbound && IsDynamic(service);
  return SingleDestination(stat_prefix, cluster, subset, listener_port, rule == nullptr ? nullptr : &rule->rule->spec,
                           !sni_dnat, resolved ? &service : nullptr);
}

FilterStack NetworkFilters::ToRoute(const std::vector<config::RouteDestination>& routes, const Port& port,
                                    const config::ConfigMeta& meta) const {
  if (routes.empty()) return {};
  const config::Destination& first = routes[0].destination;
  const ServiceRef service = push_.ServiceForHostname(proxy_, first.host);
  ConsolidatedDestRuleRef rule;
  if (service != nullptr) {
    rule = proxy_.sidecar_scope->DestinationRule(TrafficDirection::kOutbound, proxy_, service->hostname);
  }
  const config::DestinationRule* spec = rule == nullptr ? nullptr : &rule->rule->spec;
  if (routes.size() == 1) {
    const std::string cluster = DestinationCluster(first, service.get(), port.port);
    const std::string& pattern = push_.mesh().outbound_cluster_stat_name;
    const std::string stat_prefix =
        pattern.empty() || service == nullptr
            ? cluster
            : BuildStatPrefix(pattern, first.host, first.subset, port, service->attributes, push_.profile());
    return SingleDestination(stat_prefix, cluster, first.subset, port, spec, true);
  }
  Target target;
  target.listener_class = outbound_;
  const std::string stat_prefix = absl::StrCat(meta.name, ".", meta.ns);
  target.stat_prefix = stat_prefix;
  target.rule = spec;
  for (const config::RouteDestination& route : routes) {
    if (route.weight <= 0) continue;
    const ServiceRef to = push_.ServiceForHostname(proxy_, route.destination.host);
    target.weighted.emplace_back(DestinationCluster(route.destination, to.get(), port.port),
                                 static_cast<uint32_t>(route.weight));
  }
  if (target.weighted.empty()) return {};  // validation refuses such a rule
  return Measured(ForProtocol(port.protocol, Encode(target), stat_prefix), port.port);
}

}  // namespace wavetank::pilot
