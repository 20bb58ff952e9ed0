#include "core/registry/registries.h"

#include <utility>

namespace wavetank::pilot {

Registries::Registries(kube::Client& config_cluster, kube::ClientFactory& factory, Host& host, XdsUpdater& updater,
                       config::ConfigStore& configs, Options options)
    : config_client_(config_cluster),
      host_(host),
      updater_(updater),
      options_(std::move(options)),
      service_entries_(configs, updater, {.cluster = options_.config_cluster, .trust_domain = options_.trust_domain}) {
  aggregate_.Add(service_entries_);
  networks_ = std::make_unique<NetworkManager>(
      host_, updater_, options_.resolver, [this] { return aggregate_.Gateways(); }, options_.networks);
  secrets_ = std::make_unique<SecretController>(config_cluster, factory, host_, *this, options_.config_cluster,
                                                options_.system_namespace, *options_.profile);
}

Registries::~Registries() = default;

void Registries::Start() {
  AddController(options_.config_cluster, config_client_, true).Start();
  if (on_cluster_started) on_cluster_started(options_.config_cluster, config_client_, true);
  networks_->Reload();
  secrets_->Start();
}

bool Registries::HasSynced() const { return secrets_->HasSynced() && aggregate_.HasSynced(); }

bool Registries::Idle() const {
  if (!secrets_->Idle()) return false;
  for (const auto& [id, controller] : controllers_) {
    if (!controller->stopped() && !controller->QueueIdle()) return false;
  }
  for (const auto& [id, workloads] : remote_workloads_) {
    if (!workloads->source.Idle()) return false;
  }
  return true;
}

KubeController* Registries::Find(const ClusterId& cluster) {
  const auto it = controllers_.find(cluster);
  return it == controllers_.end() ? nullptr : it->second;
}

void Registries::OnMeshNetworksChanged() {
  for (const auto& controller : all_controllers_) controller->OnMeshNetworksChanged();
  networks_->Reload();
}

void Registries::OnMeshConfigChanged() {
  for (const auto& controller : all_controllers_) controller->OnMeshConfigChanged();
}

KubeController& Registries::AddController(const ClusterId& id, kube::Client& client, bool config_cluster) {
  KubeController::Options options;
  options.cluster = id;
  options.domain_suffix = options_.domain_suffix;
  options.system_namespace = options_.system_namespace;
  options.trust_domain = options_.trust_domain;
  options.discovery_selectors = options_.discovery_selectors;
  if (!config_cluster) options.sync_timeout = options_.remote_cluster_timeout;
  auto controller = std::make_unique<KubeController>(client, host_, updater_, std::move(options), options_.networks);
  controller->on_gateways_changed = [this] { networks_->Reload(); };
  controller->on_synced = [this, id] {
    host_.Emit({TraceKind::kClusterSynced, host_.Intern(id.str()), kNoName, 0, 0, {}});
    if (on_synced) on_synced();
  };
  controller->on_service = [this, id](const ServiceRef& old, const ServiceRef& now, Event event) {
    if (on_service) on_service(id, old, now, event);
  };
  KubeController& added = *controller;
  controllers_[id] = &added;
  all_controllers_.push_back(std::move(controller));
  ConnectWorkloads(added, client, config_cluster);
  if (on_controller) on_controller(added, config_cluster);
  aggregate_.Add(added);
  return added;
}

// Pods may be selected by ServiceEntries; WorkloadEntries by Services of their own cluster, and those of remote
// clusters by ServiceEntries too (istiod: Multicluster.initializeCluster).
void Registries::ConnectWorkloads(KubeController& controller, kube::Client& client, bool config_cluster) {
  controller.AddWorkloadHandler(
      [this](const WorkloadInstance& pod, Event event) { service_entries_.OnWorkloadInstance(pod, event); });
  const auto tell_services = [&controller](const WorkloadInstance& workload, Event event) {
    controller.OnWorkloadInstance(workload, event);
  };
  if (config_cluster) return service_entries_.AddWorkloadHandler(tell_services);
  ServiceEntryController::Options options;
  options.cluster = controller.cluster();
  options.workload_entries_only = true;
  options.trust_domain = options_.trust_domain;
  options.network = [&controller](std::string_view ip, const Labels& labels) {
    return controller.NetworkOf(ip, labels);
  };
  auto workloads = std::make_unique<RemoteWorkloads>(client, host_, updater_, std::move(options));
  workloads->controller.AddWorkloadHandler(tell_services);
  workloads->controller.AddWorkloadHandler(
      [this](const WorkloadInstance& workload, Event event) { service_entries_.OnWorkloadInstance(workload, event); });
  aggregate_.Add(workloads->controller);
  remote_workloads_[controller.cluster()] = std::move(workloads);
}

// The registry's shards and its place in the aggregate go. Its gateways stay in the network manager until something
// else reloads it: 1.18.2 tells nobody (istiod: Multicluster.deleteCluster).
void Registries::RemoveController(const ClusterId& id) {
  const auto it = controllers_.find(id);
  if (it == controllers_.end()) return;
  if (on_cluster_deleted) on_cluster_deleted(id);
  it->second->Stop();
  aggregate_.Remove(*it->second);
  if (const auto workloads = remote_workloads_.find(id); workloads != remote_workloads_.end()) {
    aggregate_.Remove(workloads->second->controller);
    workloads->second->source.Stop();
    remote_workloads_.erase(workloads);
  }
  updater_.RemoveShard({id, Provider::kKubernetes});
  controllers_.erase(it);
}

void Registries::ClusterAdded(const ClusterId& id, kube::Client& client) {
  AddController(id, client, false);
  // Making the client and its informers takes istiod a while before the first request leaves.
  host_.Spend({WorkKind::kSecretSync, 1}, [alive = std::weak_ptr<int>(alive_), this, id, &client] {
    if (alive.expired()) return;
    KubeController* const controller = Find(id);
    // Meanwhile the cluster may have gone, or come back with another client.
    if (controller == nullptr || &controller->client() != &client || controller->stopped()) return;
    controller->Start();
    if (const auto it = remote_workloads_.find(id); it != remote_workloads_.end()) it->second->source.Start();
    if (on_cluster_started) on_cluster_started(id, client, false);
  });
}

void Registries::ClusterUpdated(const ClusterId& id, kube::Client& client) {
  RemoveController(id);
  ClusterAdded(id, client);
}

void Registries::ClusterDeleted(const ClusterId& id) {
  RemoveController(id);
  updater_.ConfigUpdate({.full = true, .reasons = Reason(TriggerReason::kCluster)});
}

void Registries::ClusterStopped(const ClusterId& id) {
  if (KubeController* controller = Find(id)) controller->Stop();
  if (const auto it = remote_workloads_.find(id); it != remote_workloads_.end()) it->second->source.Stop();
  if (on_cluster_stopped) on_cluster_stopped(id);
}

bool Registries::ClusterSynced(const ClusterId& id) const {
  const auto it = controllers_.find(id);
  return it == controllers_.end() || it->second->HasSynced();
}

}  // namespace wavetank::pilot
