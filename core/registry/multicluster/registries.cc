#include "core/registry/multicluster/registries.h"

#include <algorithm>
#include <utility>

#include "core/base/assert.h"
#include "core/base/text/go_duration.h"
#include "core/profile/changes.h"
#include "fmt/format.h"

namespace wavetank::pilot {

Registries::Registries(kube::Client& config_cluster, kube::ClientFactory& factory, Host& host, XdsUpdater& updater,
                       config::ConfigStore& configs, Options options)
    : config_client_(config_cluster),
      host_(host),
      updater_(updater),
      options_(std::move(options)),
      service_entries_(configs, updater,
                       {.cluster = options_.config_cluster,
                        .trust_domain = options_.trust_domain,
                        .network = nullptr,
                        .profile = *options_.profile,
                        .namespace_annotations =
                            [this](const std::string& ns) {
                              const KubeController* const own = Find(options_.config_cluster);
                              return own == nullptr ? Labels() : own->NamespaceAnnotations(ns);
                            },
                        .addresses = options_.addresses}) {
  aggregate_.MergeServiceAccounts(options_.profile->Has(Change::kTrustDomainPerCluster));
  aggregate_.Add(service_entries_);
  networks_ = std::make_unique<NetworkManager>(
      host_, updater_, options_.resolver, [this] { return aggregate_.Gateways(); }, options_.networks,
      *options_.profile);
  secrets_ = std::make_unique<SecretController>(config_cluster, factory, host_, *this, options_.config_cluster,
                                                options_.system_namespace, *options_.profile);
  secrets_->set_log(options_.log);
}

Registries::~Registries() = default;

void Registries::Start() {
  KubeController& own = MakeController(options_.config_cluster, config_client_, true, updater_);
  own.on_namespace_annotations = [this](const std::string& ns) { service_entries_.OnNamespaceAnnotations(ns); };
  Use(own, ConnectWorkloads(own, config_client_, true, updater_));
  own.Start();
  if (on_cluster_started) on_cluster_started(options_.config_cluster, config_client_, true);
  networks_->Reload();
  networks_->log = options_.log;  // its first lines are those of the start (core/istiod/start_lines.h)
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
  for (const auto& [id, chain] : successors_) {
    for (const Successor& next : chain) {
      if (!next.controller->QueueIdle() || (next.workloads != nullptr && !next.workloads->source.Idle())) return false;
    }
  }
  return true;
}

KubeController* Registries::Find(const ClusterId& cluster) {
  const auto it = controllers_.find(cluster);
  return it == controllers_.end() ? nullptr : it->second;
}

void Registries::OnMeshNetworksChanged() {
  const bool zombies = !options_.profile->Has(Change::kDeletedClustersHearNothing);
  for (const auto& controller : all_controllers_) {
    const auto used = controllers_.find(controller->cluster());
    const bool alive =
        (used != controllers_.end() && used->second == controller.get()) || FindSuccessor(*controller) != nullptr;
    if (zombies || alive) controller->OnMeshNetworksChanged();
  }
  networks_->Reload();
}

void Registries::OnMeshConfigChanged() {
  for (const auto& controller : all_controllers_) controller->OnMeshConfigChanged();
}

// istiod: kube/controller/multicluster.go, NewRestrictedConfigWatcher.
std::function<std::string()> Registries::RemoteTrustDomain(const ClusterId&, kube::Client& client) {
  if (!options_.profile->Has(Change::kTrustDomainPerCluster)) return options_.trust_domain;
  std::unique_ptr<config::MeshWatcher>& mesh = remote_meshes_[&client];
  if (mesh == nullptr) mesh = std::make_unique<config::MeshWatcher>(client, host_, options_.system_namespace);
  return [watcher = mesh.get()] { return watcher->mesh()->trust_domain; };
}

void Registries::StartRemote(const ClusterId&, kube::Client& client, std::function<void()> start) {
  const auto mesh = remote_meshes_.find(&client);
  if (mesh == remote_meshes_.end()) return start();
  mesh->second->OnSynced(std::move(start));
  mesh->second->Start();
}

KubeController& Registries::MakeController(const ClusterId& id, kube::Client& client, bool config_cluster,
                                           XdsUpdater& updater) {
  KubeController::Options options;
  options.cluster = id;
  options.domain_suffix = options_.domain_suffix;
  options.system_namespace = options_.system_namespace;
  options.trust_domain = config_cluster ? options_.trust_domain : RemoteTrustDomain(id, client);
  options.discovery_selectors = options_.discovery_selectors;
  options.endpoints_only = options_.endpoints_only;
  options.headless_listeners = options_.features.headless_listeners;
  options.profile = *options_.profile;
  options.mcs = options_.mcs;
  options.mesh_service = [this](std::string_view hostname) { return aggregate_.GetService(hostname); };
  // istiod: pkg/kube/multicluster/cluster.go, Run: without a positive one it waits for ever.
  if (!config_cluster && options_.remote_cluster_timeout > Duration::zero()) {
    options.sync_timeout = options_.remote_cluster_timeout;
  }
  all_controllers_.push_back(
      std::make_unique<KubeController>(client, host_, updater, std::move(options), options_.networks));
  KubeController& made = *all_controllers_.back();
  made.on_gateways_changed = [this] { networks_->Reload(); };
  made.on_synced = [this, id, controller = &made, began = host_.Now()] {
    // istiod: kube/controller/controller.go, Run.
    if (options_.log && controller->synced()) {
      options_.log({.scope = "kube",
                    .text = fmt::format("kube controller for {} synced after {}", id.str(),
                                        GoDurationText((host_.Now() - began).count()))});
    }
    host_.Emit({TraceKind::kClusterSynced, host_.Intern(id.str()), kNoName, 0, 0, {}});
    // One whose time is over without having synced goes on trying; what is in use stays.
    if (FindSuccessor(*controller) != nullptr && controller->synced()) TakeOver(*controller);
    if (on_synced) on_synced();
  };
  made.on_service = [this, id, controller = &made](const ServiceRef& old, const ServiceRef& now, Event event) {
    if (FindSuccessor(*controller) != nullptr || unheard_.contains(controller)) return;
    if (on_service) on_service(id, old, now, event);
    for (const auto& [cluster, other] : controllers_) other->OnMeshService(now, event);
  };
  return made;
}

// Pods may be selected by ServiceEntries; WorkloadEntries by Services of their own cluster, and those of remote
// clusters by ServiceEntries too (istiod: Multicluster.initializeCluster).
std::unique_ptr<Registries::RemoteWorkloads> Registries::ConnectWorkloads(KubeController& controller,
                                                                          kube::Client& client, bool config_cluster,
                                                                          XdsUpdater& updater) {
  const Features& features = options_.features;
  if (features.entries_select_pods) {
    controller.AddWorkloadHandler(
        [this](const WorkloadRef& pod, Event event) { service_entries_.OnWorkloadInstance(pod, event); });
  }
  if (!features.services_select_entries) return nullptr;
  const auto tell_services = [&controller](const WorkloadRef& workload, Event event) {
    controller.OnWorkloadInstance(workload, event);
  };
  if (config_cluster) {
    service_entries_.AddWorkloadHandler(tell_services);
    return nullptr;
  }
  if (!features.entries_across_clusters) return nullptr;
  ServiceEntryController::Options options;
  options.cluster = controller.cluster();
  options.workload_entries_only = true;
  options.profile = *options_.profile;
  options.trust_domain = RemoteTrustDomain(controller.cluster(), client);
  options.network = [&controller](std::string_view ip, const Labels& labels) {
    return controller.NetworkOf(ip, labels);
  };
  auto workloads = std::make_unique<RemoteWorkloads>(client, host_, updater, std::move(options));
  workloads->controller.AddWorkloadHandler(tell_services);
  workloads->controller.AddWorkloadHandler(
      [this](const WorkloadRef& workload, Event event) { service_entries_.OnWorkloadInstance(workload, event); });
  return workloads;
}

void Registries::Use(KubeController& controller, std::unique_ptr<RemoteWorkloads> workloads, bool left_out) {
  controllers_[controller.cluster()] = &controller;
  if (workloads != nullptr) {
    aggregate_.Add(workloads->controller);
    remote_workloads_[controller.cluster()] = std::move(workloads);
  }
  if (on_controller) on_controller(controller, controller.cluster() == options_.config_cluster);
  if (!left_out) aggregate_.Add(controller);
}

void Registries::Disuse(const ClusterId& id) {
  WAVETANK_ASSERT(controllers_.contains(id), id.str());
  KubeController& controller = *controllers_.at(id);
  if (on_cluster_deleted) on_cluster_deleted(id);
  controller.Stop();
  // By the cluster's name, so it may be another one that goes (istiod: aggregate.Controller.DeleteRegistry).
  if (const Registry* const current = aggregate_.KubernetesOf(id)) aggregate_.Remove(*current);
  if (const auto workloads = remote_workloads_.find(id); workloads != remote_workloads_.end()) {
    aggregate_.Remove(workloads->second->controller);
    workloads->second->source.Stop();
    remote_workloads_.erase(workloads);
  }
  controllers_.erase(id);
}

// The registry's shards and its place in the aggregate go. Its gateways stay in the network manager until something
// else reloads it: 1.18.2 tells nobody (istiod: Multicluster.deleteCluster).
void Registries::RemoveController(const ClusterId& id) {
  DropSuccessors(id);
  if (Find(id) == nullptr) return;
  Disuse(id);
  updater_.RemoveShard({id, Provider::kKubernetes});
}

void Registries::ClusterAdded(const ClusterId& id, kube::Client& client) {
  KubeController& controller = MakeController(id, client, false, updater_);
  Use(controller, ConnectWorkloads(controller, client, false, updater_));
  // Making the client and its informers takes istiod a while before the first request leaves.
  host_.Spend({WorkKind::kSecretSync, 1}, [alive = std::weak_ptr<int>(alive_), this, id, &client] {
    if (alive.expired()) return;
    KubeController* const started = Find(id);
    // Meanwhile the cluster may have gone, or come back with another client.
    if (started == nullptr || &started->client() != &client || started->stopped()) return;
    // Not by what the registry reads first (istiod 1.30: pkg/kube/multicluster/cluster.go, Run).
    if (remote_meshes_.contains(&client)) started->StartTimeout();
    StartRemote(id, client, [alive, this, id, &client] {
      KubeController* const now = alive.expired() ? nullptr : Find(id);
      if (now == nullptr || &now->client() != &client || now->stopped()) return;
      now->Start();
      if (const auto it = remote_workloads_.find(id); it != remote_workloads_.end()) it->second->source.Start();
      if (on_cluster_started) on_cluster_started(id, client, false);
    });
  });
}

void Registries::ClusterUpdated(const ClusterId& id, kube::Client& client) {
  if (options_.profile->Has(Change::kGracefulSecretUpdate)) return Prepare(id, client);
  RemoveController(id);
  ClusterAdded(id, client);
}

Registries::Successor* Registries::FindSuccessor(const KubeController& controller) {
  const auto chain = successors_.find(controller.cluster());
  if (chain == successors_.end()) return nullptr;
  for (Successor& next : chain->second) {
    if (next.controller == &controller) return &next;
  }
  return nullptr;
}

// A Secret that changes again meanwhile gets one more: none of them waits for another.
void Registries::Prepare(const ClusterId& id, kube::Client& client) {
  held_back_.push_back(std::make_unique<HeldBackUpdater>(updater_));
  Successor next;
  next.updates = held_back_.back().get();
  next.controller = &MakeController(id, client, false, *next.updates);
  next.workloads = ConnectWorkloads(*next.controller, client, false, *next.updates);
  // It gets its handlers when it is put among the registries (istiod: aggregate.Controller.UpdateRegistry).
  if (options_.profile->Has(Change::kSwapLosesGateways)) next.controller->on_gateways_changed = nullptr;
  KubeController& controller = *next.controller;
  successors_[id].push_back(std::move(next));
  host_.Spend({WorkKind::kSecretSync, 1}, [alive = std::weak_ptr<int>(alive_), this, id, &client, &controller] {
    if (alive.expired() || FindSuccessor(controller) == nullptr) return;
    if (options_.remote_cluster_timeout > Duration::zero()) {
      host_.RunAfter(options_.remote_cluster_timeout, [alive, this, &controller] {
        if (!alive.expired()) OnSuccessorTimeout(controller);
      });
    }
    // 1.30.0 to 1.30.2 start the registry when the cluster has synced, which waits for the registry: both wait for the
    // timeout (istiod: kube/controller/multicluster.go, initializeCluster; istio#60612).
    if (options_.profile->Has(Change::kSwapWaitsForItself)) return;
    StartRemote(id, client, [alive, this, &controller] {
      if (!alive.expired()) StartSuccessor(controller);
    });
  });
}

void Registries::StartSuccessor(KubeController& controller) {
  Successor* const next = FindSuccessor(controller);
  if (next == nullptr) return;
  controller.Start();
  if (next->workloads != nullptr) next->workloads->source.Start();
}

// Its time is over, and the cluster counts as synced (istiod: pkg/kube/multicluster/cluster.go, Run).
void Registries::OnSuccessorTimeout(KubeController& controller) {
  Successor* const next = FindSuccessor(controller);
  if (next == nullptr) return;
  if (options_.profile->Has(Change::kSwapLosesEndpoints)) PutInPlace(*next);
  if (!options_.profile->Has(Change::kSwapWaitsForItself)) return;
  StartRemote(controller.cluster(), controller.client(), [alive = std::weak_ptr<int>(alive_), this, &controller] {
    if (!alive.expired()) StartSuccessor(controller);
  });
}

// istiod: aggregate.Controller.UpdateRegistry. One that finds another there has no handlers appended (istio#60920).
void Registries::PutInPlace(Successor& next) {
  next.in_place = true;
  next.updates->Open();
  Registry* const current = aggregate_.KubernetesOf(next.controller->cluster());
  if (current == nullptr) {
    aggregate_.Add(*next.controller);
  } else {
    aggregate_.Replace(*current, *next.controller);
    if (options_.profile->Has(Change::kSwapLosesGateways)) {
      unheard_.insert(next.controller);
      return;
    }
  }
  next.controller->on_gateways_changed = [this] { networks_->Reload(); };
}

// The index goes from what the old registry said to what the new one says without an empty moment.
void Registries::TakeOver(KubeController& controller) {
  const ClusterId id = controller.cluster();
  WAVETANK_ASSERT(controller.synced(), id.str());  // else endpoints would be lost by the swap
  std::vector<Successor>& chain = successors_.at(id);
  // Those before it are closed with the one in use; those after it go on.
  while (chain.front().controller != &controller) {
    Drop(chain.front());
    chain.erase(chain.begin());
  }
  Successor next = std::move(chain.front());
  chain.erase(chain.begin());
  if (chain.empty()) successors_.erase(id);
  const std::vector<ServiceRef> before = Find(id) == nullptr ? std::vector<ServiceRef>() : Find(id)->Services();
  if (Find(id) != nullptr) Disuse(id);
  Use(controller, std::move(next.workloads), /*left_out=*/next.in_place);
  for (const ServiceRef& service : before) {
    if (controller.GetService(service->hostname) == nullptr)
      updater_.SvcUpdate({id, Provider::kKubernetes}, service->hostname, service->attributes.ns, Event::kDelete);
  }
  next.updates->Open();
  if (!options_.profile->Has(Change::kSwapLosesGateways)) {
    networks_->Reload();
  } else if (!next.in_place) {
    // The old one is closed first, so this one is added with handlers; what it found before that was told to nobody.
    controller.on_gateways_changed = [this] { networks_->Reload(); };
  }
  // 1.30.3 cleans up after the old registry under the key that the new one has just filled.
  if (options_.profile->Has(Change::kSwapLosesEndpoints)) updater_.RemoveShard({id, Provider::kKubernetes});
  if (on_cluster_started) on_cluster_started(id, controller.client(), false);
  updater_.ConfigUpdate({.full = true, .reasons = Reason(TriggerReason::kCluster)});
}

void Registries::Drop(Successor& next) {
  next.controller->Stop();
  if (next.workloads != nullptr) next.workloads->source.Stop();
}

void Registries::DropSuccessors(const ClusterId& id) {
  const auto chain = successors_.find(id);
  if (chain == successors_.end()) return;
  for (Successor& next : chain->second) Drop(next);
  successors_.erase(chain);
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

bool Registries::ClusterTimedOut(const ClusterId& id) const {
  const auto it = controllers_.find(id);
  return it != controllers_.end() && it->second->HasSynced() && !it->second->synced();
}

}  // namespace wavetank::pilot
