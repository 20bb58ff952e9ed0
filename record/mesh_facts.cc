#include "record/mesh_facts.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/json_access.h"
#include "core/kube/secret.h"
#include "core/kube/types.h"
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

struct Facts {
  std::string id, network;
  std::string istiod_version;
  bool istiod = false;
  std::set<std::string> pod_ips;
  std::set<std::string> remotes;  // cluster IDs of its remote Secrets
};

Facts Read(const ClusterSnapshot& cluster, const std::string& system_namespace) {
  Facts facts;
  std::map<std::string, int> ids, networks;
  std::string istiod_id, label_network;
  for (const kube::ObjectRef& object : cluster.objects) {
    if (object->api_version != "v1") continue;
    if (object->kind == "Namespace" && object->meta.name == system_namespace) {
      label_network = LabelOf(*object, "topology.istio.io/network");
    } else if (object->kind == "Secret" && object->meta.ns == system_namespace &&
               LabelOf(*object, security::kMultiClusterLabel) == "true") {
      if (const auto data = kube::ReadSecretData(*object); data.ok()) {
        for (const auto& [name, kubeconfig] : *data) facts.remotes.insert(name);
      }
    } else if (object->kind == "Pod") {
      const kube::Pod& pod = kube::ParsePod(*object);
      if (!pod.ip.empty() && !pod.host_network && pod.phase == "Running") facts.pod_ips.insert(pod.ip);
      const json& proxy = Container(*object, "istio-proxy");
      if (const std::string id = Variable(proxy, "ISTIO_META_CLUSTER_ID"); !id.empty()) ++ids[id];
      if (const std::string network = Variable(proxy, "ISTIO_META_NETWORK"); !network.empty()) ++networks[network];
      if (object->meta.ns == system_namespace && LabelOf(*object, "app") == "istiod" && pod.phase == "Running") {
        const json& discovery = Container(*object, "discovery");
        facts.istiod = true;
        if (const std::string id = Variable(discovery, "CLUSTER_ID"); !id.empty()) istiod_id = id;
        const std::string image = Text(discovery, "image");
        if (const size_t tag = image.rfind(':'); tag != image.npos && image.find('/', tag) == image.npos) {
          facts.istiod_version = image.substr(tag + 1);
        }
      }
    }
  }
  facts.id = !istiod_id.empty() ? istiod_id : MostFrequent(ids);
  facts.network = !label_network.empty() ? label_network : MostFrequent(networks);
  return facts;
}

}  // namespace

MeshFacts ReadMeshFacts(const std::vector<ClusterSnapshot>& clusters, const std::string& system_namespace,
                        const std::set<std::string>& others) {
  MeshFacts out;
  std::vector<Facts> all;
  std::set<std::string> taken;
  for (const ClusterSnapshot& cluster : clusters) {
    Facts facts = Read(cluster, system_namespace);
    if (facts.id.empty()) {
      facts.id = cluster.context;
      out.notes.push_back(fmt::format("context {}: nothing in it tells its cluster ID; it is called after its context",
                                      cluster.context));
    } else if (taken.contains(facts.id)) {
      out.notes.push_back(
          fmt::format("context {}: its cluster ID is '{}', as another's; its proxies will name it wrongly",
                      cluster.context, facts.id));
      facts.id = cluster.context;
    }
    for (int i = 2; !taken.insert(facts.id).second; ++i) facts.id = fmt::format("{}-{}", cluster.context, i);
    all.push_back(std::move(facts));
  }
  // Clusters that share a flat network share no pod's address.
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].network.empty()) all[i].network = "default";
    for (size_t j = 0; j < i; ++j) {
      if (all[i].network != all[j].network) continue;
      const auto shared = std::find_if(all[i].pod_ips.begin(), all[i].pod_ips.end(),
                                       [&](const std::string& ip) { return all[j].pod_ips.contains(ip); });
      if (shared == all[i].pod_ips.end()) continue;
      out.notes.push_back(
          fmt::format("clusters {} and {} claim one network ('{}') and both have a pod {}: they are simulated without "
                      "a way between "
                      "their pods",
                      all[j].id, all[i].id, all[i].network, *shared));
      all[i].network += "/" + all[i].id;
      break;
    }
  }
  const auto first_primary = std::find_if(all.begin(), all.end(), [](const Facts& f) { return f.istiod; });
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
    if (!facts.istiod && first_primary != all.end()) {
      // Whoever holds a Secret for it serves it.
      cluster.control_plane = first_primary->id;
      for (const Facts& candidate : all) {
        if (candidate.istiod && candidate.remotes.contains(facts.id)) {
          cluster.control_plane = candidate.id;
          break;
        }
      }
    }
    if (!facts.istiod_version.empty() &&
        pilot::MinorOf(facts.istiod_version) != pilot::MinorOf(pilot::Profile().istio)) {
      out.notes.push_back(fmt::format("cluster {}: its istiod is {}, and is simulated as {}", facts.id,
                                      facts.istiod_version, out.world.profile));
    }
    for (const std::string& remote : facts.remotes) {
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
