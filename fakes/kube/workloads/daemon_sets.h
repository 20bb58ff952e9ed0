// DaemonSets: a pod on every node that takes it (kubernetes: pkg/controller/daemon).
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fakes/kube/control/availability.h"
#include "fakes/kube/control/cluster_options.h"
#include "fakes/kube/control/owned.h"
#include "fakes/kube/control/pending.h"
#include "fakes/kube/control/pod_hooks.h"
#include "fakes/kube/control/pod_maker.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

class DaemonSetController {
 public:
  DaemonSetController(ApiServer& api, const ClusterOptions& options, PodAdmission* admission);

  bool Settled() const { return pending_.idle(); }
  bool SettledButForPods() const { return pending_.idle_but_for_vain(); }  // but for those that nobody admits

 private:
  struct NodePods {
    bool takes_it = false;              // the node, this DaemonSet's pods
    std::vector<ObjectRef> old, fresh;  // by template; none that is going
  };
  using Nodes = std::map<std::string, NodePods>;  // by node

  void Sync(const NamespacedName& name);
  bool AnyAvailable(const std::vector<ObjectRef>& pods, Duration min_ready) const;
  void Replace(const kube::Object& set, const Nodes& nodes);
  void Create(const kube::Object& set, const std::string& node);
  void WriteStatus(const kube::Object& set, const Nodes& nodes);
  void Delete(const kube::Object& set, const std::vector<ObjectRef>& pods);

  ApiServer& api_;
  const ClusterOptions& options_;
  PendingWork pending_;
  NameQueue queue_;
  PodMaker maker_;
  Availability availability_;
  Controlled pods_;
  std::map<NamespacedName, uint64_t> made_;                      // pods ever: their names' stream
  std::set<std::pair<NamespacedName, std::string>> being_made_;  // and the node that the pod is for
  Subscriptions subscriptions_;
};

}  // namespace wavetank::fakekube
