// The scheduler and all kubelets: a pod's life from Pending over Running and
// Ready to Terminating and gone.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "fakes/kube/control/cluster_options.h"
#include "fakes/kube/control/pending.h"
#include "fakes/kube/control/pod_hooks.h"
#include "fakes/kube/nodes/container_run.h"
#include "fakes/kube/nodes/pod_events.h"
#include "fakes/kube/nodes/scheduler.h"
#include "fakes/kube/store/api_server.h"
#include "fakes/kube/store/ip_pool.h"

namespace wavetank::fakekube {

class Kubelet {
 public:
  Kubelet(ApiServer& api, const ClusterOptions& options, PodRuntime* runtime);

  bool Settled() const { return Idle() && starting_.empty(); }
  // It has nothing to do itself: pods that are not ready yet wait for what runs in them.
  bool Idle() const { return pending_.idle(); }

  // The readiness of a pod that runs already, as its process tells it.
  void Hear(const NamespacedName& pod, const std::string& uid, bool ready);

  // A node's machine is gone, with what runs on it; its pods' objects stay as they are, since its kubelet says nothing.
  void Lose(const std::string& node);
  // It is back: its pods start again, and those that were deleted meanwhile end.
  void Return(const std::string& node);

 private:
  void Schedule(const NamespacedName& pod);
  // Pods that no node took are looked at again.
  void ScheduleWaiting();
  void OnNode(const Change& change);
  void Run(const NamespacedName& pod, const std::string& uid);
  void SetReady(const NamespacedName& pod, const std::string& uid, bool ready);
  // Its containers end by themselves, those of the pod's `sandbox`th one, and are started again if that failed and
  // their policy is OnFailure.
  void End(const NamespacedName& pod, const std::string& uid, const ContainerRun& run, int64_t sandbox);
  // Tells of ephemeral containers that somebody has added.
  void RunEphemeral(const NamespacedName& pod, const std::string& uid);
  void Terminate(const ObjectRef& pod);
  // It was there before this kubelet, and runs.
  void Adopt(const ObjectRef& pod);
  // The addresses that its status names, if nobody has them, else others: one of each of the cluster's IP families.
  absl::StatusOr<std::vector<std::string>> AddressesFor(const kube::Object& pod);
  void Give(const std::vector<std::string>& addresses);  // back
  bool OnLostNode(const kube::Object& pod) const;
  // A pod is gone: its address is another's.
  void Gone(const kube::Object& pod);

  ApiServer& api_;
  const ClusterOptions& options_;
  PodRuntime* runtime_;
  PendingWork pending_;
  PendingWork runs_;  // of containers, which a settled cluster may have
  RandomStream jitter_;
  std::vector<IpPool> ips_;                                         // by IP family, the cluster's first one first
  std::map<std::string, std::vector<std::string>> held_;            // uid -> addresses
  std::map<std::string, int64_t> sandboxes_;                        // uid -> how many it has had, if containers end
  std::vector<std::pair<NamespacedName, std::string>> without_ip_;  // name, uid: wait for an address, in order
  Scheduler scheduler_;
  std::set<NamespacedName> unschedulable_;  // until a node changes or a pod goes
  std::set<NamespacedName> starting_;       // not ready for the first time yet
  std::set<std::string> lost_;              // nodes
  NodeImages images_;                       // for Events alone
  Subscriptions subscriptions_;
};

}  // namespace wavetank::fakekube
