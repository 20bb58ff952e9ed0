// Deployments and their ReplicaSets: replicas, labels, rolling changes
// (maxSurge, maxUnavailable).
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "fakes/kube/cluster.h"
#include "fakes/kube/pending.h"

namespace wavetank::fakekube {

class DeploymentController {
 public:
  DeploymentController(ApiServer& api, const ClusterOptions& options, PodAdmission* admission);

  bool Settled() const { return pending_.idle(); }

 private:
  void Queue(const NamespacedName& name);
  void QueueReplicaSet(const NamespacedName& name);
  void SyncDeployment(const NamespacedName& name);
  void SyncReplicaSet(const NamespacedName& name);
  // Names of objects by the uid of what controls them.
  using Controlled = std::map<std::string, std::set<NamespacedName>>;
  static void Index(const Change& change, Controlled* index);
  std::vector<ObjectRef> ControlledBy(const kube::Object& owner, const char* kind, const Controlled& index) const;
  // Those on their way out included, by name.
  std::vector<ObjectRef> PodsOf(const kube::Object& replica_set) const {
    return ControlledBy(replica_set, "Pod", pods_of_);
  }
  std::vector<ObjectRef> ReplicaSetsOf(const kube::Object& deployment) const {
    return ControlledBy(deployment, "ReplicaSet", replica_sets_of_);
  }
  int64_t OldPods(const std::vector<ObjectRef>& replica_sets) const;
  void CreatePod(const ObjectRef& replica_set);
  void Admit(nlohmann::json pod, const NamespacedName& replica_set, int attempt);

  ApiServer& api_;
  const ClusterOptions& options_;
  PodAdmission* admission_;
  PendingWork pending_;
  Controlled pods_of_, replica_sets_of_;
  std::map<NamespacedName, bool> queued_, queued_sets_;
  std::map<NamespacedName, uint64_t> ordinals_;       // pods ever created by a ReplicaSet: their names' stream
  std::map<NamespacedName, int64_t> being_admitted_;  // pods that wait for the webhook
};

}  // namespace wavetank::fakekube
