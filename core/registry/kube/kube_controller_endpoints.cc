// Pods and EndpointSlices, whichever comes first.
#include "core/registry/kube/kube_controller.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "core/profile/changes.h"
#include "core/registry/kube/endpoint_builder.h"
#include "core/registry/service_conversion.h"

namespace wavetank::pilot {

// --- Pods ---

void KubeController::OnPod(const kube::ObjectRef& object, Event event) {
  const kube::Pod& pod = kube::ParsePod(*object);
  if (pod.ip.empty()) return;
  const kube::NamespacedName name{object->meta.ns, object->meta.name};
  const bool serves = pod.phase != "Failed" && pod.phase != "Succeeded" && !object->meta.deleting && pod.ready;
  if (event == Event::kAdd) {
    if (!serves) return;
    AddPodIp(pod.ip, name);
  } else if (event == Event::kUpdate && serves) {
    AddPodIp(pod.ip, name);
  } else {
    if (!pod_addresses_.Erase(pod.ip, name)) return;
    event = Event::kDelete;
  }
  NotifyWorkload(*object, event);
}

void KubeController::AddPodIp(const std::string& ip, const kube::NamespacedName& pod) {
  if (!pod_addresses_.Put(ip, pod)) return;
  if (const auto waiting = need_resync_.find(ip); waiting != need_resync_.end()) {
    const std::set<kube::NamespacedName> slices = std::move(waiting->second);
    need_resync_.erase(waiting);
    for (const kube::NamespacedName& slice : slices) {
      Push(host_.cause(), "EndpointSlice/" + slice.ns + "/" + slice.name, [this, slice] {
        if (const kube::ObjectRef object = slices_.Get(slice)) OnSlice(object, Event::kAdd);
      });
    }
  }
  updater_.ProxyUpdate(options_.cluster, ip);
}

kube::ObjectRef KubeController::PodByIp(const std::string& ip) const {
  const kube::NamespacedName* const pod = pod_addresses_.PodAt(ip);
  return pod == nullptr ? nullptr : pods_.Get(*pod);
}

kube::ObjectRef KubeController::PodByProxy(const Proxy& proxy) const {
  // istiod: podKeyByProxy; an id of two parts whose second is the namespace.
  const size_t dot = proxy.id.find('.');
  if (dot != std::string::npos && proxy.id.find('.', dot + 1) == std::string::npos &&
      proxy.id.substr(dot + 1) == proxy.metadata.ns) {
    if (kube::ObjectRef pod = pods_.Get({proxy.metadata.ns, proxy.id.substr(0, dot)})) return pod;
  }
  if (options_.profile.Has(Change::kPodByNameAlone)) return nullptr;
  return proxy.ip_addresses.empty() ? nullptr : PodByIp(proxy.ip_addresses[0]);
}

std::string KubeController::PodLocality(const kube::Object& object, const kube::Pod& pod) const {
  if (const auto label = object.meta.labels.find(kLocalityLabel);
      label != object.meta.labels.end() && !label->second.empty()) {
    return LocalityFromLabel(label->second);
  }
  return NodeLocality(pod.node_name);
}

// Asked for with every endpoint of every slice, and the same for all pods of a node.
const std::string& KubeController::NodeLocality(const std::string& node_name) const {
  if (std::exchange(node_localities_revision_, nodes_.revision()) != nodes_.revision()) node_localities_.clear();
  const auto [known, missing] = node_localities_.try_emplace(node_name);
  std::string& out = known->second;
  const kube::ObjectRef node = missing ? nodes_.Get("", node_name) : nullptr;
  if (node == nullptr) return out;
  const auto value = [&](std::string_view name, std::string_view fallback) {
    auto it = node->meta.labels.find(name);
    if (it == node->meta.labels.end() || it->second.empty()) it = node->meta.labels.find(fallback);
    return it == node->meta.labels.end() ? std::string() : it->second;
  };
  const std::string region = value(kRegionLabel, "failure-domain.beta.kubernetes.io/region");
  const std::string zone = value(kZoneLabel, "failure-domain.beta.kubernetes.io/zone");
  const std::string subzone = value(kSubzoneLabel, kSubzoneLabel);
  if (!region.empty() || !zone.empty() || !subzone.empty()) out = region + "/" + zone + "/" + subzone;
  return out;
}

EndpointBuilder KubeController::BuilderFor(const kube::Object* object) const {
  const std::string trust_domain = options_.trust_domain ? options_.trust_domain() : "cluster.local";
  if (object == nullptr) return EndpointBuilder(*this, trust_domain);
  const kube::Pod& pod = kube::ParsePod(*object);
  return EndpointBuilder(*this, trust_domain, *object, pod, PodLocality(*object, pod));
}

bool KubeController::KnowsSeveralAddresses() const {
  return options_.profile.Has(Change::kDualStack) && options_.profile.Has(Change::kEndpointsOfSeveralAddresses);
}

void KubeController::NotifyWorkload(const kube::Object& object, Event event) {
  if (workload_handlers_.empty()) return;
  EndpointBuilder builder = BuilderFor(&object);
  // istiod: pod.go, notifyWorkloadHandlers.
  if (KnowsSeveralAddresses() && kube::ParsePod(object).ips.size() > 1) builder.UseAllAddresses();
  const WorkloadRef workload = builder.Workload();
  for (const WorkloadHandler& handler : workload_handlers_) handler(workload, event);
}

std::optional<Labels> KubeController::GetProxyWorkloadLabels(const Proxy& proxy) const {
  const kube::ObjectRef object = PodByProxy(proxy);
  if (object == nullptr) return std::nullopt;
  const kube::Pod& pod = kube::ParsePod(*object);
  Labels out = object->meta.labels;
  if (const std::string locality = PodLocality(*object, pod); !locality.empty())
    out[std::string(kLocalityLabel)] = locality;
  if (proxy.metadata.node_name.empty() && !pod.node_name.empty()) out[std::string(kHostnameLabel)] = pod.node_name;
  return out;
}

// --- EndpointSlices ---

void KubeController::OnSlice(const kube::ObjectRef& object, Event event) {
  // Slices of a ServiceImport are not for us.
  if (object->meta.labels.count(kMcsServiceNameLabel) != 0) return;
  const auto label = object->meta.labels.find(kServiceNameLabel);
  const kube::NamespacedName service{object->meta.ns, label == object->meta.labels.end() ? "" : label->second};
  if (event == Event::kDelete) {
    const kube::NamespacedName slice{object->meta.ns, object->meta.name};
    for (const auto& endpoint : kube::ParseEndpointSlice(*object).endpoints) {
      for (const std::string& address : endpoint.addresses) {
        if (const auto waiting = need_resync_.find(address); waiting != need_resync_.end()) {
          waiting->second.erase(slice);
          if (waiting->second.empty()) need_resync_.erase(waiting);
        }
      }
    }
  }
  for (const std::string& hostname : HostnamesOf(service)) UpdateSlice(hostname, *object, event);
  // Clients of a headless Service have its pods in their listeners and name tables (istiod: processEndpointEvent). One
  // that is imported without an address has no host in the clusterset.
  const std::string hostname = ServiceHostname(service.name, service.ns, options_.domain_suffix);
  const ServiceRef known = GetService(hostname);
  if (known == nullptr || IsHidden(*known)) return;
  const kube::ObjectRef kube_service = services_.Get(service);
  if (kube_service != nullptr && kube::ParseService(*kube_service).cluster_ip == "None") {
    updater_.ConfigUpdate({.full = options_.headless_listeners,
                           .configs_updated = {{ConfigKind::kServiceEntry, hostname, service.ns}},
                           .reasons = Reason(TriggerReason::kHeadlessEndpoint)});
  }
}

bool KubeController::IsHidden(const Service& service) const {
  return service.attributes.export_to.is_none && options_.profile.Has(Change::kHiddenServicesKeepShards);
}

void KubeController::UpdateSlice(const std::string& hostname, const kube::Object& slice, Event event) {
  if (event != Event::kDelete) {
    UpdateSliceCache(hostname, slice);
  } else if (const auto cached = slice_cache_.find(hostname); cached != slice_cache_.end()) {
    cached->second.erase(slice.meta.name);
    if (cached->second.empty()) slice_cache_.erase(cached);
  }
  const ServiceRef known = GetService(hostname);
  if (known != nullptr && IsHidden(*known)) return;
  updater_.EdsUpdate(shard_, hostname, slice.meta.ns,
                     known != nullptr ? EndpointsOf(*known) : CachedEndpoints(hostname));
}

EndpointList KubeController::CachedEndpoints(const std::string& hostname) const {
  EndpointList out;
  const auto cached = slice_cache_.find(hostname);
  if (cached == slice_cache_.end()) return out;
  if (cached->second.size() == 1) return cached->second.begin()->second;
  // An endpoint that moves from one slice to another may be in both for a while.
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& [slice, endpoints] : cached->second) {
    for (const IstioEndpoint& endpoint : endpoints) {
      if (seen.emplace(endpoint.address, endpoint.p().service_port_name).second) out.push_back(endpoint);
    }
  }
  return out;
}

// istiod: endpointslice.go, endpointHealthStatus; a condition that nobody states is true.
HealthStatus KubeController::HealthOf(const std::string& hostname,
                                      const kube::EndpointSlice::Endpoint& endpoint) const {
  if (endpoint.ready.value_or(true)) return HealthStatus::kHealthy;
  const ServiceRef service = GetService(hostname);
  if (service == nullptr || !endpoint.terminating.value_or(true)) return HealthStatus::kUnhealthy;
  const auto persistent = service->attributes.labels.find(kPersistentSessionLabel);
  const bool drains = persistent != service->attributes.labels.end() && !persistent->second.empty();
  return drains && endpoint.serving.value_or(true) ? HealthStatus::kDraining : HealthStatus::kTerminating;
}

void KubeController::RemakeEndpointsOf(const kube::NamespacedName& name) {
  const kube::ObjectRef pod = pods_.Get(name);
  if (pod == nullptr || !pod_addresses_.Knows(name)) return;
  for (const kube::ObjectRef& service : PodServices(pod->meta.ns, pod->meta.labels)) {
    for (const kube::ObjectRef& slice : slices_.List(pod->meta.ns)) {
      const auto label = slice->meta.labels.find(kServiceNameLabel);
      if (label != slice->meta.labels.end() && label->second == service->meta.name) OnSlice(slice, Event::kUpdate);
    }
  }
}

void KubeController::UpdateSliceCache(const std::string& hostname, const kube::Object& object) {
  const kube::EndpointSlice& slice = kube::ParseEndpointSlice(object);
  if (slice.address_type == "FQDN") return;
  const auto label = object.meta.labels.find(kServiceNameLabel);
  const bool confined =
      Confined(hostname, {object.meta.ns, label == object.meta.labels.end() ? std::string() : label->second});
  // istiod: endpointslice.go, updateEndpointCacheForSlice.
  bool service_of_both = false;
  if (KnowsSeveralAddresses() && label != object.meta.labels.end()) {
    const kube::ObjectRef service = services_.Get({object.meta.ns, label->second});
    service_of_both = service != nullptr && kube::ParseService(*service).cluster_ips.size() > 1;
  }
  EndpointList endpoints;
  // Pods on the host network share its address: of equal addresses and port names the first one counts.
  // istiod: pilot/pkg/serviceregistry/kube/controller/endpointslice.go, endpointSliceCache.Get.
  absl::flat_hash_set<std::pair<std::string_view, std::string_view>> seen;
  for (const auto& endpoint : slice.endpoints) {
    // Not ready ones are not tracked in 1.18 (PILOT_SEND_UNHEALTHY_ENDPOINTS is off by default).
    const HealthStatus health = HealthOf(hostname, endpoint);
    if (health != HealthStatus::kHealthy && !options_.profile.Has(Change::kNotReadyEndpointsStay)) continue;
    for (const std::string& address : endpoint.addresses) {
      const bool expected = endpoint.has_target && endpoint.target_kind == "Pod";
      kube::ObjectRef pod;
      if (expected) {
        pod = pods_.Get(endpoint.target_namespace, endpoint.target_name);
        if (pod == nullptr) {
          // The slice came before its pod; it is handled again when the pod is there.
          need_resync_[address].insert({object.meta.ns, object.meta.name});
          continue;
        }
      } else {
        pod = PodByIp(address);
        if (pod != nullptr && pod->meta.ns != object.meta.ns) pod = nullptr;
      }
      const bool all = expected && service_of_both && kube::ParsePod(*pod).ips.size() > 1;
      // The slice of IPv4 has this endpoint, with both addresses.
      if (all && slice.address_type == "IPv6") continue;
      EndpointBuilder builder = BuilderFor(pod.get());
      builder.Confine(confined);
      if (all) builder.UseAllAddresses();
      for (const auto& port : slice.ports) {
        const std::string_view port_name = port.name ? std::string_view(*port.name) : std::string_view();
        if (!seen.emplace(address, port_name).second) continue;
        endpoints.push_back(builder.Build(all ? kube::ParsePod(*pod).ips.front() : address,
                                          static_cast<uint32_t>(port.port.value_or(0)), std::string(port_name),
                                          health));
      }
    }
  }
  slice_cache_[hostname][object.meta.name] = std::move(endpoints);
}

}  // namespace wavetank::pilot
