// What a recording's clusters are in their mesh, read off the objects that they hold: cluster IDs, networks, who serves
// whom. A replay's world begins with it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/kube/object.h"
#include "sim/world_options.h"

namespace wavetank::record {

// What one cluster's objects tell, read one by one; none is kept.
class ClusterFacts {
 public:
  ClusterFacts(std::string context, std::string system_namespace)
      : context_(std::move(context)), system_namespace_(std::move(system_namespace)) {}

  void Read(const kube::Object& object);

  const std::string& context() const { return context_; }
  std::string Id() const;       // the cluster ID; empty: nothing tells it
  std::string Network() const;  // empty: none
  bool istiod() const { return istiod_; }
  const std::string& istiod_version() const { return istiod_version_; }
  const std::set<std::string>& pod_ips() const { return pod_ips_; }
  const std::set<std::string>& remotes() const { return remotes_; }  // cluster IDs of its remote Secrets

 private:
  void ReadPod(const kube::Object& object);

  std::string context_, system_namespace_;
  std::map<std::string, int> ids_, networks_;  // how many proxies say so
  std::string istiod_id_, label_network_, istiod_version_;
  bool istiod_ = false;
  std::set<std::string> pod_ips_, remotes_;
};

struct MeshFacts {
  sim::WorldOptions world;         // its clusters in that order
  std::vector<std::string> notes;  // what was assumed, and what will differ from the real mesh
};

// `others`: clusters that the world has besides these.
MeshFacts ReadMeshFacts(const std::vector<ClusterFacts>& clusters, const std::set<std::string>& others = {});

}  // namespace wavetank::record
