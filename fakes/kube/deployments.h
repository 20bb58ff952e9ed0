// Deployments and their ReplicaSets: replicas, labels, rolling changes (maxSurge, maxUnavailable).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "fakes/kube/cluster.h"
#include "fakes/kube/owned.h"
#include "fakes/kube/pending.h"
#include "fakes/kube/pod_maker.h"

namespace wavetank::fakekube {

class DeploymentController {
 public:
  DeploymentController(ApiServer& api, const ClusterOptions& options, PodAdmission* admission);

  bool Settled() const { return pending_.idle(); }

 private:
  void HandOnAnnotations(const NamespacedName& name);
  void SyncDeployment(const NamespacedName& name);
  void SyncReplicaSet(const NamespacedName& name);
  std::vector<ObjectRef> PodsOf(const kube::Object& replica_set) const { return pods_.Of(api_, replica_set, "Pod"); }
  std::vector<ObjectRef> ReplicaSetsOf(const kube::Object& deployment) const {
    return replica_sets_.Of(api_, deployment, "ReplicaSet");
  }
  int64_t OldPods(const std::vector<ObjectRef>& replica_sets) const;
  void CreatePod(const ObjectRef& replica_set);

  ApiServer& api_;
  const ClusterOptions& options_;
  PendingWork pending_;
  NameQueue deployments_, annotated_, sets_;
  PodMaker maker_;
  Controlled pods_, replica_sets_;
  std::map<NamespacedName, uint64_t> ordinals_;   // pods ever created by a ReplicaSet: their names' stream
  std::map<NamespacedName, int64_t> being_made_;  // pods that wait for the webhook
};

}  // namespace wavetank::fakekube
