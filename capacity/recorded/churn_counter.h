// What changes in the clusters of a mesh, told apart as a fleet's page does.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "capacity/fleet/fleet.h"
#include "core/base/time.h"
#include "core/kube/object.h"

namespace wavetank::fakekube {
struct Change;
}

namespace wavetank::capacity {

class ChurnCounter {
 public:
  // Kinds of objects whose changes it wants to hear of, as ApiServer::Observe() takes them.
  static const std::vector<std::string>& Kinds();

  // Changes count from now on; those before are how the mesh came to be.
  void Begin(Time at) { begun_ = at; }
  // O(log pods).
  void OnChange(const std::string& cluster, Time at, const fakekube::Change& change);

  // Rates of what was counted until `end`, in the whole mesh; what never happened is zero, what nothing told of keeps
  // its default. Before Begin(): all zero.
  ChurnSpec Spec(Time end) const;
  // What changed besides, and is no churn of fleets: how often, by what it is.
  const std::map<std::string, int64_t>& others() const { return others_; }

 private:
  using PodKey = std::pair<std::string, kube::NamespacedName>;  // cluster first
  struct Pod {
    Time created{};
    bool ready = false, was_ready = false;
  };

  void OnPod(const std::string& cluster, Time at, const fakekube::Change& change);
  void OnWorkload(const fakekube::Change& change);
  void OnNode(const std::string& cluster, const fakekube::Change& change);
  void OnConfiguration(const fakekube::Change& change);
  void OnSecret(const std::string& cluster, const fakekube::Change& change);

  std::optional<Time> begun_;
  std::map<PodKey, Pod> pods_;
  // Of each workload, by cluster, namespace, kind and name: the revisions of its pods' template that were seen.
  std::map<std::string, std::set<std::string>> revisions_;
  std::set<std::pair<std::string, std::string>> lost_nodes_;  // cluster, node
  std::set<std::pair<std::string, kube::NamespacedName>> deleted_secrets_;
  std::set<PodKey> flapped_;
  std::vector<Duration> starts_;  // of pods that came after the beginning
  int64_t deploys_ = 0, turns_ = 0, scalings_ = 0, swing_ppm_ = 0, surges_ = 0, surge_ppm_ = 0, nodes_lost_ = 0,
          edits_ = 0, rotations_ = 0, istiods_gone_ = 0;
  std::map<std::string, int64_t> others_;
};

}  // namespace wavetank::capacity
