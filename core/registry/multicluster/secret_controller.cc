#include "core/registry/multicluster/secret_controller.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/assert.h"
#include "core/base/status.h"
#include "core/kube/credentials/kubeconfig.h"
#include "core/kube/secret.h"
#include "core/profile/changes.h"
#include "core/x509/x509.h"

namespace wavetank::pilot {
namespace {

std::string HashOf(std::string_view kubeconfig) {
  const x509::Sha256Digest digest = x509::Sha256(kubeconfig);
  return std::string(digest.begin(), digest.end());
}

}  // namespace

SecretController::SecretController(kube::Client& config_cluster, kube::ClientFactory& factory, Host& host,
                                   ClusterHandler& handler, ClusterId config_cluster_id, std::string system_namespace,
                                   const Profile& profile)
    : factory_(factory),
      host_(host),
      handler_(handler),
      config_cluster_id_(std::move(config_cluster_id)),
      profile_(profile),
      secrets_(config_cluster, host, kube::kinds::kSecret,
               {std::move(system_namespace), "istio/multiCluster=true", ""}),
      trace_name_(host.Intern(config_cluster_id_.str())),
      self_(std::make_shared<SecretController*>(this)) {
  const auto enqueue = [this](const kube::ObjectRef& o) { Enqueue({o->meta.ns, o->meta.name}); };
  secrets_.AddHandler({enqueue, [enqueue](const kube::ObjectRef&, const kube::ObjectRef& o) { enqueue(o); }, enqueue});
}

SecretController::~SecretController() { *self_ = nullptr; }

// istiod: pkg/kube/multicluster/secretcontroller.go, logger with labels.
void SecretController::SayOf(const std::string& cluster, const kube::NamespacedName& secret,
                             std::string_view text) const {
  if (log_) log_({.text = fmt::format("{}\tcluster={} secret={}/{}", text, cluster, secret.ns, secret.name)});
}

void SecretController::SayHowMany() const {
  size_t clusters = 0;
  for (const auto& [secret, of] : remotes_) clusters += of.size();
  if (log_) log_({.text = fmt::format("Number of remote clusters: {}", clusters)});
}

void SecretController::Start() {
  if (log_) log_({.text = "Starting multicluster remote secrets controller"});
  secrets_.WhenSynced([this] {
    initial_ = queue_.size();
    initial_done_ = initial_ == 0;
    if (!queue_.empty()) Next();
  });
  secrets_.Start();
}

bool SecretController::HasSynced() const {
  if (!initial_done_) return false;
  for (const auto& [secret, clusters] : remotes_) {
    for (const auto& [id, remote] : clusters) {
      if (!remote.stopped && !handler_.ClusterSynced(id)) return false;
    }
  }
  return true;
}

std::vector<SecretController::ClusterState> SecretController::Clusters() const {
  std::vector<ClusterState> out;
  for (const auto& [secret, clusters] : remotes_) {
    for (const auto& [id, remote] : clusters) out.push_back({id, secret.ns + "/" + secret.name, remote.stopped});
  }
  return out;
}

void SecretController::Enqueue(const kube::NamespacedName& secret) {
  for (const Item& item : queue_) {
    if (item.secret == secret) return;  // a work queue holds a key once
  }
  queue_.push_back({secret, host_.cause()});
  if (secrets_.HasSynced() && !working_) Next();
}

void SecretController::Next() {
  WAVETANK_ASSERT(!working_);  // one Secret at a time
  WAVETANK_ASSERT(!queue_.empty());
  working_ = true;
  host_.Post([self = self_] {
    SecretController* const me = *self;
    if (me == nullptr || me->queue_.empty()) return;
    const Item item = me->queue_.front();
    me->queue_.pop_front();
    {
      ScopedCause cause(me->host_, item.cause);
      me->Process(item.secret);
    }
    if (*self == nullptr) return;
    WAVETANK_ASSERT(me->initial_done_ || me->initial_ > 0, me->initial_);
    if (!me->initial_done_ && --me->initial_ == 0) me->initial_done_ = true;
    me->working_ = false;
    if (!me->queue_.empty()) me->Next();
  });
}

void SecretController::Process(const kube::NamespacedName& name) {
  if (log_) log_({.text = fmt::format("processing secret event for secret {}/{}", name.ns, name.name)});
  if (const kube::ObjectRef secret = secrets_.Get(name)) {
    AddSecret(name, *secret);
  } else {
    DeleteSecret(name);
  }
}

void SecretController::Reject(const ClusterId& id, const kube::NamespacedName& secret, std::string_view why) {
  host_.Emit(
      {TraceKind::kClusterRejected, host_.Intern(id.str()), host_.Intern(secret.ns + "/" + secret.name), 0, 0, why});
}

bool SecretController::Registered(const ClusterId& id) const {
  for (const auto& [secret, clusters] : remotes_) {
    if (clusters.count(id) != 0) return true;
  }
  return false;
}

void SecretController::AddSecret(const kube::NamespacedName& name, const kube::Object& secret) {
  const absl::StatusOr<kube::SecretData> data = kube::ReadSecretData(secret);
  if (!data.ok()) return Reject(ClusterId(), name, Message(data.status()));
  std::vector<ClusterId> gone;
  for (const auto& [id, remote] : remotes_[name]) {
    if (data->count(id.str()) == 0) gone.push_back(id);
  }
  for (const ClusterId& id : gone) DeleteCluster(name, id);

  for (const auto& [key, kubeconfig] : *data) {
    const ClusterId id(key);
    if (id == config_cluster_id_) {
      Reject(id, name, "it would replace the config cluster");
      continue;
    }
    const std::string hash = HashOf(kubeconfig);
    std::map<ClusterId, Remote>& mine = remotes_[name];
    const auto previous = mine.find(id);
    const bool update = previous != mine.end();
    if (update) {
      if (previous->second.kubeconfig_hash == hash) continue;
      // The old informers stop before the new kubeconfig is even read.
      if (!profile_.Has(Change::kGracefulSecretUpdate)) {
        previous->second.stopped = true;
        handler_.ClusterStopped(id);
      }
    } else if (Registered(id)) {
      Reject(id, name, "another Secret has registered it");
      continue;
    }
    // istio: pkg/kube/multicluster/secretcontroller.go, addSecret: what was known of the cluster stays.
    const char* const consequence =
        update && !profile_.Has(Change::kGracefulSecretUpdate)
            ? "; the cluster is watched no more, until the Secret holds another kubeconfig than it held before"
            : "";
    const absl::StatusOr<kube::KubeConfig> parsed = kube::ParseKubeConfig(kubeconfig, fmt::format("key {}", key));
    if (!parsed.ok()) {
      Reject(id, name, fmt::format("{}{}", Message(parsed.status()), consequence));
      continue;
    }
    absl::StatusOr<std::unique_ptr<kube::Client>> client = factory_.Connect(key, kubeconfig);
    if (!client.ok()) {
      Reject(id, name, fmt::format("{}{}", Message(client.status()), consequence));
      continue;
    }
    kube::Client& used = **client;
    SayOf(key, name, update ? "Updating cluster" : "Adding cluster");
    host_.Emit({TraceKind::kClusterAdded, trace_name_, host_.Intern(key), update ? 1 : 0, 0, {}});
    if (update) {
      handler_.ClusterUpdated(id, used);
      retired_.push_back(std::move(previous->second.client));
    } else {
      handler_.ClusterAdded(id, used);
    }
    WAVETANK_ASSERT(*client != nullptr, key);
    mine[id] = Remote{*std::move(client), hash, false};
    SayOf(key, name, "finished callback for cluster and starting to sync");
  }
  SayHowMany();
}

void SecretController::DeleteSecret(const kube::NamespacedName& name) {
  const auto it = remotes_.find(name);
  if (it == remotes_.end()) return;
  std::vector<ClusterId> ids;
  for (const auto& [id, remote] : it->second) ids.push_back(id);
  for (const ClusterId& id : ids) DeleteCluster(name, id);
  remotes_.erase(name);
  SayHowMany();
}

void SecretController::DeleteCluster(const kube::NamespacedName& secret, const ClusterId& id) {
  WAVETANK_ASSERT(remotes_[secret].contains(id), secret.ns, secret.name, id.str());
  if (log_) {
    log_({.text = fmt::format("Deleting cluster_id={} configured by secret={}/{}", id.str(), secret.ns, secret.name)});
  }
  Remote& remote = remotes_[secret].at(id);
  host_.Emit({TraceKind::kClusterRemoved, trace_name_, host_.Intern(id.str()), 0, 0, {}});
  handler_.ClusterStopped(id);
  handler_.ClusterDeleted(id);
  retired_.push_back(std::move(remote.client));
  remotes_[secret].erase(id);
}

}  // namespace wavetank::pilot
