// The node lifecycle controller: what becomes of a node, and of the pods on it, when its kubelet is not heard of.
//
// kubernetes: pkg/controller/nodelifecycle/node_lifecycle_controller.go (node-monitor-grace-period) and
// pkg/controller/tainteviction (tolerationSeconds; 300 by the admission plugin DefaultTolerationSeconds).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "fakes/kube/control/pending.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

class NodeLifecycle {
 public:
  explicit NodeLifecycle(ApiServer& api) : api_(api), pending_(api.host()) {}

  // The kubelet's last heartbeat. After the grace period the node is not ready (Unknown) and has the taints
  // node.kubernetes.io/unreachable, and its pods are not ready; those that do not tolerate that for ever are deleted
  // when their toleration is over, and stay Terminating, since no kubelet ends them.
  void Silent(const std::string& node);
  // The kubelet is heard of again: the node is ready, and the taints go.
  void Heard(const std::string& node);

  bool Settled() const { return pending_.idle(); }

 private:
  void NotReady(const std::string& node, int64_t silence);
  void Evict(const kube::Object& pod, const std::string& node, int64_t silence);
  bool StillSilent(const std::string& node, int64_t silence) const;

  ApiServer& api_;
  PendingWork pending_;
  std::map<std::string, int64_t> silent_;  // nodes, by the number of their silence
  int64_t silences_ = 0;
};

}  // namespace wavetank::fakekube
