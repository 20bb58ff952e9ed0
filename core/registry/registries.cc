#include "core/registry/registries.h"

#include <utility>

namespace wavetank::pilot {

Registries::Registries(kube::Client& config_cluster, kube::ClientFactory& factory, Host& host, XdsUpdater& updater,
                       Options options)
    : config_client_(config_cluster), host_(host), updater_(updater), options_(std::move(options)) {
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
  return true;
}

KubeController* Registries::Find(const ClusterId& cluster) {
  const auto it = controllers_.find(cluster);
  return it == controllers_.end() ? nullptr : it->second.get();
}

void Registries::OnMeshNetworksChanged() {
  for (const auto& [id, controller] : controllers_) {
    if (!controller->stopped()) controller->OnMeshNetworksChanged();
  }
  networks_->Reload();
}

KubeController& Registries::AddController(const ClusterId& id, kube::Client& client, bool config_cluster) {
  KubeController::Options options;
  options.cluster = id;
  options.domain_suffix = options_.domain_suffix;
  options.system_namespace = options_.system_namespace;
  options.trust_domain = options_.trust_domain;
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
  controllers_[id] = std::move(controller);
  if (on_controller) on_controller(added, config_cluster);
  aggregate_.Add(added);
  return added;
}

// The registry's shards and its place in the aggregate go. Its gateways stay in the network manager until something
// else reloads it: 1.18.2 tells nobody (istiod: Multicluster.deleteCluster).
void Registries::RemoveController(const ClusterId& id) {
  const auto it = controllers_.find(id);
  if (it == controllers_.end()) return;
  if (on_cluster_deleted) on_cluster_deleted(id);
  it->second->Stop();
  aggregate_.Remove(*it->second);
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
  if (on_cluster_stopped) on_cluster_stopped(id);
}

bool Registries::ClusterSynced(const ClusterId& id) const {
  const auto it = controllers_.find(id);
  return it == controllers_.end() || it->second->HasSynced();
}

}  // namespace wavetank::pilot
