// ReplicationControllers: as many pods as they want (kubernetes: pkg/controller/replication, which is that of
// ReplicaSets on the older kind).
#pragma once

#include <map>
#include <vector>

#include "fakes/kube/control/availability.h"
#include "fakes/kube/control/cluster_options.h"
#include "fakes/kube/control/controller.h"
#include "fakes/kube/control/owned.h"
#include "fakes/kube/control/pending.h"
#include "fakes/kube/control/pod_hooks.h"
#include "fakes/kube/control/pod_maker.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

class ReplicationManager final : public Controller {
 public:
  ReplicationManager(ApiServer& api, const ClusterOptions& options, PodAdmission* admission);

  bool Settled() const override { return pending_.idle(); }

 private:
  void Sync(const NamespacedName& name);
  // Pods that nobody controls and that its selector takes become its own; its own that it no longer takes are let go.
  void Claim(const kube::Object& controller);
  void Create(const ObjectRef& controller);
  void DeleteBeyond(const kube::Object& controller, std::vector<ObjectRef> pods, int64_t wanted);
  void WriteStatus(const kube::Object& controller, const std::vector<ObjectRef>& pods);

  ApiServer& api_;
  const ClusterOptions& options_;
  PendingWork pending_;
  NameQueue queue_;
  PodMaker maker_;
  Availability availability_;
  Controlled pods_;
  std::map<NamespacedName, uint64_t> ordinals_;   // pods ever: their names' stream
  std::map<NamespacedName, int64_t> being_made_;  // pods that wait for the webhook
  Subscriptions subscriptions_;
};

}  // namespace wavetank::fakekube
