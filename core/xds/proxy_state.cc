#include "core/xds/proxy_state.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "core/model/labels.h"
#include "core/profile/changes.h"

namespace wavetank::pilot {
namespace {

ProxyLocality ParseLocality(std::string_view label) {
  ProxyLocality out;
  for (std::string* part : {&out.region, &out.zone, &out.sub_zone}) {
    const size_t slash = label.find('/');
    *part = label.substr(0, slash);
    if (slash == std::string_view::npos) break;
    label.remove_prefix(slash + 1);
  }
  return out;
}

// istiod: setTopologyLabels.
void SetTopology(Proxy& proxy, const ProxyLocality& node_locality) {
  std::string_view label;
  if (!proxy.service_instances.empty()) {
    // All instances have the proxy's address, so any of them will do.
    label = proxy.service_instances.front().endpoint.p().locality.label;
  } else if (const auto it = proxy.labels.find(kLocalityLabel); it != proxy.labels.end()) {
    label = it->second;
  }
  proxy.locality = label.empty() ? node_locality : ParseLocality(label);

  std::string node = proxy.metadata.node_name;
  if (node.empty()) {
    if (const auto it = proxy.labels.find(kHostnameLabel); it != proxy.labels.end()) node = it->second;
  }
  // Through its text, since that is cut at the first part that is missing.
  const ProxyLocality locality = ParseLocality(proxy.locality.Label());
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) proxy.labels.insert_or_assign(std::string(name), value);
  };
  add(kRegionLabel, locality.region);
  add(kZoneLabel, locality.zone);
  add(kSubzoneLabel, locality.sub_zone);
  add(kClusterLabel, proxy.metadata.cluster_id.str());
  add(kHostnameLabel, node);
  add(kNetworkLabel, proxy.metadata.network.str());
}

// istiod: Proxy.ShouldUpdateServiceTargets.
bool MayServeOther(const Proxy& proxy, const PushRequest& request, const Profile& profile) {
  if (!profile.Has(Change::kTargetsOnServiceUpdates)) return true;
  const bool own = profile.Has(Change::kTargetsOfOwnNamespace);
  return std::any_of(request.configs_updated.begin(), request.configs_updated.end(), [&](const ConfigKey& key) {
    return key.kind == ConfigKind::kServiceEntry && (!own || key.ns == proxy.metadata.ns);
  });
}

bool DependsOn(const Proxy& proxy, const ConfigKey& key, const PushContext& push) {
  if (proxy.IsRouter()) {
    if (key.kind == ConfigKind::kSidecar) return false;
    if (key.kind != ConfigKind::kServiceEntry) return true;
    if (push.env().features.filters_gateway_clusters && !push.ServiceAttachedToGateway(key.name, key.ns, proxy))
      return false;
    // A gateway sees all services that are exported to it; one that it sees neither now nor before is none of its.
    const auto sees = [&](const SidecarScope* scope) {
      return scope != nullptr && scope->GetService(key.name) != nullptr;
    };
    return sees(proxy.sidecar_scope.get()) || sees(proxy.prev_sidecar_scope.get());
  }
  if (key.kind == ConfigKind::kGateway) return false;
  const auto depends = [&](const SidecarScope* scope) { return scope != nullptr && scope->DependsOnConfig(key); };
  return depends(proxy.sidecar_scope.get()) || depends(proxy.prev_sidecar_scope.get());
}

// Of what changed, the services that the proxy serves, which its Sidecar may not import.
std::set<ConfigKey> OwnServicesAmong(const Proxy& proxy, const PushRequest& request) {
  std::set<ConfigKey> out;
  for (const ServiceInstance& instance : proxy.service_instances) {
    const Service& own = *instance.service;
    ConfigKey key{ConfigKind::kServiceEntry, own.hostname, own.attributes.ns};
    if (request.configs_updated.contains(key)) out.insert(std::move(key));
    if (!request.push->profile().Has(Change::kOwnServicesPush)) break;
  }
  return out;
}

}  // namespace

void ComputeProxyState(Proxy& proxy, const PushContext& push, const PushRequest* request,
                       const ProxyLocality& node_locality) {
  const ServiceDiscovery& discovery = *push.env().discovery;
  const Profile& profile = push.profile();
  bool sidecar = request == nullptr || request->configs_updated.empty();
  bool gateway = sidecar;
  if (sidecar || MayServeOther(proxy, *request, profile)) {
    SetServiceInstances(proxy, discovery);
    // Gateways are found by what a proxy serves, but 1.18.2 does not think of it.
    gateway = gateway || profile.Has(Change::kTargetsOnServiceUpdates);
  }
  if (request == nullptr || request->IsProxyUpdate()) {
    SetWorkloadLabels(proxy, discovery);
    SetTopology(proxy, node_locality);
  }
  if (request != nullptr) {
    for (const ConfigKey& key : request->configs_updated) {
      switch (key.kind) {
        case ConfigKind::kServiceEntry:
        case ConfigKind::kDestinationRule:
        case ConfigKind::kVirtualService:
        case ConfigKind::kSidecar:
          sidecar = true;
          break;
        case ConfigKind::kPeerAuthentication:
          sidecar = sidecar || profile.Has(Change::kPeerAuthenticationsInScopes);
          break;
        case ConfigKind::kGateway:
          gateway = true;
          break;
        default:
          break;
      }
    }
  }
  if (sidecar) SetSidecarScope(proxy, push);
  if (gateway && proxy.IsRouter()) SetGatewaysForProxy(proxy, push);
}

bool ProxyNeedsPush(const Proxy& proxy, const PushRequest& request) {
  if (request.configs_updated.empty()) return true;
  for (const ConfigKey& key : request.configs_updated) {
    if (DependsOn(proxy, key, *request.push)) return true;
  }
  return !OwnServicesAmong(proxy, request).empty();
}

std::shared_ptr<const PushRequest> RelevantTo(const Proxy& proxy, const std::shared_ptr<const PushRequest>& request) {
  if (request->configs_updated.empty() || !request->push->profile().Has(Change::kRelevantUpdatesAlone)) return request;
  std::set<ConfigKey> relevant = OwnServicesAmong(proxy, *request);
  for (const ConfigKey& key : request->configs_updated) {
    if (DependsOn(proxy, key, *request->push)) relevant.insert(key);
  }
  if (relevant.size() == request->configs_updated.size()) return request;
  auto out = std::make_shared<PushRequest>(*request);
  out->configs_updated = std::move(relevant);
  return out;
}

}  // namespace wavetank::pilot
