#include "core/gen/eds/load_assignment_builder.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "core/base/ip.h"
#include "core/gen/eds/endpoint_decision.h"
#include "core/gen/eds/locality.h"
#include "core/gen/eds/mtls_checker.h"
#include "core/gen/view/cache_dependencies.h"
#include "core/gen/view/proxy_view.h"
#include "core/model/addresses.h"
#include "core/model/endpoint_index.h"
#include "core/model/environment.h"
#include "core/model/labels.h"
#include "core/model/proxy.h"
#include "core/model/selection.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"

namespace wavetank::pilot {
namespace {

bool HasLabel(const Labels& labels, std::string_view name) {
  const auto it = labels.find(name);
  return it != labels.end() && !it->second.empty();
}

// istiod: scaleEndpointLBWeight; never beyond uint32.
uint32_t ScaleWeight(uint32_t weight, uint32_t factor) {
  if (weight == 0) return factor;
  constexpr uint32_t kMax = std::numeric_limits<uint32_t>::max();
  return weight < kMax / factor ? weight * factor : kMax;
}

// What names an endpoint for the mTLS filter: two endpoints of one address count as one there.
using HostKey = std::pair<std::string_view, uint32_t>;
HostKey HostOf(std::string_view address, uint32_t port) {
  if (port == 0 && address.starts_with(kUnixPrefix)) address.remove_prefix(kUnixPrefix.size());
  return {address, port};
}

struct ByAddress {
  bool operator()(const NetworkGateway* a, const NetworkGateway* b) const {
    return std::tie(a->addr, a->port, a->network, a->cluster) < std::tie(b->addr, b->port, b->network, b->cluster);
  }
};
// A gateway's share of the weight of what is behind it; sums wrap.
using GatewayWeights = std::map<const NetworkGateway*, uint32_t, ByAddress>;

}  // namespace

std::string_view NodeNameOf(const Proxy& proxy) {
  if (!proxy.metadata.node_name.empty()) return proxy.metadata.node_name;
  const auto it = proxy.labels.find(kHostnameLabel);
  return it == proxy.labels.end() ? std::string_view() : std::string_view(it->second);
}

LoadAssignmentBuilder::LoadAssignmentBuilder(std::string_view cluster_name, const Proxy& proxy, const PushContext& push)
    : cluster_name_(cluster_name),
      proxy_(proxy),
      push_(push),
      sni_dnat_(cluster_name.starts_with("outbound_.") || cluster_name.starts_with("inbound_.")) {
  if (const auto key = ParseSubsetKey(cluster_name)) {
    subset_ = key->subset;
    hostname_ = key->hostname;
    port_ = key->port;
  }
  service_ = push.ServiceForHostname(proxy, hostname_);
  if (service_ == nullptr) return;
  cluster_local_ = push.IsClusterLocal(*service_);
  if (proxy.sidecar_scope != nullptr) {
    rule_ref_ = proxy.sidecar_scope->DestinationRule(TrafficDirection::kOutbound, proxy, service_->hostname);
  }
  if (rule_ref_ != nullptr && rule_ref_->rule != nullptr) rule_ = &rule_ref_->rule->spec;
  const EffectivePolicy policy = PolicyFor(rule_, subset_, port_);
  const auto& mesh = push.mesh().locality_lb_setting;
  outlier_detection_ = policy.outlier_detection != nullptr;
  const ServiceLocalityLb locality =
      EffectiveLocalityLb(mesh ? &*mesh : nullptr, LocalityLbOf(policy.load_balancer), *service_);
  locality_lb_ = locality.setting;
  fails_over_ = outlier_detection_ || locality.fails_over;
}

void LoadAssignmentBuilder::AppendKey(std::string& key, bool locality) const {
  const auto add = [&](std::string_view part) { key.append(part).push_back('~'); };
  add(cluster_name_);
  add(proxy_.metadata.network.str());
  add(proxy_.metadata.cluster_id.str());
  key.push_back(proxy_.IsRouter() ? 'r' : 's');
  key.push_back(cluster_local_ ? 'l' : 'm');
  if (locality) {
    add(proxy_.locality.region);
    add(proxy_.locality.zone);
    add(proxy_.locality.sub_zone);
  }
  // Not for what a Service prefers by itself, as in 1.30.3 (populateFailoverPriorityLabels): of proxies in one locality
  // the first one's node then counts for all.
  if (UsesFailoverPriority(locality_lb_, outlier_detection_)) {
    for (const std::string& entry : locality_lb_->failover_priority) {
      const auto it = proxy_.labels.find(entry.substr(0, entry.find('=')));
      add(it == proxy_.labels.end() ? std::string_view() : std::string_view(it->second));
    }
    key.push_back(proxy_.labels.empty() ? '0' : '1');
  }
  if (service_ != nullptr && service_->attributes.node_local) add(NodeNameOf(proxy_));
  add(push_.authn().version());
  if (rule_ref_ != nullptr) {
    for (const ConfigKey& from : rule_ref_->from) {
      key.append(from.name).push_back('/');
      add(from.ns);
    }
  }
  if (service_ != nullptr) add(service_->attributes.ns);
  if (!proxy_.metadata.requested_network_view.empty()) {
    std::set<std::string_view> networks(proxy_.metadata.requested_network_view.begin(),
                                        proxy_.metadata.requested_network_view.end());
    for (std::string_view network : networks) add(network);
  }
}

bool LoadAssignmentBuilder::DependsOnWorkload() const {
  return UsesFailoverPriority(locality_lb_, fails_over_) || (service_ != nullptr && service_->attributes.node_local);
}

bool LoadAssignmentBuilder::DependsOnLocality() const {
  return ModeOf(locality_lb_, fails_over_) != LocalityLbMode::kOff;
}

uint64_t LoadAssignmentBuilder::EndpointsVersion() const {
  if (service_ == nullptr) return 0;
  const EndpointShards* shards = push_.env().endpoints->Find(hostname_, service_->attributes.ns);
  return shards == nullptr ? 0 : shards->version;
}

std::vector<uint64_t> LoadAssignmentBuilder::Dependencies() const {
  return service_ == nullptr ? std::vector<uint64_t>() : DependenciesOf(*service_, rule_ref_.get());
}

// One assignment in the making.
class LoadAssignmentBuilder::Grouping {
 public:
  Grouping(const LoadAssignmentBuilder& builder, const Port& port, bool inside_cluster,
           AssignmentExplanation* explanation, LoadAssignment& out)
      : b_(builder),
        explanation_(explanation),
        port_name_(port.name),
        port_number_(inside_cluster && builder.push_.profile().Has(Change::kDnsPortsByNumber) ? port.port : 0),
        no_names_(!inside_cluster && builder.push_.profile().Has(Change::kNamesNotInEds)),
        mtls_(builder.push_, builder.port_, builder.rule_, builder.subset_),
        networks_(inside_cluster ? builder.push_.networks().Unresolved() : builder.push_.networks()),
        split_horizon_(networks_.IsMultiNetworkEnabled()),
        scale_(split_horizon_ ? networks_.LbWeightScaleFactor() : 1),
        inside_cluster_(inside_cluster),
        sends_unhealthy_(builder.service_->attributes.traffic_distribution != TrafficDistribution::kAny),
        keeps_draining_(HasLabel(builder.service_->attributes.labels, kPersistentSessionLabel)),
        out_(out) {
    const config::Subset* subset = b_.subset_.empty() ? nullptr : FindSubset(b_.rule_, b_.subset_);
    if (subset != nullptr) subset_labels_ = &subset->labels;
  }

  void Run(const EndpointShards& shards, int64_t* looked_at) {
    Lists lists;
    for (const auto& [key, list] : shards.shards) {
      const bool same_cluster_only = b_.cluster_local_ || b_.service_->attributes.node_local;
      if (list == nullptr || list->empty()) continue;
      if (same_cluster_only && key.cluster != b_.proxy_.metadata.cluster_id) {
        if (explanation_ != nullptr) {
          for (const IstioEndpoint& e : *list) Explain(key, e, EndpointFilter::kClusterLocal, nullptr);
        }
        continue;
      }
      lists.emplace_back(&key, list.get());
    }
    // Twice over the endpoints: first to learn the groups and whether some but not all lack mTLS, then to fill them.
    for (const auto& [key, list] : lists) {
      for (const IstioEndpoint& e : *list) {
        const auto [d, refused_by] = Decide(e);
        if (refused_by != EndpointFilter::kPassed) continue;
        ++groups_[d->group].expected;
        (d->mtls_disabled ? some_disabled_ : some_enabled_) = true;
      }
      if (looked_at != nullptr) *looked_at += static_cast<int64_t>(list->size());
    }
    by_address_ = some_disabled_ && (some_enabled_ || b_.sni_dnat_) && !Has(Change::kMtlsByClusterPolicy);
    if (by_address_) CollectDisabled(lists);
    for (Group& group : groups_) {
      group.result.endpoints = out_.TakeSpare();
      group.result.endpoints.reserve(group.expected);
    }
    for (const auto& [key, list] : lists) {
      for (const IstioEndpoint& e : *list) {
        auto [d, refused_by] = Decide(e);
        if (refused_by == EndpointFilter::kPassed) refused_by = Add(e, *d);
        if (explanation_ != nullptr) Explain(*key, e, refused_by, d);
      }
    }
    Finish();
    if (explanation_ != nullptr) ExplainRoutes();
  }

 private:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  static constexpr size_t kFew = 8;  // versions of a workload on a few clusters: the usual service
  using Lists = absl::InlinedVector<std::pair<const ShardKey*, const EndpointList*>, kFew>;
  using Order = absl::InlinedVector<uint32_t, kFew>;

  // What endpoints of one profile and port have in common.
  struct Decision {
    EndpointFilter refused_by = EndpointFilter::kPassed;
    MtlsVerdict mtls = MtlsVerdict::kPossible;
    bool draining = false;  // by label
    bool mtls_disabled = false;
    bool visible = true, unreachable = false;  // unreachable: no gateway of the proxy's IP family
    const EndpointProfile* profile = nullptr;
    uint32_t port = 0;
    uint32_t group = kNone;        // until the first endpoint is used
    uint32_t shape = kNone;        // with tlsMode, if it has one
    uint32_t plain_shape = kNone;  // without
    uint32_t remote = kNone;       // index into remotes_; kNone: reached directly
  };
  struct Group {
    LocalityLbEndpoints result;
    size_t expected = 0;
  };
  // Weight behind the gateways of one network (and cluster), as seen from one locality.
  struct Remote {
    uint32_t group;
    const std::vector<NetworkGateway>* gateways;
    uint32_t weight_per_gateway = 0;
  };

  // What its profile and port decide, and the filter that refuses it; kPassed: it is of this cluster.
  std::pair<Decision*, EndpointFilter> Decide(const IstioEndpoint& e) {
    const EndpointProfile* profile = e.profile.get();
    if (profile != last_profile_ || e.endpoint_port != last_port_ || last_ == nullptr) {
      last_profile_ = profile;
      last_port_ = e.endpoint_port;
      last_ = &decisions_[Find(*profile, e.endpoint_port)];
    }
    Decision& d = *last_;
    if (d.refused_by != EndpointFilter::kPassed) return {&d, d.refused_by};
    // istiod: endpoint_builder.go, BuildClusterLoadAssignment. Only ServiceEntries have names.
    if (no_names_ && profile->entry_port != 0 && e.endpoint_port != 0 && !e.address.empty() && !IsIpAddress(e.address))
      return {&d, EndpointFilter::kAddress};
    if ((e.health == HealthStatus::kUnhealthy && !sends_unhealthy_) || e.health == HealthStatus::kTerminating) {
      return {&d, EndpointFilter::kHealth};
    }
    if ((d.draining || e.health == HealthStatus::kDraining) && !keeps_draining_) return {&d, EndpointFilter::kDraining};
    if (d.group == kNone) Place(*profile, d);
    return {&d, EndpointFilter::kPassed};
  }

  // The index of the decision, which is made if there is none. Few are searched for one by one, which beats hashing.
  uint32_t Find(const EndpointProfile& p, uint32_t port) {
    if (decisions_.size() <= kFew) {
      for (size_t i = 0; i < decisions_.size(); ++i) {
        if (decisions_[i].profile == &p && decisions_[i].port == port) return static_cast<uint32_t>(i);
      }
    }
    const auto fresh = static_cast<uint32_t>(decisions_.size());
    if (fresh >= kFew) {
      if (fresh == kFew) {
        for (uint32_t i = 0; i < fresh; ++i) index_.emplace(Key(decisions_[i]), i);
      }
      if (const auto [it, inserted] = index_.try_emplace({&p, port}, fresh); !inserted) return it->second;
    }
    decisions_.push_back(Make(p, port));
    return fresh;
  }
  static std::pair<const EndpointProfile*, uint32_t> Key(const Decision& d) { return {d.profile, d.port}; }

  Decision Make(const EndpointProfile& p, uint32_t port) {
    Decision d;
    d.profile = &p;
    d.port = port;
    d.refused_by = FirstRefusal(p);
    if (d.refused_by != EndpointFilter::kPassed) return d;
    if (!p.encoded.draining) p.encoded.draining = HasLabel(p.labels, kDrainingLabel);
    d.draining = *p.encoded.draining;
    d.mtls = mtls_.Check(p, port);
    d.mtls_disabled = IsDisabled(d.mtls);
    return d;
  }

  EndpointFilter FirstRefusal(const EndpointProfile& p) const {
    if (b_.service_->attributes.node_local && p.node_name != NodeNameOf(b_.proxy_)) return EndpointFilter::kNodeLocal;
    // istiod: DiscoverableFromSameCluster.
    if (p.discoverable_in_same_cluster_only && !b_.proxy_.InCluster(p.locality.cluster)) {
      return EndpointFilter::kDiscoverability;
    }
    // istiod: pilot/pkg/model/endpointshards.go, CopyEndpoints.
    const bool of_port =
        port_number_ != 0 && p.entry_port != 0 ? p.entry_port == port_number_ : p.service_port_name == port_name_;
    if (!of_port) return EndpointFilter::kPort;
    if (subset_labels_ != nullptr && !Selects(*subset_labels_, p.labels)) return EndpointFilter::kSubset;
    // istiod: filterIstioEndpoint; before, EndpointsByNetworkFilter took it out of a locality that was there already.
    if (Has(Change::kHiddenEndpointsUngrouped) && !b_.proxy_.IsVisible(p.network)) return EndpointFilter::kNetworkView;
    return EndpointFilter::kPassed;
  }

  // An endpoint of the profile is used for the first time.
  void Place(const EndpointProfile& p, Decision& d) {
    const auto known = std::find_if(groups_.begin(), groups_.end(),
                                    [&](const Group& group) { return group.result.locality == p.locality.label; });
    d.group = static_cast<uint32_t>(known - groups_.begin());
    if (known == groups_.end()) groups_.emplace_back().result.locality = p.locality.label;
    if (!split_horizon_) return;
    d.visible = b_.proxy_.IsVisible(p.network);
    // istio#58613: a proxy that does not know its network reaches others through their gateways.
    const bool forced = Has(Change::kUnknownNetworkUsesGateways) && b_.proxy_.metadata.network.empty();
    if (forced ? p.network.empty() : b_.proxy_.InNetwork(p.network)) return;
    // Those of the endpoint's own cluster if there are any. istiod: selectNetworkGateways.
    const std::vector<NetworkGateway>* gateways = &networks_.ForNetworkAndCluster(p.network, p.locality.cluster);
    if (gateways->empty()) gateways = &networks_.ForNetwork(p.network);
    if (gateways->empty()) return;  // reached directly, for want of a gateway
    gateways = &OfFamily(*gateways);
    d.unreachable = gateways->empty();
    if (d.unreachable) return;
    for (size_t i = 0; i < remotes_.size(); ++i) {
      if (remotes_[i].group == d.group && remotes_[i].gateways == gateways) d.remote = static_cast<uint32_t>(i);
    }
    if (d.remote == kNone) {
      d.remote = static_cast<uint32_t>(remotes_.size());
      remotes_.push_back({d.group, gateways});
    }
  }

  // istiod: filterGatewaysByIPFamily.
  const std::vector<NetworkGateway>& OfFamily(const std::vector<NetworkGateway>& gateways) {
    if (!Has(Change::kGatewaysByFamily)) return gateways;
    const bool v4 = SupportsIpv4(b_.proxy_), v6 = SupportsIpv6(b_.proxy_);
    if (v4 == v6) return gateways;
    const auto known = of_family_.find(&gateways);
    if (known != of_family_.end()) return known->second;
    std::vector<NetworkGateway>& out = of_family_[&gateways];
    for (const NetworkGateway& gateway : gateways) {
      const absl::StatusOr<IpAddress> address = IpAddress::Parse(gateway.addr);
      if (address.ok() && address->is_v4() == v4) out.push_back(gateway);
    }
    return out;
  }

  void CollectDisabled(const Lists& lists) {
    for (const auto& [key, list] : lists) {
      for (const IstioEndpoint& e : *list) {
        const auto [d, refused_by] = Decide(e);
        if (refused_by == EndpointFilter::kPassed && d->mtls_disabled) {
          disabled_.insert(HostOf(e.address, e.endpoint_port));
        }
      }
    }
  }

  // The filter that keeps it out even so.
  EndpointFilter Add(const IstioEndpoint& e, Decision& d) {
    // A label is taken from an endpoint only if it, or one of its address before it, lacks mTLS; the filters below look
    // at all of that address.
    bool label_off = d.mtls_disabled, filter_off = d.mtls_disabled;
    if (by_address_) {
      const HostKey host = HostOf(e.address, e.endpoint_port);
      if (d.mtls_disabled) {
        disabled_so_far_.insert(host);
      } else {
        label_off = disabled_so_far_.count(host) != 0;
        filter_off = disabled_.count(host) != 0;
      }
    }
    if (!d.visible) return EndpointFilter::kNetworkView;
    if (d.unreachable) return EndpointFilter::kGatewayFamily;
    const uint32_t weight = WeightOf(e);
    if (d.remote != kNone) {
      // Gateways route by SNI, hence nothing without mTLS gets through them.
      if (filter_off) return EndpointFilter::kMtls;
      Remote& remote = remotes_[d.remote];
      remote.weight_per_gateway += weight / static_cast<uint32_t>(remote.gateways->size());
      remote_used_ = true;
      if (used_.size() <= d.remote) used_.resize(remotes_.size());
      used_[d.remote] = true;
      return EndpointFilter::kPassed;
    }
    // istiod: EndpointsByNetworkFilter. In a mesh of one network such an endpoint is sent as it is.
    if (split_horizon_ && e.address.empty() && Has(Change::kEntriesWithoutAddress)) return EndpointFilter::kAddress;
    // istiod: EndpointsWithMTLSFilter. An AUTO_PASSTHROUGH gateway forwards mTLS only.
    if (b_.sni_dnat_ && filter_off) return EndpointFilter::kMtls;
    label_off = label_off && b_.push_.env().features.auto_mtls_checks;
    uint32_t& shape = label_off ? d.plain_shape : d.shape;
    if (shape == kNone) shape = MakeShape(e.p(), label_off);
    const uint8_t health = static_cast<uint8_t>(d.draining ? HealthStatus::kDraining : e.health);
    groups_[d.group].result.endpoints.push_back({&e.address, e.endpoint_port, weight, shape, health});
    return EndpointFilter::kPassed;
  }

  uint32_t WeightOf(const IstioEndpoint& e) const {
    const uint32_t weight = e.lb_weight == 0 ? 1 : e.lb_weight;
    return split_horizon_ ? ScaleWeight(weight, scale_) : weight;
  }

  // `d`: null if the endpoint was not even looked at.
  void Explain(const ShardKey& shard, const IstioEndpoint& e, EndpointFilter refused_by, const Decision* d) {
    EndpointDecision& out = explanation_->endpoints.emplace_back();
    out.shard = shard;
    out.endpoint = &e;
    out.refused_by = refused_by;
    if (d == nullptr || refused_by < EndpointFilter::kNetworkView || d->group == kNone) return;
    out.mtls = d->mtls;
    out.mtls_off_by_address = !d->mtls_disabled && by_address_ && disabled_.count(HostOf(e.address, e.endpoint_port));
    out.own_network = b_.proxy_.InNetwork(e.p().network);
    out.through_gateways = d->remote != kNone;
    out.weight = WeightOf(e);
    if (out.through_gateways) {
      for (const NetworkGateway& gateway : *remotes_[d->remote].gateways) {
        out.routes.push_back({true, gateway.cluster.str(), gateway.addr, gateway.port, 0, {}, {}, 0});
      }
    } else {
      out.routes.push_back({false, {}, e.address, e.endpoint_port, 0, {}, {}, 0});
    }
  }

  // Where the finished assignment holds what stands for each endpoint. Complexity: the product of both, which is for
  // people to read.
  void ExplainRoutes() {
    for (EndpointDecision& decision : explanation_->endpoints) {
      if (decision.refused_by != EndpointFilter::kPassed) {
        decision.routes.clear();
        continue;
      }
      const size_t wanted = decision.routes.size();
      std::erase_if(decision.routes, [&](EndpointRoute& route) { return !FindRoute(*decision.endpoint, route); });
      if (!decision.routes.empty() || wanted == 0) continue;
      // Nothing of it is left: the last filters took its locality, or its gateways.
      const bool by_locality = explanation_->locality_lb == LocalityLbMode::kDistribute;
      decision.refused_by = by_locality ? EndpointFilter::kLocality : EndpointFilter::kMtls;
    }
  }

  // A gateway may stand in several localities; the endpoint's own goes first.
  bool FindRoute(const IstioEndpoint& endpoint, EndpointRoute& route) const {
    const LbEndpoint* found = nullptr;
    for (const LocalityLbEndpoints& group : out_.localities) {
      const bool own = group.locality == endpoint.p().locality.label;
      if (found != nullptr && !own) continue;
      for (const LbEndpoint& e : group.endpoints) {
        const bool same = route.gateway ? *e.address == route.address && e.port == route.port
                                        : e.address == &endpoint.address && e.port == route.port;
        if (!same) continue;
        found = &e;
        route.weight = e.weight;
        route.locality = group.locality;
        route.locality_weight = group.weight;
        route.priority = group.priority;
        break;
      }
    }
    return found != nullptr;
  }

  uint32_t MakeShape(const EndpointProfile& p, bool without_tls) {
    out_.shapes.push_back({ProfileMetadata(p, without_tls), &p.labels, &p.more_addresses});
    return static_cast<uint32_t>(out_.shapes.size() - 1);
  }

  // A gateway stands for workloads that istiod does not name: of the metadata only a cluster is there, the gateway's
  // own or, before there was istio.workload for gateways, the proxy's.
  uint32_t MakeGatewayShape(const NetworkGateway& gateway) {
    static const Labels kNoLabels;
    const ClusterId& cluster = Has(Change::kGatewaysKeepTheirCluster) ? gateway.cluster : b_.proxy_.metadata.cluster_id;
    if (gateway_metadata_.empty() || cluster != gateway_cluster_) {
      gateway_metadata_ = *out_.owned_metadata.emplace_back(std::make_unique<const std::string>(
          EncodeEndpointMetadata({kMutualTlsMode, {}, {}, cluster.str(), &kNoLabels})));
      gateway_cluster_ = cluster;
      gateway_shape_ = kNone;
    }
    const bool by_labels = UsesFailoverPriority(b_.locality_lb_, b_.fails_over_);
    if (!by_labels && gateway_shape_ != kNone) return gateway_shape_;
    const Labels* labels = &kNoLabels;
    if (by_labels) {
      Labels own;
      if (!gateway.cluster.empty()) own[std::string(kClusterLabel)] = gateway.cluster.str();
      if (!gateway.network.empty()) own[std::string(kNetworkLabel)] = gateway.network.str();
      labels = out_.owned_labels.emplace_back(std::make_unique<const Labels>(std::move(own))).get();
    }
    out_.shapes.push_back({gateway_metadata_, labels});
    gateway_shape_ = static_cast<uint32_t>(out_.shapes.size() - 1);
    return gateway_shape_;
  }

  // Gateways of one family are this grouping's own, and the assignment outlives it.
  const std::string* AddressOf(const NetworkGateway& gateway) {
    if (of_family_.empty()) return &gateway.addr;
    return out_.owned_addresses.emplace_back(std::make_unique<const std::string>(gateway.addr)).get();
  }

  void AddGateways(const GatewayWeights& weights, LocalityLbEndpoints& group) {
    for (const auto& [gateway, weight] : weights) {
      if (b_.sni_dnat_ && by_address_ && disabled_.count(HostOf(gateway->addr, gateway->port)) != 0) continue;
      group.endpoints.push_back(
          {AddressOf(*gateway), gateway->port, std::max<uint32_t>(weight, 1), MakeGatewayShape(*gateway), 0});
    }
  }

  void Finish() {
    Order order(groups_.size());  // localities by name
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return groups_[a].result.locality < groups_[b].result.locality; });
    out_.localities.reserve(groups_.size());
    std::vector<GatewayWeights> weights(remote_used_ ? groups_.size() : 0);
    if (remote_used_) {
      used_.resize(remotes_.size());
      for (size_t i = 0; i < remotes_.size(); ++i) {
        if (!used_[i]) continue;
        for (const NetworkGateway& g : *remotes_[i].gateways) {
          weights[remotes_[i].group][&g] += remotes_[i].weight_per_gateway;
        }
      }
      // istio#56355: Envoy uses the first copy of an address only, so a gateway's whole weight goes there.
      if (b_.push_.profile().Has(Change::kGatewayOncePerCla)) MergeIntoFirst(order, weights);
    }
    for (uint32_t i : order) {
      LocalityLbEndpoints& group = groups_[i].result;
      if (remote_used_) AddGateways(weights[i], group);
      if (!group.endpoints.empty()) group.weight = group.SumOfWeights();
      out_.localities.push_back(std::move(group));
    }
    if (b_.locality_lb_ != nullptr && !inside_cluster_) {
      ApplyLocalityLb(*b_.locality_lb_, b_.fails_over_, PartsOf(b_.proxy_.locality), b_.proxy_.labels, true, out_);
    }
  }

  static void MergeIntoFirst(const Order& order, std::vector<GatewayWeights>& weights) {
    GatewayWeights total;
    for (const GatewayWeights& group : weights) {
      for (const auto& [gateway, weight] : group) total[gateway] += weight;
    }
    for (uint32_t i : order) {
      GatewayWeights first;
      for (const auto& [gateway, weight] : weights[i]) {
        if (const auto it = total.find(gateway); it != total.end()) first.insert(total.extract(it));
      }
      weights[i] = std::move(first);
    }
  }

  const LoadAssignmentBuilder& b_;
  AssignmentExplanation* const explanation_;  // null: nobody asks
  std::string_view port_name_;
  int port_number_;  // 0: by the port's name always
  bool no_names_;
  MtlsChecker mtls_;
  const NetworkGateways& networks_;
  bool split_horizon_;
  uint32_t scale_;
  bool inside_cluster_;  // part of a cluster of type DNS
  bool sends_unhealthy_;
  bool keeps_draining_;
  const Labels* subset_labels_ = nullptr;

  absl::InlinedVector<Decision, kFew> decisions_;
  absl::flat_hash_map<std::pair<const EndpointProfile*, uint32_t>, uint32_t> index_;  // of decisions_ that are many
  const EndpointProfile* last_profile_ = nullptr;
  uint32_t last_port_ = 0;
  Decision* last_ = nullptr;  // set anew whenever decisions_ may have grown

  absl::InlinedVector<Group, 4> groups_;
  std::vector<Remote> remotes_;
  std::map<const std::vector<NetworkGateway>*, std::vector<NetworkGateway>> of_family_;  // only searched
  std::vector<bool> used_;  // remotes_ with an endpoint behind them
  bool remote_used_ = false;

  bool some_disabled_ = false, some_enabled_ = false, by_address_ = false;
  std::set<HostKey> disabled_, disabled_so_far_;

  bool Has(Change change) const { return b_.push_.profile().Has(change); }

  std::string_view gateway_metadata_;  // of out_, for gateways of gateway_cluster_
  ClusterId gateway_cluster_;
  uint32_t gateway_shape_ = kNone;
  LoadAssignment& out_;
};

void LoadAssignmentBuilder::Build(LoadAssignment& out, int64_t* looked_at, AssignmentExplanation* explanation) const {
  out.Clear();
  if (explanation != nullptr) {
    explanation->service = service_;
    explanation->multi_network = push_.networks().IsMultiNetworkEnabled();
    if (rule_ != nullptr) explanation->rule = rule_ref_->rule->meta.ns + "/" + rule_ref_->rule->meta.name;
    explanation->outlier_detection = outlier_detection_;
    explanation->locality_lb = ModeOf(locality_lb_, fails_over_);
  }
  const auto nothing = [&](AssignmentRefusal why) {
    if (explanation != nullptr) explanation->refusal = why;
  };
  if (service_ == nullptr) return nothing(AssignmentRefusal::kServiceUnknown);
  // The proxy still asks for what was an EDS cluster when it subscribed.
  if (service_->resolution == Resolution::kDnsLb || service_->resolution == Resolution::kDnsRoundRobinLb) {
    return nothing(AssignmentRefusal::kNotEds);
  }
  const Port* port = service_->FindPort(port_);
  if (port == nullptr) return nothing(AssignmentRefusal::kNoSuchPort);
  const EndpointShards* shards = push_.env().endpoints->Find(hostname_, service_->attributes.ns);
  if (shards == nullptr) return nothing(AssignmentRefusal::kNoShards);
  Grouping(*this, *port, false, explanation, out).Run(*shards, looked_at);
}

void LoadAssignmentBuilder::BuildInline(LoadAssignment& out) const {
  out.Clear();
  if (service_ == nullptr) return;
  const Port* port = service_->FindPort(port_);
  const EndpointShards* shards = push_.env().endpoints->Find(hostname_, service_->attributes.ns);
  if (port != nullptr && shards != nullptr) {
    Grouping(*this, *port, true, nullptr, out).Run(*shards, nullptr);
  }
}

}  // namespace wavetank::pilot
