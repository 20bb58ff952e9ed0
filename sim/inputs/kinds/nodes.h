// What becomes of nodes, and what an operator does to nodes and workloads with kubectl, where that is more than one
// write of an object.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "core/base/time.h"
#include "sim/inputs/input.h"

namespace wavetank::sim::inputs {

// kubectl rollout restart: the template gets an annotation with the time, so that all pods are made anew. The time is
// that of kubectl's machine: `at`, or as late as it is.
struct RestartWorkload {
  static constexpr std::string_view kKind = "restart";
  std::string cluster, workload_kind, ns, name, at;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

// kubectl cordon, or uncordon.
struct CordonNode {
  static constexpr std::string_view kKind = "cordon";
  std::string cluster, node;
  bool unschedulable = true;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

// kubectl taint; with `remove` the taints of that key and effect go (no effect: of every effect).
struct TaintNode {
  static constexpr std::string_view kKind = "taint";
  std::string cluster, node, key, value, effect;
  bool remove = false;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

// kubectl drain --ignore-daemonsets --delete-emptydir-data: no pod is scheduled there any more, and those that run
// there are evicted. What a PodDisruptionBudget keeps back is asked for again every five seconds, until `timeout`, if
// there is one.
struct DrainNode {
  static constexpr std::string_view kKind = "drain";
  std::string cluster, node;
  Duration timeout{};

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

// A node's machine goes without a goodbye, with all that runs on it; or it is back.
struct SetNode {
  static constexpr std::string_view kKind = "node";
  std::string cluster, node;
  bool lost = true;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

// A gateway is applied to another cluster and deleted from its own: the Deployment and the Service of that name with
// what they need there, its ServiceAccount, and what scales or guards it. Its addresses are then the other cluster's.
struct MoveGateway {
  static constexpr std::string_view kKind = "moveGateway";
  std::string cluster, to, ns, name;

  void Fields(FieldVisitor& visitor);
  // InvalidArgument: there is no such Deployment, or the other cluster has one, or lacks the namespace.
  absl::Status Apply(InputTarget& target) const;
};

// A node's clock is ahead of the world's time by so much; behind, if negative. All that runs there reads it: agents,
// when a certificate is to be renewed; Envoys and istiods, whether one is in force, and how they date what they sign.
struct SetClock {
  static constexpr std::string_view kKind = "clock";
  std::string cluster, node;
  Duration ahead{};

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

}  // namespace wavetank::sim::inputs
