#include "record/mesh_facts.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/json_access.h"
#include "core/kube/secret.h"
#include "core/kube/types.h"
#include "core/profile/image_release.h"
#include "core/profile/profile.h"
#include "core/profile/releases.h"
#include "core/security/remote_secret.h"
#include "fmt/format.h"

namespace wavetank::record {
namespace {

using nlohmann::json;

const json& Container(const kube::Object& pod, std::string_view name) {
  static const json* const kNull = new json();
  for (const char* list : {"containers", "initContainers"}) {  // where a native sidecar stands
    for (const json& container : Items(At(At(pod.body, "spec"), list))) {
      if (Text(container, "name") == name) return container;
    }
  }
  return *kNull;
}

std::string Variable(const json& container, std::string_view name) {
  for (const json& variable : At(container, "env")) {
    if (Text(variable, "name") == name) return Text(variable, "value");
  }
  return {};
}

std::string LabelOf(const kube::Object& object, std::string_view name) {
  const auto it = object.meta.labels.find(name);
  return it == object.meta.labels.end() ? std::string() : it->second;
}

// The most frequent; the first of several in order of name.
std::string MostFrequent(const std::map<std::string, int>& counts) {
  std::string best;
  int most = 0;
  for (const auto& [name, count] : counts) {
    if (count > most) best = name, most = count;
  }
  return best;
}

// What each cluster is taken to be.
struct Facts {
  std::string id, network;
  const ClusterFacts* told = nullptr;
};

}  // namespace

void ClusterFacts::Read(const kube::Object& object) {
  if (object.api_version != "v1") return;
  if (object.kind == "Namespace" && object.meta.name == system_namespace_) {
    label_network_ = LabelOf(object, "topology.istio.io/network");
  } else if (object.kind == "Secret" && object.meta.ns == system_namespace_ &&
             LabelOf(object, security::kMultiClusterLabel) == "true") {
    if (const auto data = kube::ReadSecretData(object); data.ok()) {
      for (const auto& [name, kubeconfig] : *data) remotes_.insert(name);
    }
  } else if (object.kind == "Pod") {
    ReadPod(object);
  }
}

void ClusterFacts::ReadPod(const kube::Object& object) {
  const kube::Pod& pod = kube::ParsePod(object);
  if (!pod.ip.empty() && !pod.host_network && pod.phase == "Running") pod_ips_.insert(pod.ip);
  const json& proxy = Container(object, "istio-proxy");
  if (const std::string id = Variable(proxy, "ISTIO_META_CLUSTER_ID"); !id.empty()) ++ids_[id];
  if (const std::string network = Variable(proxy, "ISTIO_META_NETWORK"); !network.empty()) ++networks_[network];
  if (object.meta.ns != system_namespace_ || LabelOf(object, "app") != "istiod" || pod.phase != "Running") return;
  const json& discovery = Container(object, "discovery");
  istiod_ = true;
  if (const std::string id = Variable(discovery, "CLUSTER_ID"); !id.empty()) istiod_id_ = id;
  istiod_version_ = pilot::TagOf(Text(discovery, "image"));
}

std::string ClusterFacts::Id() const { return !istiod_id_.empty() ? istiod_id_ : MostFrequent(ids_); }

std::string ClusterFacts::Network() const { return !label_network_.empty() ? label_network_ : MostFrequent(networks_); }

MeshFacts ReadMeshFacts(const std::vector<ClusterFacts>& clusters, const std::set<std::string>& others) {
  MeshFacts out;
  std::vector<Facts> all;
  std::set<std::string> taken;
  for (const ClusterFacts& cluster : clusters) {
    Facts facts{cluster.Id(), cluster.Network(), &cluster};
    if (facts.id.empty()) {
      facts.id = cluster.context();
      out.notes.push_back(fmt::format("context {}: nothing in it tells its cluster ID; it is called after its context",
                                      cluster.context()));
    } else if (taken.contains(facts.id)) {
      out.notes.push_back(
          fmt::format("context {}: its cluster ID is '{}', as another's; its proxies will name it wrongly",
                      cluster.context(), facts.id));
      facts.id = cluster.context();
    }
    for (int i = 2; !taken.insert(facts.id).second; ++i) facts.id = fmt::format("{}-{}", cluster.context(), i);
    all.push_back(std::move(facts));
  }
  // Clusters that share a flat network share no pod's address.
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].network.empty()) all[i].network = "default";
    for (size_t j = 0; j < i; ++j) {
      if (all[i].network != all[j].network) continue;
      const std::set<std::string>&ours = all[i].told->pod_ips(), &theirs = all[j].told->pod_ips();
      const auto shared =
          std::find_if(ours.begin(), ours.end(), [&](const std::string& ip) { return theirs.contains(ip); });
      if (shared == ours.end()) continue;
      out.notes.push_back(
          fmt::format("clusters {} and {} claim one network ('{}') and both have a pod {}: they are simulated without "
                      "a way between "
                      "their pods",
                      all[j].id, all[i].id, all[i].network, *shared));
      all[i].network += "/" + all[i].id;
      break;
    }
  }
  const auto first_primary = std::find_if(all.begin(), all.end(), [](const Facts& f) { return f.told->istiod(); });
  if (first_primary == all.end()) out.notes.push_back("no istiod runs in any of the clusters: no proxy will be served");
  for (const Facts& facts : all) {
    sim::WorldCluster cluster;
    cluster.name = facts.id;
    cluster.network = facts.network;
    cluster.observed = true;
    cluster.pod_cidr = "10.1.0.0/16";
    cluster.service_cidr = "10.96.0.0/16";
    cluster.load_balancer_cidr = "172.30.1.0/24";
    cluster.control_plane = facts.id;
    if (!facts.told->istiod() && first_primary != all.end()) {
      // Whoever holds a Secret for it serves it.
      cluster.control_plane = first_primary->id;
      for (const Facts& candidate : all) {
        if (candidate.told->istiod() && candidate.told->remotes().contains(facts.id)) {
          cluster.control_plane = candidate.id;
          break;
        }
      }
    }
    const std::string& version = facts.told->istiod_version();
    if (!version.empty() && pilot::MinorOf(version) != pilot::MinorOf(pilot::Profile().istio)) {
      out.notes.push_back(
          fmt::format("cluster {}: its istiod is {}, and is simulated as {}", facts.id, version, out.world.profile));
    }
    for (const std::string& remote : facts.told->remotes()) {
      if (others.contains(remote)) continue;
      if (std::none_of(all.begin(), all.end(), [&](const Facts& f) { return f.id == remote; })) {
        out.notes.push_back(
            fmt::format("cluster {} has a remote Secret for '{}', which is not recorded: it will be out of reach",
                        facts.id, remote));
      }
    }
    out.world.clusters.push_back(std::move(cluster));
  }
  return out;
}

}  // namespace wavetank::record
