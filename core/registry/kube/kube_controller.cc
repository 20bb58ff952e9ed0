#include "core/registry/kube/kube_controller.h"

#include <algorithm>
#include <utility>

#include "core/base/assert.h"
#include "core/base/buggify/buggify.h"
#include "core/base/json_access.h"
#include "core/profile/changes.h"
#include "core/profile/releases.h"
#include "core/registry/kube/multi_cluster_services.h"
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
      endpoints_(client),
      namespaces_(client, host, k::kNamespace),
      nodes_(client, host, k::kNode),
      services_(client, host, k::kService, InDiscoveryNamespaces()),
      slices_(options_.endpoints_only ? static_cast<kube::Client&>(endpoints_) : client, host, k::kEndpointSlice,
              InDiscoveryNamespaces()),
      pods_(client, host, k::kPod, InDiscoveryNamespaces()),
      self_(std::make_shared<KubeController*>(this)) {
  if (options_.discovery_selectors) discovery_namespaces_.SetSelectors(options_.discovery_selectors(), {});
  Register(namespaces_, [this](const kube::ObjectRef& o, Event e) { OnNamespace(o, e); });
  if (options_.profile.Has(Change::kTrafficDistributionOfNamespaces)) {
    namespaces_.AddHandler(
        {nullptr,
         [this](const kube::ObjectRef& old, const kube::ObjectRef& now) { OnNamespaceAnnotations(*old, *now); },
         nullptr});
  }
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
                      const kube::Pod& pod = kube::ParsePod(*now);
                      if (!pod.ip.empty() && old->meta.labels != now->meta.labels) {
                        updater_.ProxyUpdate(options_.cluster, pod.ip);
                        if (!options_.profile.Has(Change::kPodLabelsReachEndpoints)) return;
                        const kube::NamespacedName name{now->meta.ns, now->meta.name};
                        Push(host_.cause(), now->Key(), [this, name] { RemakeEndpointsOf(name); });
                      }
                    },
                    nullptr});
  Register(pods_, [this](const kube::ObjectRef& o, Event e) { OnPod(o, e); });
  WatchMultiClusterServices();
  ReloadMeshNetworks();
}

KubeController::~KubeController() { Stop(); }

kube::FilteredInformer::Filter KubeController::InDiscoveryNamespaces() const {
  return [this](const kube::Object& object) { return discovery_namespaces_.Contains(object.meta.ns); };
}

template <class Informer, class Handler>
void KubeController::Register(Informer& informer, Handler handler) {
  const auto enqueue = [this, &informer, handler](const kube::ObjectRef& object, Event event) {
    if (event == Event::kDelete)
      return Push(host_.cause(), object->Key(), [handler, object] { handler(object, Event::kDelete); });
    // What is handled is what is known by then; an object that is gone again waits for its own delete event. So a queue
    // that is behind keeps no version that was written over meanwhile.
    kube::NamespacedName name{object->meta.ns, object->meta.name};
    Push(host_.cause(), object->Key(), [&informer, handler, name = std::move(name), event] {
      if (const kube::ObjectRef now = informer.Get(name); now != nullptr) handler(now, event);
    });
  };
  informer.AddHandler({[enqueue](const kube::ObjectRef& o) { enqueue(o, Event::kAdd); },
                       [enqueue](const kube::ObjectRef&, const kube::ObjectRef& o) { enqueue(o, Event::kUpdate); },
                       [enqueue](const kube::ObjectRef& o) { enqueue(o, Event::kDelete); }});
}

void KubeController::WatchMultiClusterServices() {
  if (!options_.mcs.discovery) return;
  mcs_ =
      std::make_unique<MultiClusterServices>(client_, host_, options_.mcs, options_.profile, InDiscoveryNamespaces());
  Register(mcs_->exports(), [this](const kube::ObjectRef& o, Event e) { OnServiceExport(o, e); });
  Register(mcs_->imports(), [this](const kube::ObjectRef& o, Event e) { OnServiceImport(o, e); });
}

std::vector<kube::Informer*> KubeController::Informers() {
  return {&namespaces_, &services_.informer(), &nodes_, &pods_.informer(), &slices_.informer()};
}

void KubeController::Start() {
  if (started_ || stopped_) return;
  started_ = true;
  // Slices last: an address without a reference to its pod is looked up among the pods once. istiod starts its
  // informers in no order, but what it lists at the start is such that these addresses have their pods' labels.
  if (mcs_ != nullptr) mcs_->Start([this] { OnInformersSynced(); });
  for (kube::Informer* informer : Informers()) {
    informer->WhenSynced([this] { OnInformersSynced(); });
    informer->Start();
  }
  StartTimeout();
}

void KubeController::StartTimeout() {
  if (!options_.sync_timeout || std::exchange(timeout_started_, true)) return;
  host_.RunAfter(*options_.sync_timeout, [self = self_] {
    if (*self == nullptr || (*self)->synced_) return;
    (*self)->timed_out_ = true;
    if ((*self)->on_synced) (*self)->on_synced();
  });
}

void KubeController::Stop() {
  stopped_ = true;
  *self_ = nullptr;
  for (kube::Informer* informer : Informers()) informer->Stop();
  if (mcs_ != nullptr) mcs_->Stop();
  queue_.clear();
}

void KubeController::OnInformersSynced() {
  WAVETANK_ASSERT(!stopped_, options_.cluster.str());  // a stopped informer says nothing
  for (const kube::Informer* informer : Informers()) {
    if (!informer->HasSynced()) return;
  }
  // Definitions may come later than all else has synced.
  if (running_ || (mcs_ != nullptr && !mcs_->HasSynced())) return;
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
  const auto work = [self = self_, &host = host_] {
    host.Spend({WorkKind::kRegistryEvent, 1}, [self] {
      if (*self != nullptr) (*self)->RunNext();
    });
  };
  const Duration late = BuggifyDelay(BuggifyPoint::kRegistryLate);
  if (late == Duration::zero()) return work();
  host_.RunAfter(late, work);
}

void KubeController::RunNext() {
  WAVETANK_ASSERT(working_, options_.cluster.str());
  WAVETANK_ASSERT(!queue_.empty(), options_.cluster.str());  // one worker takes from it, and it has not come yet
  Item item = std::move(queue_.front());
  queue_.pop_front();
  const std::shared_ptr<KubeController*> self = self_;
  {
    ScopedCause cause(host_, item.cause);
    host_.Emit({TraceKind::kRegistryEvent, trace_name_, host_.Intern(item.what), 0, 0, {}});
    item.task();
  }
  if (*self == nullptr) return;
  WAVETANK_ASSERT(working_, options_.cluster.str());  // a task that ran another one would break their order
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
  if (event == Event::kDelete) {
    DeleteService(object);
  } else {
    AddOrUpdateService(object, event);
  }
}

std::shared_ptr<Service> KubeController::Convert(const kube::Object& object) const {
  static const Labels* const none = new Labels();
  const kube::ObjectRef ns = namespaces_.Get({"", object.meta.ns});
  return ConvertKubeService(object, kube::ParseService(object), options_.domain_suffix, options_.cluster,
                            options_.trust_domain ? options_.trust_domain() : "cluster.local", options_.profile,
                            ns == nullptr ? *none : ns->meta.annotations);
}

// istiod: reprocessServicesInNamespace.
void KubeController::OnNamespaceAnnotations(const kube::Object& old, const kube::Object& now) {
  const auto value = [](const kube::Object& ns) {
    const auto it = ns.meta.annotations.find(kTrafficDistributionAnnotation);
    return it == ns.meta.annotations.end() ? std::string() : it->second;
  };
  if (value(old) == value(now)) return;
  Push(host_.cause(), "Namespace/" + now.meta.name, [this, ns = now.meta.name] {
    for (const kube::ObjectRef& service : services_.List(ns)) OnService(service, Event::kUpdate);
    if (on_namespace_annotations) on_namespace_annotations(ns);
  });
}

Labels KubeController::NamespaceAnnotations(const std::string& ns) const {
  const kube::ObjectRef object = namespaces_.Get({"", ns});
  return object == nullptr ? Labels() : object->meta.annotations;
}

void KubeController::DeleteService(const kube::ObjectRef& object) { ForgetService(Convert(*object)); }

void KubeController::ForgetService(const ServiceRef& service) {
  const std::string hostname = service->hostname;
  services_map_.erase(hostname);
  node_selectors_.erase(hostname);
  external_name_instances_.erase(hostname);
  if (gateways_by_service_.erase(hostname) != 0) {
    if (on_gateways_changed) on_gateways_changed();
    updater_.ConfigUpdate({.full = true, .reasons = Reason(TriggerReason::kNetworks)});
  }
  updater_.SvcUpdate(shard_, hostname, service->attributes.ns, Event::kDelete);
  TellService(nullptr, service, Event::kDelete);
}

// istiod: serviceUpdateNeedsPush, deleteService. What nobody sees changes nobody's configuration; the push context
// keeps it until something else makes it anew.
void KubeController::TellService(const ServiceRef& old, const ServiceRef& now, Event event) const {
  const bool hidden = now->attributes.export_to.is_none && (old == nullptr || old->attributes.export_to.is_none);
  if (hidden && options_.profile.Has(Change::kHiddenServicesKeepShards)) return;
  if (on_service) on_service(old, now, event);
}

void KubeController::AddOrUpdateService(const kube::ObjectRef& object, Event event) {
  const kube::Service& typed = kube::ParseService(*object);
  const std::shared_ptr<Service> service = Convert(*object);
  const std::string& hostname = service->hostname;
  bool networks_changed = false;
  const auto addresses = service->attributes.cluster_external_addresses.find(options_.cluster);
  const auto selector = object->meta.annotations.find(kNodeSelectorAnnotation);
  if (addresses != service->attributes.cluster_external_addresses.end() && !addresses->second.empty()) {
    networks_changed = ExtractGateways(*service);
  } else if (typed.type == "NodePort" && selector != object->meta.annotations.end()) {
    node_selectors_[hostname] = ParseNodeSelector(selector->second);
    if (options_.profile.Has(Change::kNodePortAddressesForgotten)) {
      Service with_addresses = *service;
      SetNodeAddresses(with_addresses);
      ExtractGateways(with_addresses);
    } else {
      SetNodeAddresses(*service);
      ExtractGateways(*service);
    }
    networks_changed = true;  // istiod: updateServiceNodePortAddresses says yes whatever came of it
  }

  if (std::vector<ServiceInstance> instances = ExternalNameInstances(typed, *object, service); !instances.empty()) {
    external_name_instances_[hostname] = std::move(instances);
  }
  StoreService(service, event, networks_changed);
}

void KubeController::StoreService(const ServiceRef& service, Event event, bool networks_changed,
                                  bool remake_endpoints) {
  const std::string& hostname = service->hostname;
  const ServiceRef previous = std::exchange(services_map_[hostname], service);
  if (networks_changed) updater_.ConfigUpdate({.full = true, .reasons = Reason(TriggerReason::kNetworks)});
  // A selector may now select WorkloadEntries (istiod: addOrUpdateService, buildEndpointsForService).
  if (remake_endpoints) RemakeSlices(hostname, {service->attributes.ns, service->attributes.name});
  EndpointList endpoints = EndpointsOf(*service);
  if (!endpoints.empty()) updater_.EdsCacheUpdate(shard_, hostname, service->attributes.ns, std::move(endpoints));
  updater_.SvcUpdate(shard_, hostname, service->attributes.ns, event);
  TellService(previous, service, event);
}

std::vector<kube::ObjectRef> KubeController::PodServices(const std::string& ns, const Labels& labels) const {
  return selectors_.Selecting(ns, labels);
}

// --- Nodes and namespaces ---

bool KubeController::AllKubeletsFrom(int minor) const {
  const std::vector<kube::ObjectRef> nodes = nodes_.List();
  return std::all_of(nodes.begin(), nodes.end(), [minor](const kube::ObjectRef& node) {
    std::string version = Text(At(node->body, {"status", "nodeInfo"}), "kubeletVersion");
    return MinorOf(version.starts_with('v') ? version.substr(1) : version) >= minor;
  });
}

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
    if (!options_.profile.Has(Change::kNodePortAddressesForgotten)) it->second = updated;
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
  std::vector<ServiceRef> known;
  for (const auto& [hostname, service] : services_map_) {
    if (service->attributes.ns == ns) known.push_back(service);
  }
  for (const kube::ObjectRef& service : services_.ListUnfiltered(ns)) OnService(service, Event::kDelete);
  for (const kube::ObjectRef& pod : pods_.ListUnfiltered(ns)) OnPod(pod, Event::kDelete);
  for (const kube::ObjectRef& slice : slices_.ListUnfiltered(ns)) OnSlice(slice, Event::kDelete);
  // What was deleted since the selectors changed stands in no list any more, and its own event was filtered.
  for (const ServiceRef& service : known) {
    slice_cache_.erase(service->hostname);
    if (services_map_.contains(service->hostname)) ForgetService(service);
  }
}

}  // namespace wavetank::pilot
