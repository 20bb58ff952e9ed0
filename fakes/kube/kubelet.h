// The scheduler and all kubelets: a pod's life from Pending over Running and
// Ready to Terminating and gone.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "fakes/kube/cluster.h"
#include "fakes/kube/ip_pool.h"
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
  // A pod is gone: its address is another's.
  void Gone(const kube::Object& pod);

  ApiServer& api_;
  const ClusterOptions& options_;
  PodRuntime* runtime_;
  PendingWork pending_;
  RandomStream jitter_;
  IpPool ips_;
  std::map<std::string, std::string> held_;                         // uid -> address
  std::vector<std::pair<NamespacedName, std::string>> without_ip_;  // name, uid: wait for an address, in order
  uint64_t scheduled_ = 0;
  std::set<NamespacedName> starting_;  // not ready for the first time yet
};

}  // namespace wavetank::fakekube
