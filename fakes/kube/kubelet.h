// The scheduler and all kubelets: a pod's life from Pending over Running and Ready to Terminating and gone.
#pragma once

#include <map>
#include <set>
#include <string>

#include "core/base/random.h"
#include "fakes/kube/cluster.h"
#include "fakes/kube/pending.h"

namespace wavetank::fakekube {

class Kubelet {
 public:
  Kubelet(ApiServer& api, const ClusterOptions& options, PodRuntime* runtime);

  bool Settled() const { return pending_.idle() && starting_.empty(); }

 private:
  void Schedule(const NamespacedName& pod);
  void Run(const NamespacedName& pod, const std::string& uid);
  void SetReady(const NamespacedName& pod, const std::string& uid, bool ready);
  void Terminate(const ObjectRef& pod);
  std::string AllocateIp(std::string_view key);

  ApiServer& api_;
  const ClusterOptions& options_;
  PodRuntime* runtime_;
  PendingWork pending_;
  RandomStream jitter_;
  std::set<std::string> used_ips_;
  uint64_t scheduled_ = 0;
  std::set<NamespacedName> starting_;  // not ready for the first time yet
};

}  // namespace wavetank::fakekube
