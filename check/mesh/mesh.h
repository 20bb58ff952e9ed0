// A mesh brought to rest, to be looked at: its clusters with their objects and where those were written, what istiod
// makes of them, and its proxies. Rules read it; nothing here changes it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "check/mesh/source.h"
#include "core/config/store/store.h"
#include "core/istiod/istiod.h"
#include "core/kube/object.h"
#include "core/push/push_context.h"
#include "sim/world.h"

namespace wavetank::check {

// Of an object. No file: no manifest brought it (an installation did, a controller, a log).
struct Place {
  std::string file;
  int line = 0;
};

struct MeshCluster {
  std::string name;
  std::string network;                            // physical, its site: pods of one reach each other
  std::string label;                              // topology.istio.io/network of its system namespace; empty without
  std::string system_namespace = "istio-system";  // where its control plane is installed
  // Whose policies hold in all namespaces (meshConfig.rootNamespace); of a cluster without an istiod the former.
  std::string root_namespace = "istio-system";
  std::string control_plane;  // the cluster whose istiod serves its proxies
  bool primary = true;
  bool recorded = false;            // what is not in it may be there: who recorded it had not the right to see it
  config::ConfigStore configs;      // parsed configuration that stands in this cluster
  pilot::Istiod* istiod = nullptr;  // that serves its proxies; null: none runs
  pilot::PushContextRef push;       // of that istiod; null without one
};

class Mesh {
 public:
  explicit Mesh(SettledMesh settled);
  ~Mesh();

  const scenario::Scenario& scenario() const { return settled_.scenario; }
  sim::World& world() const { return *settled_.world; }
  // What its manifests held that has no effect, what was assumed, what does not come up.
  const std::vector<std::string>& notes() const { return settled_.notes; }
  const std::vector<BroughtObject>& brought() const { return settled_.brought; }
  const std::vector<RefusedObject>& refused() const { return settled_.refused; }
  const std::vector<BroughtObject>& operators() const { return settled_.operators; }
  const std::vector<sim::inputs::StartTraffic>& traffic() const { return settled_.traffic; }

  const std::vector<std::unique_ptr<MeshCluster>>& clusters() const { return clusters_; }
  const MeshCluster* Find(std::string_view cluster) const;  // null: there is none
  // Whether some cluster's control plane is there.
  bool HoldsControlPlane(std::string_view ns) const;
  // As the cluster's API server has them now. `kind` as fakes/kube reads it: "Service", "Gateway.networking.istio.io".
  std::vector<kube::ObjectRef> List(const MeshCluster& cluster, std::string_view kind, std::string_view ns = {}) const;
  kube::ObjectRef Get(const MeshCluster& cluster, std::string_view kind, std::string_view ns,
                      std::string_view name) const;  // null
  Place Where(std::string_view cluster, const kube::Object& object) const;

  // Pods that run in the cluster; and in all clusters whose proxies its istiod serves.
  std::vector<const sim::PodProcess*> Pods(const MeshCluster& cluster) const;
  std::vector<const sim::PodProcess*> ServedPods(const MeshCluster& cluster) const;

 private:
  SettledMesh settled_;
  std::vector<std::unique_ptr<MeshCluster>> clusters_;
  std::map<std::string, Place> places_;
};

// "Kind namespace/name".
std::string NameOf(const kube::Object& object);
std::string NameOf(const BroughtObject& brought);

}  // namespace wavetank::check
