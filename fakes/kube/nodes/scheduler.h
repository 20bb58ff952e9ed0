// Which node a pod goes to: round robin over those that take it, a spread that a person can foresee.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "fakes/kube/control/cluster_options.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

class Scheduler {
 public:
  // All must outlive it.
  Scheduler(const ApiServer& api, const ClusterOptions& options) : api_(api), options_(options) {}

  // A node's name. FailedPrecondition with the scheduler's words ("0/2 nodes are available: ...") if none takes the
  // pod. O(nodes), and O(pods) where the pod or a node says what it asks for.
  absl::StatusOr<std::string> Choose(const kube::Object& pod);

  // Where nobody says which nodes the cluster has: one like its first (or of a zone of its own), if every node is too
  // near to pods that this one wants to be apart from (podAntiAffinity) and that one would take it. Whose mesh such a
  // manifest is has enough of them. Nothing in any other case. O(nodes * pods).
  std::optional<NodeOptions> Another(const kube::Object& pod) const;

 private:
  // The cluster's own first, in their order, then others by name.
  std::vector<ObjectRef> Nodes() const;
  // Why this node has no room for the pod, or is too near to or far from others; "": it has.
  std::string Crowded(const kube::Object& node, const kube::Object& pod) const;

  const ApiServer& api_;
  const ClusterOptions& options_;
  uint64_t next_ = 0;
};

}  // namespace wavetank::fakekube
