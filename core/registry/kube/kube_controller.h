// The registry of one Kubernetes cluster: turns Services, EndpointSlices, Pods, Nodes and the system namespace into
// services, endpoints and network gateways (istiod: pilot/pkg/serviceregistry/kube/controller).
//
// Every event goes through one queue, as in istiod, and costs registry work on the host. The queue starts once all
// informers have synced; the registry has synced when the events that were there at that time are handled.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/containers/cidr_trie.h"
#include "core/base/host.h"
#include "core/kube/filtered_informer.h"
#include "core/kube/types.h"
#include "core/model/environment.h"
#include "core/model/network_manager.h"
#include "core/model/proxy.h"
#include "core/model/xds_updater.h"
#include "core/profile/profile.h"
#include "core/registry/kube/discovery_namespaces.h"
#include "core/registry/kube/endpoints_client.h"
#include "core/registry/kube/mcs_options.h"
#include "core/registry/kube/pod_addresses.h"
#include "core/registry/registry.h"
#include "core/registry/services_by_selector.h"
#include "core/registry/workload_instance.h"

namespace wavetank::pilot {

class EndpointBuilder;
class MultiClusterServices;

class KubeController final : public Registry {
 public:
  struct Options {
    ClusterId cluster;
    std::string domain_suffix = "cluster.local";
    std::string system_namespace = "istio-system";
    // Called for the mesh's trust domain whenever an identity is made.
    std::function<std::string()> trust_domain;
    // meshConfig.discoverySelectors as written; null or none: every namespace is read.
    std::function<nlohmann::json()> discovery_selectors;
    // PILOT_REMOTE_CLUSTER_TIMEOUT; none for the config cluster.
    std::optional<Duration> sync_timeout;
    bool endpoints_only = false;     // PILOT_USE_ENDPOINT_SLICE=false: Endpoints are read instead of EndpointSlices
    bool headless_listeners = true;  // Features
    Profile profile;
    McsOptions mcs = {};
    // The Service of that host as all clusters together have it; null if none has. For imported Services.
    std::function<ServiceRef(std::string_view hostname)> mesh_service = {};
  };

  // `client`, `host`, `updater` must outlive it. `networks` gives the present meshNetworks and may give null.
  KubeController(kube::Client& client, Host& host, XdsUpdater& updater, Options options,
                 std::function<std::shared_ptr<const config::MeshNetworks>()> networks);
  ~KubeController() override;

  void Start();  // once; later calls do nothing
  // The time that it has to sync begins, if it has one; Start() does so, too.
  void StartTimeout();
  // Informers stop and queued events are dropped; what is known stays known.
  void Stop();
  bool stopped() const { return stopped_; }
  kube::Client& client() const { return client_; }

  // Registry
  Provider provider() const override { return Provider::kKubernetes; }
  const ClusterId& cluster() const override { return options_.cluster; }
  bool HasSynced() const override { return synced_ || timed_out_; }
  bool synced() const { return synced_; }  // in truth
  std::vector<ServiceRef> Services() const override;
  ServiceRef GetService(std::string_view hostname) const override;
  std::vector<ServiceInstance> InstancesByPort(const Service& service, int port) const override;
  std::vector<ServiceInstance> GetProxyServiceInstances(const Proxy& proxy) const override;
  std::optional<Labels> GetProxyWorkloadLabels(const Proxy& proxy) const override;
  std::vector<NetworkGateway> Gateways() const override;

  bool QueueIdle() const { return !working_ && queue_.empty(); }

  // meshNetworks has changed.
  void OnMeshNetworksChanged();
  // The mesh config has, maybe its discoverySelectors.
  void OnMeshConfigChanged();
  // A pod as a workload came, changed or went: for ServiceEntries that select pods.
  using WorkloadHandler = std::function<void(const WorkloadRef&, Event)>;
  void AddWorkloadHandler(WorkloadHandler handler) { workload_handlers_.push_back(std::move(handler)); }
  // A WorkloadEntry came, changed or went: Services may select it.
  void OnWorkloadInstance(const WorkloadRef& instance, Event event);
  // A Service of any cluster came, changed or went: it may be imported here.
  void OnMeshService(const ServiceRef& service, Event event);
  // What is exported and imported; null without ENABLE_MCS_SERVICE_DISCOVERY.
  const MultiClusterServices* multi_cluster_services() const { return mcs_.get(); }
  // Of its host in the cluster and, with ENABLE_MCS_HOST, that in the clusterset those that are known.
  std::vector<ServiceRef> ServicesOf(const kube::NamespacedName& service) const;
  // Gateways of this cluster changed: NetworkManager reloads.
  std::function<void()> on_gateways_changed;
  // Everything there is has been handled once.
  std::function<void()> on_synced;
  // The annotations of a namespace that its ServiceEntries look at have changed.
  std::function<void(const std::string& ns)> on_namespace_annotations;
  Labels NamespaceAnnotations(const std::string& ns) const;
  // A service came (old is null), changed or went (now is its last state).
  std::function<void(const ServiceRef& old, const ServiceRef& now, Event event)> on_service;

  // Whether the kubelet of every node is of Kubernetes 1.`minor` or newer; one that does not say is not. O(nodes).
  bool AllKubeletsFrom(int minor) const;

  // The network of an endpoint, by label, system namespace, then meshNetworks (istiod: Controller.Network).
  NetworkId NetworkOf(std::string_view ip, const Labels& labels) const;

 private:
  struct NodeInfo {
    std::string address;
    Labels labels;
    friend bool operator==(const NodeInfo&, const NodeInfo&) = default;
  };
  using Task = std::function<void()>;

  // Queue
  void Push(CauseId cause, std::string_view what, Task task);
  void MaybeRunQueue();
  void RunNext();
  void OnInformersSynced();
  template <class Informer, class Handler>
  void Register(Informer& informer, Handler handler);
  std::vector<kube::Informer*> Informers();
  kube::FilteredInformer::Filter InDiscoveryNamespaces() const;

  // Events
  void UpdateSlice(const std::string& hostname, const kube::Object& slice, Event event);
  bool IsHidden(const Service& service) const;  // exported to nobody, in a release that passes its slices over
  void OnNamespace(const kube::ObjectRef& ns, Event event);
  void OnService(const kube::ObjectRef& service, Event event);
  void OnSlice(const kube::ObjectRef& slice, Event event);
  void OnNode(const kube::ObjectRef& node, Event event);
  void OnPod(const kube::ObjectRef& pod, Event event);
  // Namespaces that are read from now on, and no longer.
  void OnDiscoveryChange(const DiscoveryNamespaces::Change& change);
  void OnNamespaceSelected(const std::string& ns);
  void OnNamespaceDeselected(const std::string& ns);

  // Services
  void AddOrUpdateService(const kube::ObjectRef& object, Event event);
  std::shared_ptr<Service> Convert(const kube::Object& object) const;
  void OnNamespaceAnnotations(const kube::Object& old, const kube::Object& now);
  void TellService(const ServiceRef& old, const ServiceRef& now, Event event) const;
  void DeleteService(const kube::ObjectRef& object);
  // What follows once its gateways are known, and once it is known to be gone.
  void StoreService(const ServiceRef& service, Event event, bool networks_changed, bool remake_endpoints = false);
  void ForgetService(const ServiceRef& service);
  std::string HostnameOf(const kube::ObjectMeta& meta) const;
  // Services of `ns` whose selector matches; an empty selector matches nothing.
  std::vector<kube::ObjectRef> PodServices(const std::string& ns, const Labels& labels) const;

  // Endpoints
  EndpointList CachedEndpoints(const std::string& hostname) const;
  void UpdateSliceCache(const std::string& hostname, const kube::Object& slice);
  HealthStatus HealthOf(const std::string& hostname, const kube::EndpointSlice::Endpoint& endpoint) const;
  EndpointBuilder BuilderFor(const kube::Object* pod) const;
  // Endpoints of WorkloadEntries that the Service selects.
  EndpointList WorkloadEndpoints(const Service& service) const;
  std::vector<ServiceInstance> WorkloadInstancesFor(const Service& service, const Port& port) const;

  // Exports and imports (kube_controller_imports.cc)
  void WatchMultiClusterServices();
  void OnServiceExport(const kube::ObjectRef& object, Event event);
  void OnServiceImport(const kube::ObjectRef& object, Event event);
  std::shared_ptr<Service> ImportedService(const Service& real, const kube::NamespacedName& name,
                                           const std::vector<std::string>& ips) const;
  void PutImportedService(const std::shared_ptr<Service>& service, Event event, bool remake_endpoints);
  std::vector<std::string> HostnamesOf(const kube::NamespacedName& service) const;
  // Endpoints of that host are for proxies of this cluster alone.
  bool Confined(const std::string& hostname, const kube::NamespacedName& service) const;
  void RemakeSlices(const std::string& hostname, const kube::NamespacedName& service);
  EndpointList EndpointsOf(const Service& service) const;  // of slices and WorkloadEntries

  // Pods
  // A label of a pod that is known already has changed: endpoints of the Services that select it are made anew.
  void RemakeEndpointsOf(const kube::NamespacedName& pod);
  kube::ObjectRef PodByIp(const std::string& ip) const;
  kube::ObjectRef PodByProxy(const Proxy& proxy) const;
  void AddPodIp(const std::string& ip, const kube::NamespacedName& pod);
  // An endpoint of a pod has all its addresses.
  bool KnowsSeveralAddresses() const;
  void NotifyWorkload(const kube::Object& pod, Event event);
  std::string PodLocality(const kube::Object& pod, const kube::Pod& typed) const;
  const std::string& NodeLocality(const std::string& node) const;

  // Networks
  void ReloadMeshNetworks();
  void OnNetworkChange();
  NetworkId NetworkFromMeshNetworks(std::string_view ip) const;
  bool ExtractGateways(const Service& service);  // and tells the NetworkManager if they changed
  bool UpdateGateways(const Service& service);
  void SetNodeAddresses(Service& service) const;

  std::vector<ServiceInstance> InstancesByPod(const kube::Object& pod, const kube::Object& object,
                                              const ServiceRef& service, const Proxy& proxy) const;
  std::vector<ServiceInstance> InstancesFromMetadata(const Proxy& proxy) const;
  std::vector<ServiceInstance> InstancesFromSlices(const Proxy& proxy) const;
  std::vector<ServiceInstance> InstancesOfSlice(const kube::EndpointSlice& slice, const ServiceRef& service,
                                                const kube::Object* pod, const Proxy& proxy) const;
  std::vector<ServiceInstance> InstancesFromWorkload(const WorkloadInstance& workload) const;

  kube::Client& client_;
  Host& host_;
  XdsUpdater& updater_;
  const Options options_;
  const ShardKey shard_;
  NameId trace_name_;
  std::function<std::shared_ptr<const config::MeshNetworks>()> networks_;

  DiscoveryNamespaces discovery_namespaces_;
  EndpointsClient endpoints_;  // of Endpoints, as slices
  kube::Informer namespaces_, nodes_;
  kube::FilteredInformer services_, slices_, pods_;
  std::unique_ptr<MultiClusterServices> mcs_;
  std::shared_ptr<KubeController*> self_;

  struct Item {
    CauseId cause;
    std::string what;
    Task task;
  };
  std::deque<Item> queue_;
  bool started_ = false, running_ = false, working_ = false, synced_ = false, timed_out_ = false, stopped_ = false;
  bool timeout_started_ = false;
  size_t initial_items_ = 0;  // still to do until synced

  std::map<std::string, ServiceRef, std::less<>> services_map_;
  mutable ServicesBySelector selectors_{services_};
  std::map<std::string, std::vector<ServiceInstance>, std::less<>> external_name_instances_;
  std::map<std::string, Labels, std::less<>> node_selectors_;
  std::map<std::string, NodeInfo> node_info_;
  mutable absl::flat_hash_map<std::string, std::string> node_localities_;  // as of that revision of the nodes
  mutable uint64_t node_localities_revision_ = 0;
  std::map<std::string, std::map<std::string, EndpointList>, std::less<>> slice_cache_;  // host, slice

  PodAddresses pod_addresses_;
  std::map<std::string, std::set<kube::NamespacedName>> need_resync_;  // pod IP -> slices that wait for it

  NetworkId network_;                   // label of the system namespace
  NetworkId network_from_mesh_config_;  // fromRegistry
  CidrTrie<NetworkId> cidr_networks_;
  std::map<std::string, std::vector<NetworkGateway>, std::less<>> registry_service_gateways_;
  std::map<std::string, std::set<NetworkGateway>, std::less<>> gateways_by_service_;

  std::vector<WorkloadHandler> workload_handlers_;
  std::map<kube::NamespacedName, WorkloadInstance> workload_instances_;
};

}  // namespace wavetank::pilot
