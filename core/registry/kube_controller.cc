#include "core/registry/kube_controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "core/config/mesh_networks.h"
#include "core/registry/endpoint_builder.h"
#include "core/registry/service_conversion.h"

namespace wavetank::pilot {

namespace k = kube::kinds;

KubeController::KubeController(kube::Client& client, Host& host, XdsUpdater& updater, Options options,
                               std::function<std::shared_ptr<const config::MeshNetworks>()> networks)
    : client_(client),
      host_(host),
      updater_(updater),
      options_(std::move(options)),
      shard_{options_.cluster, Provider::kKubernetes},
      trace_name_(host.Intern(options_.cluster.str())),
      networks_(std::move(networks)),
      namespaces_(client, host, k::kNamespace),
      nodes_(client, host, k::kNode),
      services_(client, host, k::kService, InDiscoveryNamespaces()),
      slices_(client, host, k::kEndpointSlice, InDiscoveryNamespaces()),
      pods_(client, host, k::kPod, InDiscoveryNamespaces()),
      self_(std::make_shared<KubeController*>(this)) {
  if (options_.discovery_selectors) discovery_namespaces_.SetSelectors(options_.discovery_selectors(), {});
  Register(namespaces_, [this](const kube::ObjectRef& o, Event e) { OnNamespace(o, e); });
  // Membership changes at once, what follows from it goes through the queue (istiod: initDiscoveryNamespaceHandlers).
  namespaces_.AddHandler({[this](const kube::ObjectRef& ns) {
                            if (!discovery_namespaces_.Added(*ns)) return;
                            // What is listed first when nothing is left out is on its way anyway.
                            if (running_ || discovery_namespaces_.limited()) OnDiscoveryChange({{ns->meta.name}, {}});
                          },
                          [this](const kube::ObjectRef&, const kube::ObjectRef& ns) {
                            OnDiscoveryChange(discovery_namespaces_.Updated(*ns));
                          },
                          [this](const kube::ObjectRef& ns) { discovery_namespaces_.Deleted(*ns); }});
  Register(services_, [this](const kube::ObjectRef& o, Event e) { OnService(o, e); });
  Register(slices_, [this](const kube::ObjectRef& o, Event e) { OnSlice(o, e); });
  Register(nodes_, [this](const kube::ObjectRef& o, Event e) { OnNode(o, e); });
  // A changed label of a pod reaches the proxy in it at once, ahead of the queue (istiod: PodCache.labelFilter).
  pods_.AddHandler({nullptr,
                    [this](const kube::ObjectRef& old, const kube::ObjectRef& now) {
                      const kube::Pod pod = kube::ParsePod(*now);
                      if (!pod.ip.empty() && old->meta.labels != now->meta.labels) {
                        updater_.ProxyUpdate(options_.cluster, pod.ip);
                      }
                    },
                    nullptr});
  Register(pods_, [this](const kube::ObjectRef& o, Event e) { OnPod(o, e); });
  ReloadMeshNetworks();
}

KubeController::~KubeController() { Stop(); }

kube::FilteredInformer::Filter KubeController::InDiscoveryNamespaces() const {
  return [this](const kube::Object& object) { return discovery_namespaces_.Contains(object.meta.ns); };
}

template <class Informer, class Handler>
void KubeController::Register(Informer& informer, Handler handler) {
  const auto enqueue = [this, &informer, handler](const kube::ObjectRef& object, Event event) {
    Push(host_.cause(), object->Key(), [&informer, handler, object, event] {
      if (event == Event::kDelete) return handler(object, event);
      // What is handled is what is known by then; an object that is gone again waits for its own delete event.
      const kube::ObjectRef now = informer.Get({object->meta.ns, object->meta.name});
      if (now != nullptr) handler(now, event);
    });
  };
  informer.AddHandler({[enqueue](const kube::ObjectRef& o) { enqueue(o, Event::kAdd); },
                       [enqueue](const kube::ObjectRef&, const kube::ObjectRef& o) { enqueue(o, Event::kUpdate); },
                       [enqueue](const kube::ObjectRef& o) { enqueue(o, Event::kDelete); }});
}

std::vector<kube::Informer*> KubeController::Informers() {
  return {&namespaces_, &services_.informer(), &nodes_, &pods_.informer(), &slices_.informer()};
}

void KubeController::Start() {
  if (started_ || stopped_) return;
  started_ = true;
  // Slices last: an address without a reference to its pod is looked up among the pods once. istiod starts its
  // informers in no order, but what it lists at the start is such that these addresses have their pods' labels.
  for (kube::Informer* informer : Informers()) {
    informer->WhenSynced([this] { OnInformersSynced(); });
    informer->Start();
  }
  if (options_.sync_timeout) {
    host_.RunAfter(*options_.sync_timeout, [self = self_] {
      if (*self == nullptr || (*self)->synced_) return;
      (*self)->timed_out_ = true;
      if ((*self)->on_synced) (*self)->on_synced();
    });
  }
}

void KubeController::Stop() {
  stopped_ = true;
  *self_ = nullptr;
  for (kube::Informer* informer : Informers()) informer->Stop();
  queue_.clear();
}

void KubeController::OnInformersSynced() {
  for (const kube::Informer* informer : Informers()) {
    if (!informer->HasSynced()) return;
  }
  running_ = true;
  initial_items_ = queue_.size();
  if (initial_items_ == 0) {
    synced_ = true;
    if (on_synced) on_synced();
  }
  MaybeRunQueue();
}

void KubeController::Push(CauseId cause, std::string_view what, Task task) {
  if (stopped_) return;
  queue_.push_back({cause, std::string(what), std::move(task)});
  MaybeRunQueue();
}

void KubeController::MaybeRunQueue() {
  if (!running_ || working_ || queue_.empty() || stopped_) return;
  working_ = true;
  host_.Spend({WorkKind::kRegistryEvent, 1}, [self = self_] {
    if (*self != nullptr) (*self)->RunNext();
  });
}

void KubeController::RunNext() {
  Item item = std::move(queue_.front());
  queue_.pop_front();
  const std::shared_ptr<KubeController*> self = self_;
  {
    ScopedCause cause(host_, item.cause);
    host_.Emit({TraceKind::kRegistryEvent, trace_name_, host_.Intern(item.what), 0, 0, {}});
    item.task();
  }
  if (*self == nullptr) return;
  working_ = false;
  if (initial_items_ > 0 && --initial_items_ == 0) {
    synced_ = true;
    if (on_synced) on_synced();
    if (*self == nullptr) return;
  }
  MaybeRunQueue();
}

// --- Services ---

std::string KubeController::HostnameOf(const kube::ObjectMeta& meta) const {
  return ServiceHostname(meta.name, meta.ns, options_.domain_suffix);
}

std::vector<ServiceRef> KubeController::Services() const {
  std::vector<ServiceRef> out;
  out.reserve(services_map_.size());
  for (const auto& [hostname, service] : services_map_) out.push_back(service);
  return out;
}

ServiceRef KubeController::GetService(std::string_view hostname) const {
  const auto it = services_map_.find(hostname);
  return it == services_map_.end() ? nullptr : it->second;
}

void KubeController::OnService(const kube::ObjectRef& object, Event event) {
  if (event == Event::kDelete) selectors_.erase({object->meta.ns, object->meta.name});
  if (event == Event::kDelete) {
    DeleteService(object);
  } else {
    AddOrUpdateService(object, event);
  }
}

void KubeController::DeleteService(const kube::ObjectRef& object) {
  const std::string hostname = HostnameOf(object->meta);
  services_map_.erase(hostname);
  node_selectors_.erase(hostname);
  external_name_instances_.erase(hostname);
  if (gateways_by_service_.erase(hostname) != 0) {
    if (on_gateways_changed) on_gateways_changed();
    updater_.ConfigUpdate({.full = true, .reasons = Reason(TriggerReason::kNetworks)});
  }
  updater_.SvcUpdate(shard_, hostname, object->meta.ns, Event::kDelete);
  const std::shared_ptr<Service> gone =
      ConvertKubeService(*object, kube::ParseService(*object), options_.domain_suffix, options_.cluster,
                         options_.trust_domain ? options_.trust_domain() : "cluster.local");
  if (on_service) on_service(nullptr, gone, Event::kDelete);
}

void KubeController::AddOrUpdateService(const kube::ObjectRef& object, Event event) {
  const kube::Service typed = kube::ParseService(*object);
  const std::shared_ptr<Service> service =
      ConvertKubeService(*object, typed, options_.domain_suffix, options_.cluster,
                         options_.trust_domain ? options_.trust_domain() : "cluster.local");
  const std::string& hostname = service->hostname;
  bool networks_changed = false;
  const auto addresses = service->attributes.cluster_external_addresses.find(options_.cluster);
  const auto selector = object->meta.annotations.find(kNodeSelectorAnnotation);
  if (addresses != service->attributes.cluster_external_addresses.end() && !addresses->second.empty()) {
    networks_changed = ExtractGateways(*service);
  } else if (typed.type == "NodePort" && selector != object->meta.annotations.end()) {
    node_selectors_[hostname] = ParseNodeSelector(selector->second);
    SetNodeAddresses(*service);
    ExtractGateways(*service);
    networks_changed = true;  // istiod: updateServiceNodePortAddresses says yes whatever came of it
  }

  const auto previous_it = services_map_.find(hostname);
  const ServiceRef previous = previous_it == services_map_.end() ? nullptr : previous_it->second;
  services_map_[hostname] = service;
  if (std::vector<ServiceInstance> instances = ExternalNameInstances(typed, *object, service); !instances.empty()) {
    external_name_instances_[hostname] = std::move(instances);
  }
  if (networks_changed) updater_.ConfigUpdate({.full = true, .reasons = Reason(TriggerReason::kNetworks)});

  // A selector may now select WorkloadEntries (istiod: addOrUpdateService, buildEndpointsForService).
  EndpointList endpoints = CachedEndpoints(hostname);
  const EndpointList more = WorkloadEndpoints(*service);
  endpoints.insert(endpoints.end(), more.begin(), more.end());
  if (!endpoints.empty()) updater_.EdsCacheUpdate(shard_, hostname, service->attributes.ns, std::move(endpoints));
  updater_.SvcUpdate(shard_, hostname, service->attributes.ns, event);
  if (on_service) on_service(previous, service, event);
}

std::vector<kube::ObjectRef> KubeController::PodServices(const std::string& ns, const Labels& labels) const {
  std::vector<kube::ObjectRef> out;
  for (const kube::ObjectRef& object : services_.List(ns)) {
    // Asked for every proxy at every full push: a Service is parsed once per version.
    auto& [parsed, selector] = selectors_[{object->meta.ns, object->meta.name}];
    if (parsed != object) {
      parsed = object;
      selector = kube::ParseService(*object).selector;
    }
    if (SelectorMatches(selector, labels)) out.push_back(object);
  }
  return out;
}

// --- Nodes and namespaces ---

void KubeController::OnNode(const kube::ObjectRef& object, Event event) {
  bool changed = false;
  if (event == Event::kDelete) {
    node_info_.erase(object->meta.name);
    changed = true;
  } else {
    const NodeInfo info{kube::ParseNode(*object).external_ip, object->meta.labels};
    if (info.address.empty()) return;
    const auto it = node_info_.find(object->meta.name);
    if (it == node_info_.end() || !(it->second == info)) {
      node_info_[object->meta.name] = info;
      changed = true;
    }
  }
  if (!changed || node_selectors_.empty()) return;
  bool any = false;
  for (const auto& [hostname, selector] : node_selectors_) {
    const auto it = services_map_.find(hostname);
    if (it == services_map_.end()) continue;
    auto updated = std::make_shared<Service>(*it->second);
    SetNodeAddresses(*updated);
    it->second = updated;
    ExtractGateways(*updated);
    any = true;
  }
  if (any) updater_.ConfigUpdate({.full = true, .reasons = Reason(TriggerReason::kService)});
}

void KubeController::SetNodeAddresses(Service& service) const {
  const Labels& selector = node_selectors_.at(service.hostname);
  std::vector<std::string> addresses;
  for (const auto& [name, node] : node_info_) {
    const Labels& labels = node.labels;
    const bool selected = std::all_of(selector.begin(), selector.end(), [&labels](const auto& want) {
      const auto it = labels.find(want.first);
      return it != labels.end() && it->second == want.second;
    });
    if (selected) addresses.push_back(node.address);
  }
  if (addresses.empty()) {
    service.attributes.cluster_external_addresses.erase(options_.cluster);
  } else {
    service.attributes.cluster_external_addresses[options_.cluster] = std::move(addresses);
  }
}

void KubeController::OnNamespace(const kube::ObjectRef& object, Event event) {
  if (object->meta.name != options_.system_namespace || event == Event::kDelete) return;
  const auto label = object->meta.labels.find(kNetworkLabel);
  const NetworkId network(label == object->meta.labels.end() ? std::string() : label->second);
  if (network == network_) return;
  network_ = network;
  OnNetworkChange();
}

void KubeController::OnMeshConfigChanged() {
  if (!options_.discovery_selectors) return;
  OnDiscoveryChange(discovery_namespaces_.SetSelectors(options_.discovery_selectors(), namespaces_.List()));
}

void KubeController::OnDiscoveryChange(const DiscoveryNamespaces::Change& change) {
  for (const std::string& ns : change.selected) {
    Push(host_.cause(), "Namespace/" + ns, [this, ns] { OnNamespaceSelected(ns); });
  }
  for (const std::string& ns : change.deselected) {
    Push(host_.cause(), "Namespace/" + ns, [this, ns] { OnNamespaceDeselected(ns); });
  }
}

// istiod: pilot/pkg/serviceregistry/kube/controller/discoverycontrollers.go, handleSelectedNamespace; what lies in the
// namespace is new.
void KubeController::OnNamespaceSelected(const std::string& ns) {
  for (const kube::ObjectRef& service : services_.List(ns)) OnService(service, Event::kAdd);
  for (const kube::ObjectRef& pod : pods_.List(ns)) OnPod(pod, Event::kAdd);
  for (const kube::ObjectRef& slice : slices_.ListUnfiltered(ns)) OnSlice(slice, Event::kAdd);
}

// The same, handleDeselectedNamespace: it has gone.
void KubeController::OnNamespaceDeselected(const std::string& ns) {
  for (const kube::ObjectRef& service : services_.ListUnfiltered(ns)) OnService(service, Event::kDelete);
  for (const kube::ObjectRef& pod : pods_.ListUnfiltered(ns)) OnPod(pod, Event::kDelete);
  for (const kube::ObjectRef& slice : slices_.ListUnfiltered(ns)) OnSlice(slice, Event::kDelete);
}

// --- Networks ---

NetworkId KubeController::NetworkOf(std::string_view ip, const Labels& labels) const {
  if (const auto label = labels.find(kNetworkLabel); label != labels.end() && !label->second.empty()) {
    return NetworkId(label->second);
  }
  if (!network_.empty()) return network_;
  return NetworkFromMeshNetworks(ip);
}

NetworkId KubeController::NetworkFromMeshNetworks(std::string_view ip) const {
  if (!network_from_mesh_config_.empty()) return network_from_mesh_config_;
  if (cidr_networks_.empty()) return {};
  const absl::StatusOr<IpAddress> address = IpAddress::Parse(ip);
  if (!address.ok()) return {};
  // Of nested ranges istiod takes the widest: its trie lists them from the root.
  const NetworkId* network = cidr_networks_.FindWidest(*address);
  return network == nullptr ? NetworkId() : *network;
}

void KubeController::ReloadMeshNetworks() {
  network_from_mesh_config_ = {};
  registry_service_gateways_.clear();
  const std::shared_ptr<const config::MeshNetworks> networks = networks_ ? networks_() : nullptr;
  // istiod keeps the ranges of the configuration before when the new one is empty (reloadMeshNetworks returns early).
  if (networks == nullptr || networks->networks.empty()) return;
  cidr_networks_.clear();
  for (const auto& [name, network] : networks->networks) {
    bool from_registry = false;
    for (const auto& endpoint : network.endpoints) {
      if (!endpoint.from_cidr.empty()) {
        if (const absl::StatusOr<IpPrefix> cidr = IpPrefix::Parse(endpoint.from_cidr); cidr.ok()) {
          cidr_networks_.Insert(*cidr, NetworkId(name));
        }
      }
      if (endpoint.from_registry == options_.cluster.str() && !endpoint.from_registry.empty()) from_registry = true;
    }
    if (!from_registry) continue;
    if (network_from_mesh_config_.empty()) network_from_mesh_config_ = NetworkId(name);
    for (const auto& gateway : network.gateways) {
      if (gateway.registry_service_name.empty()) continue;
      registry_service_gateways_[gateway.registry_service_name].push_back(
          {NetworkId(name), options_.cluster, "", gateway.port});
    }
  }
}

void KubeController::OnMeshNetworksChanged() {
  ReloadMeshNetworks();
  OnNetworkChange();
}

void KubeController::OnNetworkChange() {
  for (const kube::ObjectRef& pod : pods_.List()) OnPod(pod, Event::kAdd);
  for (const kube::ObjectRef& slice : slices_.List()) OnSlice(slice, Event::kAdd);
  // Stops at the first Service that changed, as istiod does (latent bug L1: with two of them the other stays as it
  // was).
  for (const auto& [hostname, service] : services_map_) {
    if (!UpdateGateways(*service)) continue;
    if (on_gateways_changed) on_gateways_changed();
    updater_.ConfigUpdate({.full = true, .reasons = Reason(TriggerReason::kNetworks)});
    break;
  }
}

std::vector<NetworkGateway> KubeController::Gateways() const {
  std::set<NetworkGateway> all;
  for (const auto& [hostname, gateways] : gateways_by_service_) all.insert(gateways.begin(), gateways.end());
  return {all.begin(), all.end()};
}

bool KubeController::ExtractGateways(const Service& service) {
  const bool changed = UpdateGateways(service);
  if (changed && on_gateways_changed) on_gateways_changed();
  return changed;
}

bool KubeController::UpdateGateways(const Service& service) {
  const auto previous = gateways_by_service_.find(service.hostname);
  // Which networks this Service is a gateway of: by label, else by name in meshNetworks (istiod: getGatewayDetails).
  std::vector<NetworkGateway> details;
  const Labels& labels = service.attributes.labels;
  if (const auto network = labels.find(kNetworkLabel); network != labels.end() && !network->second.empty()) {
    uint32_t port = kDefaultNetworkGatewayPort;
    if (const auto label = labels.find(kGatewayPortLabel); label != labels.end()) {
      if (const std::optional<int> number = ParseWholeNumber(label->second)) port = static_cast<uint32_t>(*number);
    }
    details.push_back({NetworkId(network->second), {}, "", port});
  } else if (const auto by_name = registry_service_gateways_.find(service.hostname);
             by_name != registry_service_gateways_.end()) {
    details = by_name->second;
  }
  if (previous == gateways_by_service_.end() && details.empty()) return false;

  std::set<NetworkGateway> gateways;
  const auto addresses = service.attributes.cluster_external_addresses.find(options_.cluster);
  const auto ports = service.attributes.cluster_external_ports.find(options_.cluster);
  if (addresses != service.attributes.cluster_external_addresses.end()) {
    for (const std::string& address : addresses->second) {
      for (NetworkGateway gateway : details) {
        if (ports != service.attributes.cluster_external_ports.end()) {
          const auto node_port = ports->second.find(gateway.port);
          if (node_port != ports->second.end()) gateway.port = node_port->second;
        }
        gateway.cluster = options_.cluster;
        gateway.addr = address;
        gateways.insert(gateway);
      }
    }
  }
  const bool changed = previous == gateways_by_service_.end() ? !gateways.empty() : previous->second != gateways;
  if (gateways.empty()) {
    gateways_by_service_.erase(service.hostname);
  } else {
    gateways_by_service_[service.hostname] = std::move(gateways);
  }
  return changed;
}

// --- Pods ---

void KubeController::OnPod(const kube::ObjectRef& object, Event event) {
  const kube::Pod pod = kube::ParsePod(*object);
  if (pod.ip.empty()) return;
  const kube::NamespacedName name{object->meta.ns, object->meta.name};
  const bool serves = pod.phase != "Failed" && pod.phase != "Succeeded" && !object->meta.deleting && pod.ready;
  if (event == Event::kAdd) {
    if (!serves) return;
    AddPodIp(pod.ip, name);
  } else if (event == Event::kUpdate && serves) {
    AddPodIp(pod.ip, name);
  } else {
    if (!DeletePodIp(pod.ip, name)) return;
    event = Event::kDelete;
  }
  NotifyWorkload(*object, pod, event);
}

void KubeController::AddPodIp(const std::string& ip, const kube::NamespacedName& pod) {
  const auto present = pods_by_ip_.find(ip);
  if (present != pods_by_ip_.end() && present->second == pod) return;
  if (const auto other = ip_by_pod_.find(pod); other != ip_by_pod_.end()) pods_by_ip_.erase(other->second);
  pods_by_ip_[ip] = pod;
  ip_by_pod_[pod] = ip;
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

bool KubeController::DeletePodIp(const std::string& ip, const kube::NamespacedName& pod) {
  const auto it = pods_by_ip_.find(ip);
  if (it == pods_by_ip_.end() || it->second != pod) return false;
  pods_by_ip_.erase(it);
  ip_by_pod_.erase(pod);
  return true;
}

kube::ObjectRef KubeController::PodByIp(const std::string& ip) const {
  const auto it = pods_by_ip_.find(ip);
  return it == pods_by_ip_.end() ? nullptr : pods_.Get(it->second);
}

kube::ObjectRef KubeController::PodByProxy(const Proxy& proxy) const {
  // istiod: podKeyByProxy; an id of two parts whose second is the namespace.
  const size_t dot = proxy.id.find('.');
  if (dot != std::string::npos && proxy.id.find('.', dot + 1) == std::string::npos &&
      proxy.id.substr(dot + 1) == proxy.metadata.ns) {
    if (kube::ObjectRef pod = pods_.Get({proxy.metadata.ns, proxy.id.substr(0, dot)})) return pod;
  }
  return proxy.ip_addresses.empty() ? nullptr : PodByIp(proxy.ip_addresses[0]);
}

std::string KubeController::PodLocality(const kube::Object& object, const kube::Pod& pod) const {
  if (const auto label = object.meta.labels.find(kLocalityLabel);
      label != object.meta.labels.end() && !label->second.empty()) {
    return LocalityFromLabel(label->second);
  }
  const kube::ObjectRef node = nodes_.Get({"", pod.node_name});
  if (node == nullptr) return {};
  const auto value = [&](std::string_view name, std::string_view fallback) {
    auto it = node->meta.labels.find(name);
    if (it == node->meta.labels.end() || it->second.empty()) it = node->meta.labels.find(fallback);
    return it == node->meta.labels.end() ? std::string() : it->second;
  };
  const std::string region = value(kRegionLabel, "failure-domain.beta.kubernetes.io/region");
  const std::string zone = value(kZoneLabel, "failure-domain.beta.kubernetes.io/zone");
  const std::string subzone = value(kSubzoneLabel, kSubzoneLabel);
  if (region.empty() && zone.empty() && subzone.empty()) return {};
  return region + "/" + zone + "/" + subzone;
}

EndpointBuilder KubeController::BuilderFor(const kube::Object* object) const {
  const std::string trust_domain = options_.trust_domain ? options_.trust_domain() : "cluster.local";
  if (object == nullptr) return EndpointBuilder(*this, trust_domain);
  const kube::Pod pod = kube::ParsePod(*object);
  return EndpointBuilder(*this, trust_domain, *object, pod, PodLocality(*object, pod));
}

void KubeController::NotifyWorkload(const kube::Object& object, const kube::Pod& pod, Event event) {
  if (workload_handlers_.empty()) return;
  WorkloadInstance instance;
  instance.name = object.meta.name;
  instance.ns = object.meta.ns;
  instance.kind = WorkloadInstance::Kind::kPod;
  instance.endpoint = BuilderFor(&object).Build(pod.ip, 0, "", HealthStatus::kHealthy);
  for (const kube::ContainerPort& port : pod.ports) {
    if (!port.name.empty() && port.protocol == "TCP") {
      instance.port_map.emplace(port.name, static_cast<uint32_t>(port.container_port));
    }
  }
  for (const WorkloadHandler& handler : workload_handlers_) handler(instance, event);
}

std::optional<Labels> KubeController::GetProxyWorkloadLabels(const Proxy& proxy) const {
  const kube::ObjectRef object = PodByProxy(proxy);
  if (object == nullptr) return std::nullopt;
  const kube::Pod pod = kube::ParsePod(*object);
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
  const std::string hostname = ServiceHostname(service.name, service.ns, options_.domain_suffix);
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
    if (const auto cached = slice_cache_.find(hostname); cached != slice_cache_.end()) {
      cached->second.erase(object->meta.name);
      if (cached->second.empty()) slice_cache_.erase(cached);
    }
  } else {
    UpdateSliceCache(hostname, *object);
  }
  EndpointList endpoints = CachedEndpoints(hostname);
  const ServiceRef known = GetService(hostname);
  if (known != nullptr) {
    const EndpointList more = WorkloadEndpoints(*known);
    endpoints.insert(endpoints.end(), more.begin(), more.end());
  }
  updater_.EdsUpdate(shard_, hostname, service.ns, std::move(endpoints));
  // Clients of a headless Service have its pods in their listeners and name tables (istiod: processEndpointEvent).
  const kube::ObjectRef kube_service = services_.Get(service);
  if (kube_service != nullptr && known != nullptr && kube::ParseService(*kube_service).cluster_ip == "None") {
    updater_.ConfigUpdate({.full = true,
                           .configs_updated = {{ConfigKind::kServiceEntry, hostname, service.ns}},
                           .reasons = Reason(TriggerReason::kHeadlessEndpoint)});
  }
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

void KubeController::UpdateSliceCache(const std::string& hostname, const kube::Object& object) {
  const kube::EndpointSlice slice = kube::ParseEndpointSlice(object);
  if (slice.address_type == "FQDN") return;
  const kube::NamespacedName slice_name{object.meta.ns, object.meta.name};
  EndpointList endpoints;
  // Pods on the host network share its address: of equal addresses and port names the first one counts.
  // istiod: pilot/pkg/serviceregistry/kube/controller/endpointslice.go, endpointSliceCache.Get.
  absl::flat_hash_set<std::pair<std::string_view, std::string_view>> seen;
  for (const auto& endpoint : slice.endpoints) {
    // Not ready ones are not tracked (PILOT_SEND_UNHEALTHY_ENDPOINTS is off by default).
    if (endpoint.ready && !*endpoint.ready) continue;
    for (const std::string& address : endpoint.addresses) {
      const bool expected = endpoint.has_target && endpoint.target_kind == "Pod";
      kube::ObjectRef pod;
      if (expected) {
        pod = pods_.Get({endpoint.target_namespace, endpoint.target_name});
        if (pod == nullptr) {
          // The slice came before its pod; it is handled again when the pod is there.
          need_resync_[address].insert(slice_name);
          continue;
        }
      } else {
        pod = PodByIp(address);
        if (pod != nullptr && pod->meta.ns != object.meta.ns) pod = nullptr;
      }
      EndpointBuilder builder = BuilderFor(pod.get());
      for (const auto& port : slice.ports) {
        const std::string_view port_name = port.name ? std::string_view(*port.name) : std::string_view();
        if (!seen.emplace(address, port_name).second) continue;
        endpoints.push_back(builder.Build(address, static_cast<uint32_t>(port.port.value_or(0)), std::string(port_name),
                                          HealthStatus::kHealthy));
      }
    }
  }
  slice_cache_[hostname][object.meta.name] = std::move(endpoints);
}

// --- Instances ---

std::vector<ServiceInstance> KubeController::InstancesByPort(const Service& service, int port_number) const {
  std::vector<ServiceInstance> out;
  const Port* port = service.FindPort(port_number);
  if (port == nullptr) return out;
  const auto own = std::make_shared<Service>(service);
  for (const IstioEndpoint& endpoint : CachedEndpoints(service.hostname)) {
    if (endpoint.p().service_port_name == port->name) out.push_back({own, *port, endpoint});
  }
  for (const ServiceInstance& instance : WorkloadInstancesFor(service, *port)) out.push_back(instance);
  if (!out.empty()) return out;
  if (const auto external = external_name_instances_.find(service.hostname);
      external != external_name_instances_.end()) {
    for (const ServiceInstance& instance : external->second) {
      if (instance.service->attributes.ns == service.attributes.ns && instance.service_port.port == port_number) {
        out.push_back(instance);
      }
    }
  }
  return out;
}

std::vector<ServiceInstance> KubeController::GetProxyServiceInstances(const Proxy& proxy) const {
  if (proxy.ip_addresses.empty()) return {};
  if (const WorkloadInstance* workload = WorkloadForProxy(workload_instances_, proxy)) {
    return InstancesFromWorkload(*workload);
  }
  const bool ours = proxy.metadata.cluster_id.empty() || proxy.metadata.cluster_id == options_.cluster;
  if (const kube::ObjectRef pod = PodByProxy(proxy)) {
    if (!ours) return {};
    const std::vector<kube::ObjectRef> services = PodServices(pod->meta.ns, pod->meta.labels);
    // A headless Service without selector may name the pod in its slices only.
    if (services.empty()) return InstancesFromSlices(proxy);
    std::vector<ServiceInstance> out;
    for (const kube::ObjectRef& service : services) {
      for (ServiceInstance& instance : InstancesByPod(*pod, *service, proxy)) out.push_back(std::move(instance));
    }
    return out;
  }
  return ours ? InstancesFromMetadata(proxy) : std::vector<ServiceInstance>();
}

std::vector<ServiceInstance> KubeController::InstancesByPod(const kube::Object& pod_object, const kube::Object& object,
                                                            const Proxy& proxy) const {
  std::vector<ServiceInstance> out;
  const ServiceRef service = GetService(HostnameOf(object.meta));
  if (service == nullptr) return out;
  const kube::Pod pod = kube::ParsePod(pod_object);
  // Several ports may lead to one target: one inbound listener each, the first port wins.
  std::vector<std::pair<std::pair<int, Protocol>, const Port*>> targets;
  for (const kube::ServicePort& port : kube::ParseService(object).ports) {
    const Port* service_port = service->FindPort(std::string_view(port.name));
    if (service_port == nullptr) continue;
    int number = port.target_port;
    if (!port.target_port_name.empty()) {
      const auto named = std::find_if(pod.ports.begin(), pod.ports.end(), [&](const kube::ContainerPort& c) {
        return c.name == port.target_port_name && c.protocol == port.protocol;
      });
      if (named == pod.ports.end()) continue;
      number = named->container_port;
    }
    const std::pair<int, Protocol> target{number, service_port->protocol};
    if (std::none_of(targets.begin(), targets.end(), [&](const auto& t) { return t.first == target; })) {
      targets.emplace_back(target, service_port);
    }
  }
  EndpointBuilder builder = BuilderFor(&pod_object);
  for (const auto& [target, port] : targets) {
    for (const std::string& ip : proxy.ip_addresses) {
      out.push_back(
          {service, *port, builder.Build(ip, static_cast<uint32_t>(target.first), port->name, HealthStatus::kHealthy)});
    }
  }
  return out;
}

std::vector<ServiceInstance> KubeController::InstancesFromSlices(const Proxy& proxy) const {
  std::vector<ServiceInstance> out;
  const kube::ObjectRef pod = PodByProxy(proxy);
  for (const kube::ObjectRef& object : slices_.List(proxy.metadata.ns)) {
    const auto label = object->meta.labels.find(kServiceNameLabel);
    if (object->meta.labels.count(kMcsServiceNameLabel) != 0 || label == object->meta.labels.end()) continue;
    const ServiceRef service = GetService(ServiceHostname(label->second, object->meta.ns, options_.domain_suffix));
    const kube::EndpointSlice slice = kube::ParseEndpointSlice(*object);
    if (service == nullptr || slice.address_type == "FQDN") continue;
    EndpointBuilder builder = BuilderFor(pod.get());
    for (const auto& port : slice.ports) {
      if (!port.name || !port.port) continue;
      const Port* service_port = service->FindPort(std::string_view(*port.name));
      if (service_port == nullptr) continue;
      for (const std::string& ip : proxy.ip_addresses) {
        for (const auto& endpoint : slice.endpoints) {
          for (const std::string& address : endpoint.addresses) {
            if (address != ip) continue;
            out.push_back(
                {service, *service_port,
                 builder.Build(ip, static_cast<uint32_t>(*port.port), service_port->name, HealthStatus::kHealthy)});
          }
        }
      }
    }
  }
  return out;
}

std::vector<ServiceInstance> KubeController::InstancesFromMetadata(const Proxy& proxy) const {
  std::vector<ServiceInstance> out;
  if (proxy.labels.empty()) return out;
  EndpointBuilder builder(*this, options_.trust_domain ? options_.trust_domain() : "cluster.local", proxy);
  for (const kube::ObjectRef& object : PodServices(proxy.config_namespace, proxy.labels)) {
    const ServiceRef service = GetService(HostnameOf(object->meta));
    if (service == nullptr) return {};
    std::vector<std::pair<std::pair<int, Protocol>, const Port*>> targets;
    for (const kube::ServicePort& port : kube::ParseService(*object).ports) {
      const Port* service_port = service->FindPort(std::string_view(port.name));
      if (service_port == nullptr) return {};
      // Without the pod's ports only numbers can be resolved.
      const std::pair<int, Protocol> target{port.target_port, service_port->protocol};
      if (std::none_of(targets.begin(), targets.end(), [&](const auto& t) { return t.first == target; })) {
        targets.emplace_back(target, service_port);
      }
    }
    for (const auto& [target, port] : targets) {
      for (const std::string& ip : proxy.ip_addresses) {
        out.push_back({service, *port,
                       builder.Build(ip, static_cast<uint32_t>(target.first), port->name, HealthStatus::kHealthy)});
      }
    }
  }
  return out;
}

// --- WorkloadEntries that Services select ---

std::vector<ServiceInstance> KubeController::WorkloadInstancesFor(const Service& service, const Port& port) const {
  std::vector<ServiceInstance> out;
  if (workload_instances_.empty() || GetService(service.hostname) == nullptr ||
      service.attributes.registry != Provider::kKubernetes || service.mesh_external ||
      service.resolution != Resolution::kClientSideLb || service.attributes.label_selectors.empty()) {
    return out;
  }
  const kube::ObjectRef object = services_.Get({service.attributes.ns, service.attributes.name});
  if (object == nullptr) return out;
  const TargetPort target = FindTargetPort(port, kube::ParseService(*object));
  const auto own = std::make_shared<Service>(service);
  for (const auto& [name, instance] : workload_instances_) {
    if (instance.ns != service.attributes.ns ||
        !SelectorMatches(service.attributes.label_selectors, instance.endpoint.p().labels)) {
      continue;
    }
    if (std::optional<IstioEndpoint> endpoint = EndpointOfWorkload(instance, port, target)) {
      out.push_back({own, port, *std::move(endpoint)});
    }
  }
  return out;
}

EndpointList KubeController::WorkloadEndpoints(const Service& service) const {
  EndpointList out;
  if (workload_instances_.empty() || service.resolution != Resolution::kClientSideLb) return out;
  for (const Port& port : service.ports) {
    for (ServiceInstance& instance : WorkloadInstancesFor(service, port)) out.push_back(std::move(instance.endpoint));
  }
  return out;
}

std::vector<ServiceInstance> KubeController::InstancesFromWorkload(const WorkloadInstance& workload) const {
  std::vector<ServiceInstance> out;
  for (const kube::ObjectRef& object : PodServices(workload.ns, workload.endpoint.p().labels)) {
    const ServiceRef service = GetService(HostnameOf(object->meta));
    if (service == nullptr || service->resolution != Resolution::kClientSideLb) continue;
    const kube::Service typed = kube::ParseService(*object);
    for (const Port& port : service->ports) {
      if (port.protocol == Protocol::kUdp) continue;
      if (std::optional<IstioEndpoint> endpoint = EndpointOfWorkload(workload, port, FindTargetPort(port, typed))) {
        out.push_back({service, port, *std::move(endpoint)});
      }
    }
  }
  return out;
}

void KubeController::OnWorkloadInstance(const WorkloadInstance& instance, Event event) {
  const Labels& labels = instance.endpoint.p().labels;
  if (instance.ns.empty() || labels.empty()) return;
  const kube::NamespacedName name{instance.ns, instance.name};
  if (event == Event::kDelete) {
    workload_instances_.erase(name);
  } else {
    workload_instances_[name] = instance;
  }
  for (const kube::ObjectRef& object : PodServices(instance.ns, labels)) {
    const ServiceRef service = GetService(HostnameOf(object->meta));
    if (service == nullptr || service->resolution != Resolution::kClientSideLb) continue;
    EndpointList endpoints;
    for (const Port& port : service->ports) {
      if (port.protocol == Protocol::kUdp) continue;
      for (ServiceInstance& i : InstancesByPort(*service, port.port)) endpoints.push_back(std::move(i.endpoint));
    }
    updater_.EdsUpdate(shard_, service->hostname, service->attributes.ns, std::move(endpoints));
  }
}

}  // namespace wavetank::pilot
