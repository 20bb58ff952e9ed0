// Deployments and their ReplicaSets: replicas, labels, rolling changes (maxSurge, maxUnavailable).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "fakes/kube/control/availability.h"
#include "fakes/kube/control/cluster_options.h"
#include "fakes/kube/control/owned.h"
#include "fakes/kube/control/pending.h"
#include "fakes/kube/control/pod_hooks.h"
#include "fakes/kube/control/pod_maker.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

class DeploymentController {
 public:
  DeploymentController(ApiServer& api, const ClusterOptions& options, PodAdmission* admission);

  bool Settled() const { return pending_.idle(); }
  bool SettledButForPods() const { return pending_.idle_but_for_vain(); }  // but for those that nobody admits

 private:
  struct Rollout;

  void HandOnAnnotations(const NamespacedName& name);
  void SyncDeployment(const NamespacedName& name);
  Rollout Look(const ObjectRef& deployment) const;
  void CreateSet(const Rollout& rollout);
  // Takes from old sets what availability allows.
  void ShrinkOld(const Rollout& rollout);
  void TellScaled(const kube::Object& set, const char* way, const std::string& to);
  void Scale(const ObjectRef& set, int64_t replicas);
  void SyncReplicaSet(const NamespacedName& name);
  void WriteDeploymentStatus(const NamespacedName& name);
  std::vector<ObjectRef> PodsOf(const kube::Object& replica_set) const { return pods_.Of(api_, replica_set, "Pod"); }
  std::vector<ObjectRef> ReplicaSetsOf(const kube::Object& deployment) const {
    return replica_sets_.Of(api_, deployment, "ReplicaSet");
  }
  int64_t OldPods(const std::vector<ObjectRef>& replica_sets) const;
  // Those beyond revisionHistoryLimit that have no pods.
  void DropOldSets(const kube::Object& deployment, const std::string& hash);
  void CreatePod(const ObjectRef& replica_set);

  ApiServer& api_;
  const ClusterOptions& options_;
  PendingWork pending_;
  NameQueue deployments_, annotated_, sets_;
  PodMaker maker_;
  Availability availability_;
  Controlled pods_, replica_sets_;
  std::map<NamespacedName, uint64_t> ordinals_;   // pods ever created by a ReplicaSet: their names' stream
  std::map<NamespacedName, int64_t> being_made_;  // pods that wait for the webhook
  Subscriptions subscriptions_;
};

}  // namespace wavetank::fakekube
