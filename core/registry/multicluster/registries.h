// All registries of one istiod: the config cluster's, one per remote Secret, and ServiceEntries; with the network
// manager and the aggregate over them (istiod: pilot/pkg/serviceregistry/kube/controller/multicluster.go).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/host.h"
#include "core/config/mesh/mesh_watcher.h"
#include "core/model/features.h"
#include "core/registry/aggregate.h"
#include "core/registry/crd_client.h"
#include "core/registry/kube/kube_controller.h"
#include "core/registry/multicluster/held_back_updater.h"
#include "core/registry/multicluster/secret_controller.h"
#include "core/registry/network_manager.h"
#include "core/registry/service_entry/service_entry_controller.h"

namespace wavetank::pilot {

class Registries final : public ClusterHandler {
 public:
  struct Options {
    ClusterId config_cluster;
    std::string domain_suffix = "cluster.local";
    std::string system_namespace = "istio-system";
    Duration remote_cluster_timeout = 30s;  // PILOT_REMOTE_CLUSTER_TIMEOUT
    std::function<std::string()> trust_domain;
    NetworkManager::NetworksSource networks;
    std::function<nlohmann::json()> discovery_selectors;  // as KubeController's
    GatewayResolver* resolver = nullptr;
    const Profile* profile = nullptr;
    McsOptions mcs = {};
    AddressKeeper* addresses = nullptr;  // of ServiceEntries of the config cluster; may be null
    bool endpoints_only = false;         // as KubeController's
    Features features;
    LogSink log;  // may be empty
  };

  // All references must outlive it. ServiceEntries and WorkloadEntries of the config cluster are read from `configs`,
  // which the caller feeds.
  Registries(kube::Client& config_cluster, kube::ClientFactory& factory, Host& host, XdsUpdater& updater,
             config::ConfigStore& configs, Options options);
  ~Registries() override;

  void Start();
  // Config cluster and all clusters of the Secrets that were there at the start.
  bool HasSynced() const;
  // No event waits in any queue.
  bool Idle() const;

  Aggregate& aggregate() { return aggregate_; }
  const Aggregate& aggregate() const { return aggregate_; }
  NetworkManager& networks() { return *networks_; }
  const NetworkManager& networks() const { return *networks_; }
  const SecretController& secrets() const { return *secrets_; }
  KubeController* Find(const ClusterId& cluster);

  // meshNetworks has changed: every registry and the network manager look again.
  void OnMeshNetworksChanged();
  // The mesh config has: every registry looks whether it reads other namespaces now.
  void OnMeshConfigChanged();

  // A registry was made: code that selects pods adds its handlers here, before it starts.
  std::function<void(KubeController&, bool config_cluster)> on_controller;
  // A registry starts: other readers of this cluster may start too.
  std::function<void(const ClusterId&, kube::Client&, bool config_cluster)> on_cluster_started;
  // The registry's informers stop though it stays.
  std::function<void(const ClusterId&)> on_cluster_stopped;
  // A registry is about to go.
  std::function<void(const ClusterId&)> on_cluster_deleted;
  // As KubeController::on_service, of any cluster.
  std::function<void(const ClusterId&, const ServiceRef& old, const ServiceRef& now, Event)> on_service;
  std::function<void()> on_synced;  // whenever a cluster has synced

  // ClusterHandler
  void ClusterAdded(const ClusterId& id, kube::Client& client) override;
  void ClusterUpdated(const ClusterId& id, kube::Client& client) override;
  void ClusterDeleted(const ClusterId& id) override;
  void ClusterStopped(const ClusterId& id) override;
  bool ClusterSynced(const ClusterId& id) const override;
  // Its time to sync was over before it had (istiod: Cluster.SyncDidTimeout).
  bool ClusterTimedOut(const ClusterId& id) const;

 private:
  // What is read from a remote cluster beside its Kubernetes registry.
  struct RemoteWorkloads {
    config::ConfigStore store;
    config::CrdClient source;
    ServiceEntryController controller;
    RemoteWorkloads(kube::Client& client, Host& host, XdsUpdater& updater, ServiceEntryController::Options options)
        : source(client, host, store, updater, {.workload_entries_only = true}),
          controller(store, updater, std::move(options)) {}
  };

  // A registry that fills behind the one in use, with the switch of istio#36365, and takes its place when it has
  // synced. (istiod: multicluster.Component, pendingSwap.)
  struct Successor {
    KubeController* controller = nullptr;
    std::unique_ptr<RemoteWorkloads> workloads;  // null where Features leave WorkloadEntries to their own cluster
    HeldBackUpdater* updates = nullptr;
    bool in_place = false;  // the aggregate asks it already, though the one before has not been closed
  };

  // With Change::kTrustDomainPerCluster: the trust domain of a remote cluster, of its own ConfigMap.
  std::function<std::string()> RemoteTrustDomain(const ClusterId& id, kube::Client& client);
  // Once it is known what the cluster says of itself.
  void StartRemote(const ClusterId& id, kube::Client& client, std::function<void()> start);

  KubeController& MakeController(const ClusterId& id, kube::Client& client, bool config_cluster, XdsUpdater& updater);
  std::unique_ptr<RemoteWorkloads> ConnectWorkloads(KubeController& controller, kube::Client& client,
                                                    bool config_cluster, XdsUpdater& updater);
  // Makes it the registry of its cluster; the aggregate asks it unless it is `left_out`.
  void Use(KubeController& controller, std::unique_ptr<RemoteWorkloads> workloads, bool left_out = false);
  // Takes the registry out of use. It keeps what it knows, the index what it said.
  void Disuse(const ClusterId& id);
  void RemoveController(const ClusterId& id);
  void Prepare(const ClusterId& id, kube::Client& client);
  Successor* FindSuccessor(const KubeController& controller);
  void StartSuccessor(KubeController& controller);
  void OnSuccessorTimeout(KubeController& controller);
  void PutInPlace(Successor& next);
  void TakeOver(KubeController& controller);
  void Drop(Successor& next);
  void DropSuccessors(const ClusterId& id);

  kube::Client& config_client_;
  Host& host_;
  XdsUpdater& updater_;
  const Options options_;
  Aggregate aggregate_;
  ServiceEntryController service_entries_;
  std::unique_ptr<NetworkManager> networks_;
  // Every registry ever made, in order. One whose cluster has gone still hears of new meshNetworks, as istiod never
  // takes its handler back, and then puts the endpoints that it remembers into the index again.
  std::vector<std::unique_ptr<HeldBackUpdater>> held_back_;  // of those registries that were successors once
  std::vector<std::unique_ptr<KubeController>> all_controllers_;
  std::map<ClusterId, KubeController*> controllers_;
  std::map<ClusterId, std::unique_ptr<RemoteWorkloads>> remote_workloads_;
  std::map<ClusterId, std::vector<Successor>> successors_;  // in the order of their kubeconfigs
  std::set<const KubeController*> unheard_;                 // of whose Services and gateways nobody is told
  std::map<const kube::Client*, std::unique_ptr<config::MeshWatcher>> remote_meshes_;
  std::unique_ptr<SecretController> secrets_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // callbacks on their way look whether it still is
};

}  // namespace wavetank::pilot
