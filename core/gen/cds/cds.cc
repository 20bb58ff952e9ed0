#include "core/gen/cds/cds.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/gen/cds/cds_answers.h"
#include "core/gen/cds/cluster_builder.h"
#include "core/gen/extensions/patch_clusters.h"
#include "core/gen/view/cache_dependencies.h"
#include "core/gen/view/common_tls.h"
#include "core/gen/view/needs_push.h"
#include "core/model/gateway.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "core/xds/cache.h"
#include "core/xds/resource_pool.h"

namespace wavetank::pilot {
namespace {

bool OnlyServices(const PushRequest& request) {
  if (request.configs_updated.empty()) return false;
  for (const ConfigKey& key : request.configs_updated) {
    if (key.kind != ConfigKind::kServiceEntry) return false;
  }
  return true;
}

bool TellsDeltas(ConfigKind kind) {
  return kind == ConfigKind::kServiceEntry || kind == ConfigKind::kDestinationRule ||
         kind == ConfigKind::kVirtualService || kind == ConfigKind::kPeerAuthentication || kind == ConfigKind::kSidecar;
}

// What is made once for many proxies; seen from outside is only how long it takes.
struct SharedClusters {
  // Clusters of no service, as all proxies of one mesh have them.
  struct Fixed {
    std::shared_ptr<const config::MeshConfig> mesh;
    Profile profile;
    bool ipv4 = false, ipv6 = false;
    Resource black_hole, passthrough;
    std::vector<Resource> inbound_passthrough;
  };
  // Of one push context: clusters of services that are the same in all localities. The cache proper, whose content is
  // part of the model, has them for each.
  using Anywhere = absl::flat_hash_map<std::string, std::vector<Resource>>;

  ResourcePool pool;
  std::vector<Fixed> fixed;
  Anywhere anywhere;
};

// Clusters of one proxy for one request.
class Generation {
 public:
  Generation(const Proxy& proxy, const PushRequest& request, XdsCache* cache, SharedClusters& shared)
      : proxy_(proxy), request_(request), push_(*request.push), cache_(cache), shared_(shared), builder_(proxy, push_) {
    AppendView(view_, /*locality=*/true);
    std::shared_ptr<const EnvoyPatches> patches = push_.envoy_filters().For(proxy);
    if (patches == nullptr) return;
    using Context = config::EnvoyFilter::Context;
    envoy_filters_ = patches->From({EnvoyPatches::ApplyTo::kCluster});
    outbound_patcher_.emplace(patches, proxy.IsRouter() ? Context::kGateway : Context::kSidecarOutbound);
    if (!proxy.IsRouter()) inbound_patcher_.emplace(patches, Context::kSidecarInbound);
  }

  // The proxy's EnvoyFilters patch clusters.
  bool Patched() const { return !envoy_filters_.empty(); }

  // What the proxy's own metadata says in the keys of its outbound clusters.
  std::string View() const { return view_ + (HasCredentialSocket(proxy_) ? 'c' : 'n'); }
  // Clusters without DestinationRule depend on nothing of the proxy but its scope and View(): the mesh's failover
  // priorities do not look at its labels.
  bool SameForView() const {
    const auto& locality_lb = push_.mesh().locality_lb_setting;
    return !locality_lb || locality_lb->failover_priority.empty();
  }
  void AddOutbound(const std::vector<ServiceRef>& services) {
    names_.reserve(services.size() + 8);
    for (const ServiceRef& service : services) {
      ServiceClusters of = Outbound(*service);
      out_.cached += of.cached;
      Add(std::move(of.clusters));
    }
  }

  ServiceClusters Outbound(const Service& service) {
    ServiceClusters out;
    if (service.resolution == Resolution::kAlias) return out;
    const ConsolidatedDestRuleRef rule = RuleFor(service);
    out.ruled = rule != nullptr;
    for (const Port& port : service.ports) {
      if (port.protocol == Protocol::kUdp) continue;
      if (cache_ == nullptr || !cache_->enabled()) {
        for (Resource& resource : builder_.Outbound(service, port, rule.get())) {
          Keep(outbound_patcher_, std::move(resource), out.clusters);
        }
        continue;
      }
      const std::string port_key = PortKey(service, port, rule.get()), key = view_ + port_key;
      if (AddCached(service, port, rule.get(), key, out)) continue;
      const bool takes = cache_->Takes(XdsCache::Type::kCds, request_.start);
      std::vector<Resource> built = Built(service, port, rule.get(), port_key);
      for (size_t i = 0; i < built.size(); ++i) {
        // Where a patch names it anew, the service's own cluster is cached under the name that it had, a subset's under
        // the one that it gets.
        const std::string own_name(outbound_patcher_ && i == 0 ? built[i].name : std::string_view());
        const size_t before = out.clusters.size();
        Keep(outbound_patcher_, std::move(built[i]), out.clusters);
        if (!takes || out.clusters.size() == before) continue;
        const Resource& made = out.clusters.back();
        cache_->Add(XdsCache::Type::kCds, (own_name.empty() ? std::string(made.name) : own_name) + key, request_.start,
                    Dependencies(service, rule.get()), made, service.hostname);
      }
    }
    return out;
  }

  GeneratedResources Run(const std::vector<ServiceRef>& services) {
    AddOutbound(services);
    return Finish();
  }
  // With what follows the outbound clusters.
  GeneratedResources Finish() {
    const SharedClusters::Fixed& fixed = Fixed();
    AddPatched(outbound_patcher_, fixed.black_hole);
    if (proxy_.IsRouter()) {
      if (proxy_.merged_gateway != nullptr && proxy_.merged_gateway->contains_auto_passthrough_gateways) AddSniDnat();
      AddInserted(outbound_patcher_);
    } else {
      AddPatched(outbound_patcher_, fixed.passthrough);
      AddInserted(outbound_patcher_);
      for (InboundCluster& inbound : builder_.Inbound()) {
        AddPatched(inbound_patcher_, std::move(inbound.cluster), inbound.hosts);
      }
      for (const Resource& passthrough : fixed.inbound_passthrough) AddPatched(inbound_patcher_, passthrough);
      AddInserted(inbound_patcher_);
    }
    if (HasCredentialSocket(proxy_)) Add(builder_.ExternalSds());
    return std::move(out_);
  }

 private:
  using Patcher = std::optional<ClusterPatcher>;

  const SharedClusters::Fixed& Fixed() {
    constexpr size_t kMost = 8;
    const auto& mesh = push_.env().mesh;
    for (const SharedClusters::Fixed& known : shared_.fixed) {
      if (known.mesh == mesh && known.profile == push_.profile() && known.ipv4 == builder_.supports_ipv4() &&
          known.ipv6 == builder_.supports_ipv6()) {
        return known;
      }
    }
    if (shared_.fixed.size() == kMost) shared_.fixed.erase(shared_.fixed.begin());
    return shared_.fixed.emplace_back(SharedClusters::Fixed{mesh, push_.profile(), builder_.supports_ipv4(),
                                                            builder_.supports_ipv6(), builder_.BlackHole(),
                                                            builder_.Passthrough(), builder_.InboundPassthrough()});
  }

  // A locality shows in the endpoints alone, which EDS has, and in rules.
  std::vector<Resource> Built(const Service& service, const Port& port, const ConsolidatedDestRule* rule,
                              const std::string& port_key) {
    const bool by_dns = service.resolution == Resolution::kDnsLb || service.resolution == Resolution::kDnsRoundRobinLb;
    if (rule != nullptr || by_dns || !SameForView()) return Pooled(builder_.Outbound(service, port, rule));
    if (view_anywhere_.empty()) AppendView(view_anywhere_, /*locality=*/false);
    const std::string name = BuildSubsetKey(TrafficDirection::kOutbound, "", service.hostname, port.port);
    std::vector<Resource>& known = shared_.anywhere[absl::StrCat(name, view_anywhere_, port_key)];
    if (known.empty()) known = Pooled(builder_.Outbound(service, port, rule));
    return known;
  }
  std::vector<Resource> Pooled(std::vector<Resource> clusters) {
    for (Resource& cluster : clusters) cluster = shared_.pool.Same(std::move(cluster));
    return clusters;
  }

  static void Keep(const Patcher& patcher, Resource cluster, std::vector<Resource>& out) {
    if (!patcher) return out.push_back(std::move(cluster));
    if (std::optional<Resource> patched = patcher->Patch(std::move(cluster))) out.push_back(*std::move(patched));
  }
  void AddPatched(const Patcher& patcher, Resource cluster, absl::Span<const std::string> hosts = {}) {
    if (!patcher) return Add(std::move(cluster));
    if (std::optional<Resource> patched = patcher->Patch(std::move(cluster), hosts)) Add(*std::move(patched));
  }
  void AddInserted(const Patcher& patcher) {
    if (patcher) Add(patcher->Inserted());
  }
  std::vector<uint64_t> Dependencies(const Service& service, const ConsolidatedDestRule* rule) const {
    std::vector<uint64_t> out = DependenciesOf(service, rule);
    for (const ConfigKey& filter : envoy_filters_) AddDependency(filter, out);
    return out;
  }

  // The first of a name has it.
  void Add(Resource resource) {
    if (names_.insert(resource.name).second) out_.resources.push_back(std::move(resource));
  }
  void Add(std::vector<Resource> resources) {
    for (Resource& resource : resources) Add(std::move(resource));
  }

  ConsolidatedDestRuleRef RuleFor(const Service& service) const {
    if (proxy_.sidecar_scope == nullptr) return nullptr;
    return proxy_.sidecar_scope->DestinationRule(TrafficDirection::kOutbound, proxy_, service.hostname);
  }

  // All or nothing: a port's cluster and those of its subsets are built together.
  bool AddCached(const Service& service, const Port& port, const ConsolidatedDestRule* rule, const std::string& key,
                 ServiceClusters& out) {
    cached_.clear();
    const auto get = [&](std::string_view subset) {
      const std::string name = BuildSubsetKey(TrafficDirection::kOutbound, subset, service.hostname, port.port);
      const Resource* known = cache_->Get(XdsCache::Type::kCds, name + key);
      if (known != nullptr) cached_.push_back(*known);
      return known != nullptr;
    };
    if (!get("")) return false;
    if (rule != nullptr && rule->rule != nullptr) {
      for (const config::Subset& subset : rule->rule->spec.subsets) {
        if (!get(subset.name)) return false;
      }
    }
    out.cached += static_cast<int64_t>(cached_.size());
    for (Resource& resource : cached_) out.clusters.push_back(std::move(resource));
    return true;
  }

  void AppendView(std::string& key, bool locality) const {
    const auto add = [&](std::string_view part) { key.append(part).push_back('~'); };
    const NodeMetadata& metadata = proxy_.metadata;
    key.push_back('~');
    add(metadata.istio_version);
    if (locality) {
      add(proxy_.locality.region);
      add(proxy_.locality.zone);
      add(proxy_.locality.sub_zone);
    }
    add(metadata.cluster_id.str());
    key.push_back(proxy_.IsRouter() ? 'r' : 's');
    key.push_back(builder_.supports_ipv4() ? '4' : '6');
    for (const std::string& network : metadata.requested_network_view) add(network);
    key.push_back('~');
    add(metadata.tls_client_cert_chain);
    add(metadata.tls_client_key);
    add(metadata.tls_client_root_cert);
  }

  // What a cluster depends on besides its name, the view and the configurations below. istiod: cluster_cache.go.
  std::string PortKey(const Service& service, const Port& port, const ConsolidatedDestRule* rule) const {
    std::string key;
    const auto add = [&](std::string_view part) { key.append(part).push_back('~'); };
    const bool sidecar = !proxy_.IsRouter();
    key.push_back(IsHttp2(port.protocol) ? '2' : '1');
    key.push_back(sidecar && IsUnsupported(port.protocol) ? 'u' : 'k');
    add(service.attributes.ns);
    if (rule != nullptr) {
      for (const ConfigKey& from : rule->from) {
        key.append(from.name).push_back('/');
        add(from.ns);
      }
    }
    key.push_back('~');
    for (const ConfigKey& filter : envoy_filters_) {
      key.append(filter.ns).push_back('/');
      add(filter.name);
    }
    key.push_back('~');
    add(push_.authn().version());
    for (const std::string& account : push_.ServiceAccounts(service.hostname, service.attributes.ns, port.port)) {
      add(account);
    }
    return key;
  }

  void AddSniDnat() {
    if (proxy_.sidecar_scope == nullptr) return;
    for (const ServiceRef& service : proxy_.sidecar_scope->services()) {
      if (service->mesh_external) continue;
      const ConsolidatedDestRuleRef rule = RuleFor(*service);
      for (const Port& port : service->ports) {
        if (port.protocol == Protocol::kUdp) continue;
        for (Resource& cluster : builder_.SniDnat(*service, port, rule.get())) {
          AddPatched(outbound_patcher_, std::move(cluster));
        }
      }
    }
  }

  const Proxy& proxy_;
  const PushRequest& request_;
  const PushContext& push_;
  XdsCache* cache_;
  SharedClusters& shared_;
  ClusterBuilder builder_;
  std::vector<ConfigKey> envoy_filters_;  // that patch clusters
  Patcher outbound_patcher_, inbound_patcher_;
  std::string view_, view_anywhere_;  // see AppendView()
  GeneratedResources out_;
  absl::flat_hash_set<std::string_view> names_;  // of what out_ holds
  std::vector<Resource> cached_;
};

class CdsGenerator final : public Generator {
 public:
  explicit CdsGenerator(const CdsOptions& options) : cache_(options.cache) {}

  GeneratedResources Generate(const Proxy& proxy, const WatchedResource&, const PushRequest& request) override {
    if (!NeedsPush(proxy, request)) return NothingToSend();
    return Everything(proxy, request);
  }

  GeneratedResources GenerateDeltas(const Proxy& proxy, const WatchedResource& watched,
                                    const PushRequest& request) override {
    if (!NeedsPush(proxy, request)) return NothingToSend();
    if (request.push->profile().Has(Change::kDeltasOfScopes)) return DeltasOfScopes(proxy, watched, request);
    if (!OnlyServices(request)) return Everything(proxy, request);

    // Names on record by host; of the clusters of one port (its subsets) the last. istiod forgets the others when a
    // port goes (1.18: BuildDeltaClusters' servicePorts), and so do we.
    struct OnRecord {
      std::vector<std::string_view> clusters;
      std::map<int, std::string_view> by_port;
    };
    std::map<std::string_view, OnRecord> on_record;
    for (const std::string& name : watched.resource_names) {
      const SubsetKey key = ParseSubsetKey(name).value_or(SubsetKey{});
      OnRecord& host = on_record[key.hostname];
      host.clusters.push_back(name);
      host.by_port[key.port] = name;
    }
    std::vector<ServiceRef> services;
    std::vector<std::string> removed;
    for (const ConfigKey& key : request.configs_updated) {
      const auto known = on_record.find(key.name);
      const ServiceRef service = request.push->ServiceForHostname(proxy, key.name);
      if (service == nullptr) {
        if (known == on_record.end()) continue;
        removed.insert(removed.end(), known->second.clusters.begin(), known->second.clusters.end());
        continue;
      }
      services.push_back(service);
      if (known == on_record.end()) continue;
      for (const auto& [port, cluster] : known->second.by_port) {
        if (service->FindPort(port) == nullptr) removed.emplace_back(cluster);
      }
    }
    GeneratedResources out = Generation(proxy, request, cache_, SharedOf(request.push)).Run(services);
    out.removed = std::move(removed);
    out.used_delta = true;
    return out;
  }

 private:
  static bool NeedsPush(const Proxy& proxy, const PushRequest& request) {
    return request.full && (AnyConcerns(XdsType::kCds, request.configs_updated, proxy) || OfGateways(proxy, request));
  }
  // istiod: pilot/pkg/xds/cds.go, pushCdsGatewayConfig.
  static bool OfGateways(const Proxy& proxy, const PushRequest& request) {
    if (FiltersGateway(proxy, request) && request.HasConfigsOfKind(ConfigKind::kVirtualService)) return true;
    return proxy.IsRouter() && request.HasConfigsOfKind(ConfigKind::kGateway) &&
           (request.push->profile().Has(Change::kGatewaysConcernClusters) || FiltersGateway(proxy, request));
  }
  static bool FiltersGateway(const Proxy& proxy, const PushRequest& request) {
    return proxy.IsRouter() && request.push->env().features.filters_gateway_clusters;
  }
  // istiod since 1.30: BuildDeltaClusters.
  GeneratedResources DeltasOfScopes(const Proxy& proxy, const WatchedResource& watched, const PushRequest& request) {
    const bool filters = FiltersGateway(proxy, request);
    // Of a gateway that has only what its routes lead to a VirtualService changes what that is; it is compared below.
    if (request.HasConfigsOfKind(ConfigKind::kGateway) && OfGateways(proxy, request)) return Everything(proxy, request);
    std::vector<const ConfigKey*> updates;
    for (const ConfigKey& key : request.configs_updated) {
      if (!(filters && key.kind == ConfigKind::kVirtualService) && !Concerns(XdsType::kCds, key.kind, proxy)) continue;
      const bool everybodys =
          key.kind == ConfigKind::kPeerAuthentication && key.ns == request.push->mesh().root_namespace;
      if (!TellsDeltas(key.kind) || everybodys) return Everything(proxy, request);
      updates.push_back(&key);
    }
    if (updates.empty() || proxy.sidecar_scope == nullptr) return Everything(proxy, request);
    const SidecarScope& scope = *proxy.sidecar_scope;

    // Names on record by host; of the clusters of one port the last, as above.
    struct OnRecord {
      std::vector<std::string_view> clusters, subsets;
      std::map<int, std::string_view> by_port;
    };
    std::map<std::string_view, OnRecord> on_record;
    std::set<std::string, std::less<>> removed;
    for (const std::string& name : watched.resource_names) {
      if (name.starts_with("inbound|")) {
        removed.insert(name);  // unless it is made again, as all of them are
        continue;
      }
      const SubsetKey key = ParseSubsetKey(name).value_or(SubsetKey{});
      OnRecord& host = on_record[key.hostname];
      (key.subset.empty() ? host.clusters : host.subsets).push_back(name);
      host.by_port[key.port] = name;
    }
    const auto remove = [&](const std::vector<std::string_view>& names) { removed.insert(names.begin(), names.end()); };
    const auto remove_host = [&](const OnRecord& host) {
      remove(host.clusters);
      remove(host.subsets);
    };

    const std::vector<ServiceRef> of_gateway =
        filters ? request.push->GatewayServices(proxy) : std::vector<ServiceRef>();
    const std::vector<ServiceRef>& seen = filters ? of_gateway : scope.services();
    const auto left_out = [&](std::string_view host, std::string_view ns) {
      return filters && !request.push->ServiceAttachedToGateway(host, ns, proxy);
    };
    const auto gone = [&](std::string_view host) {
      if (!filters) return scope.GetService(host) == nullptr;
      return std::none_of(seen.begin(), seen.end(),
                          [&](const ServiceRef& service) { return service->hostname == host; });
    };

    std::vector<ServiceRef> services;
    absl::flat_hash_set<std::string> have;
    const auto add = [&](const ServiceRef& service) {
      if (have.insert(service->hostname).second) services.push_back(service);
    };
    bool compared = false;
    for (const ConfigKey* key : updates) {
      if (key->kind == ConfigKind::kServiceEntry) {
        const auto known = on_record.find(key->name);
        const ServiceRef service = request.push->ServiceForHostname(proxy, key->name);
        if (service != nullptr && left_out(key->name, key->ns)) continue;
        if (service != nullptr) add(service);
        if (known == on_record.end()) continue;
        if (service == nullptr) remove_host(known->second);
        for (const auto& [port, cluster] : known->second.by_port) {
          if (service != nullptr && service->FindPort(port) == nullptr) removed.emplace(cluster);
        }
      } else if (key->kind == ConfigKind::kDestinationRule) {
        const std::optional<std::string> now = scope.HostOfRule(*key);
        const std::optional<std::string> before =
            proxy.prev_sidecar_scope == nullptr ? std::nullopt : proxy.prev_sidecar_scope->HostOfRule(*key);
        for (const std::optional<std::string>& host : {now, before}) {
          if (!host) continue;
          for (const ServiceRef& service : scope.ServicesFor(*host)) {
            if (left_out(service->hostname, service->attributes.ns)) continue;
            add(service);
            if (const auto known = on_record.find(service->hostname); known != on_record.end()) {
              remove(known->second.subsets);
            }
          }
        }
      } else if (key->kind == ConfigKind::kPeerAuthentication) {
        for (const ServiceRef& service : seen) {
          if (service->attributes.ns == key->ns) add(service);
        }
      } else if (!compared && proxy.prev_sidecar_scope != nullptr) {
        compared = true;
        for (const ServiceRef& service : seen) {
          const auto known = on_record.find(service->hostname);
          if (known == on_record.end() || known->second.clusters.empty()) add(service);
        }
        for (const auto& [host, known] : on_record) {
          if (!known.clusters.empty() && gone(host)) remove_host(known);
        }
      }
    }
    GeneratedResources out = Generation(proxy, request, cache_, SharedOf(request.push)).Run(services);
    for (const Resource& made : out.resources) removed.erase(std::string(made.name));
    out.removed.assign(removed.begin(), removed.end());
    out.used_delta = true;
    return out;
  }

  static GeneratedResources NothingToSend() {
    GeneratedResources out;
    out.send = false;
    return out;
  }

  SharedClusters& SharedOf(const PushContextRef& push) {
    if (outbound_of_.lock() != push) {
      outbound_.clear();
      shared_.anywhere.clear();
    }
    outbound_of_ = push;
    return shared_;
  }

  GeneratedResources Everything(const Proxy& proxy, const PushRequest& request) {
    static const std::vector<ServiceRef> kNone;
    const auto& services = proxy.sidecar_scope != nullptr ? proxy.sidecar_scope->services() : kNone;
    Generation generation(proxy, request, cache_, SharedOf(request.push));
    if (FiltersGateway(proxy, request)) return generation.Run(request.push->GatewayServices(proxy));
    if (cache_ == nullptr || !cache_->enabled() || proxy.sidecar_scope == nullptr ||
        proxy.sidecar_scope->SelectsWorkloads() || generation.Patched()) {
      return generation.Run(services);
    }
    OutboundClusters& outbound = outbound_[{proxy.sidecar_scope, generation.View()}];
    const OutboundClusters::Now now{cache_->Takes(XdsCache::Type::kCds, request.start), generation.SameForView()};
    const GeneratedResources& known =
        outbound.UpToDate(services, *cache_, now, [&](const Service& service) { return generation.Outbound(service); });
    std::vector<Resource> rest = generation.Finish().resources;
    for (Resource& resource : rest) resource = shared_.pool.Same(std::move(resource));
    return Whole(known, rest, outbound.whole());
  }

  // The outbound clusters and what follows them, whose names are of other kinds. The same list as a proxy before was
  // sent, if there is one: whoever works something out of it finds that done.
  GeneratedResources Whole(const GeneratedResources& outbound, const std::vector<Resource>& rest,
                           std::vector<GeneratedResources>& whole) {
    constexpr size_t kMost = 128;
    const auto own = static_cast<std::ptrdiff_t>(outbound.resources.size());
    for (const GeneratedResources& known : whole) {
      if (std::equal(rest.begin(), rest.end(), known.resources.begin() + own, known.resources.end())) return known;
    }
    GeneratedResources made = outbound;
    for (const Resource& resource : rest) made.resources.push_back(resource);
    made.resources = shared_.pool.Same(std::move(made.resources));
    if (whole.size() < kMost) whole.push_back(made);
    return made;
  }

  XdsCache* cache_;
  SharedClusters shared_;
  // All of one push context, as is what of the above is.
  std::weak_ptr<const PushContext> outbound_of_;
  std::map<std::pair<SidecarScopeRef, std::string>, OutboundClusters> outbound_;
};

}  // namespace

std::unique_ptr<Generator> MakeCdsGenerator(const CdsOptions& options) {
  return std::make_unique<CdsGenerator>(options);
}

}  // namespace wavetank::pilot
