#include "check/game_day/failure.h"

#include <map>
#include <set>

#include "check/rules/look.h"
#include "core/kube/types.h"
#include "core/model/labels.h"
#include "fmt/format.h"
#include "sim/inputs/kinds/api_server.h"
#include "sim/inputs/kinds/install.h"
#include "sim/inputs/kinds/network.h"
#include "sim/inputs/kinds/nodes.h"
#include "sim/inputs/kinds/objects.h"
#include "sim/inputs/kinds/web.h"

namespace wavetank::check {
namespace {

using kube::NamespacedName;
using nlohmann::json;

struct PodName {
  std::string cluster;
  NamespacedName name;
};

// At once, whatever their grace period. What is gone already is no error.
absl::Status KillPods(sim::World& world, const std::vector<PodName>& pods) {
  for (const PodName& pod : pods) world.cluster(pod.cluster).api().Finalize("Pod", pod.name).IgnoreError();
  return absl::OkStatus();
}

PodName NameOf(const sim::PodProcess& pod) { return {pod.site().name, {pod.pod()->meta.ns, pod.pod()->meta.name}}; }

void AddPods(const Mesh& mesh, std::vector<Failure>* out) {
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& object : mesh.List(*cluster, "Pod")) {
      const PodName pod{cluster->name, {object->meta.ns, object->meta.name}};
      out->push_back({"pod", fmt::format("{}.{}@{}", object->meta.name, object->meta.ns, cluster->name),
                      [pod](sim::World& world) { return KillPods(world, {pod}); }});
    }
  }
}

// What a node takes with it.
struct Loss {
  std::vector<PodName> pods;
  std::set<std::pair<std::string, std::string>> nodes;  // cluster, node
};

// The machines go; in a recording, whose nodes do nothing here, their pods alone.
absl::Status LoseNodes(sim::World& world, const Loss& loss) {
  for (const auto& [cluster, node] : loss.nodes) {
    if (!world.Do(sim::inputs::SetNode{cluster, node, true}).ok()) return KillPods(world, loss.pods);
  }
  return absl::OkStatus();
}

// kubernetes: node-monitor-grace-period (40 s until its pods are not ready), and then some.
constexpr Duration kNodeHorizon = 60s;

// Pods by node, and by zone of their nodes.
void AddNodesAndZones(const Mesh& mesh, std::vector<Failure>* out) {
  std::map<std::string, Loss> nodes, zones;
  for (const auto& cluster : mesh.clusters()) {
    std::map<std::string, std::string> zone_of;
    for (const kube::ObjectRef& node : mesh.List(*cluster, "Node")) {
      const auto zone = node->meta.labels.find(pilot::kZoneLabel);
      zone_of[node->meta.name] = zone == node->meta.labels.end() ? "" : zone->second;
    }
    for (const kube::ObjectRef& object : mesh.List(*cluster, "Pod")) {
      const std::string& node = kube::ParsePod(*object).node_name;
      if (node.empty()) continue;
      const PodName pod{cluster->name, {object->meta.ns, object->meta.name}};
      std::vector<Loss*> at{&nodes[fmt::format("{}@{}", node, cluster->name)]};
      if (!zone_of[node].empty()) at.push_back(&zones[fmt::format("{}@{}", zone_of[node], cluster->name)]);
      for (Loss* loss : at) {
        loss->pods.push_back(pod);
        loss->nodes.emplace(cluster->name, node);
      }
    }
  }
  for (const auto& [kind, places] : {std::pair("node", &nodes), std::pair("zone", &zones)}) {
    for (const auto& [name, loss] : *places) {
      out->push_back({kind, name, [loss = loss](sim::World& world) { return LoseNodes(world, loss); }, kNodeHorizon});
    }
  }
}

// The workload stays away: its Deployment wants none, and its pods die.
Failure WorkloadGone(const Mesh& mesh, const MeshCluster& cluster, const std::string& kind,
                     const kube::Object& deployment) {
  std::vector<PodName> pods;
  const json& selector = deployment.body["spec"].value("selector", json::object()).value("matchLabels", json::object());
  for (const kube::ObjectRef& pod : mesh.List(cluster, "Pod", deployment.meta.ns)) {
    bool selected = !selector.empty();
    for (const auto& [key, value] : selector.items()) {
      const auto it = pod->meta.labels.find(key);
      selected = selected && it != pod->meta.labels.end() && value == it->second;
    }
    if (selected) pods.push_back({cluster.name, {pod->meta.ns, pod->meta.name}});
  }
  const sim::Input scale = sim::inputs::PatchObject{
      cluster.name, "Deployment", deployment.meta.ns, deployment.meta.name, {{"spec", {{"replicas", 0}}}}};
  return {kind, fmt::format("{}.{}@{}", deployment.meta.name, deployment.meta.ns, cluster.name),
          [scale, pods](sim::World& world) {
            if (absl::Status status = world.Do(scale); !status.ok()) return status;
            return KillPods(world, pods);
          }};
}

void AddGatewaysAndIstiods(const Mesh& mesh, std::vector<Failure>* out) {
  for (const auto& cluster : mesh.clusters()) {
    std::set<std::string> owners;  // Deployments, by their pods' names
    for (const kube::ObjectRef& deployment : mesh.List(*cluster, "Deployment")) {
      const json labels = deployment->body["spec"]
                              .value("template", json::object())
                              .value("metadata", json::object())
                              .value("labels", json::object());
      if (labels.value("app", "") == "istiod") {
        out->push_back(WorkloadGone(mesh, *cluster, "istiod", *deployment));
        continue;
      }
      for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
        const bool its = pod->router() && pod->pod()->meta.ns == deployment->meta.ns &&
                         pod->pod()->meta.name.starts_with(deployment->meta.name + "-");
        if (its && owners.insert(deployment->meta.ns + "/" + deployment->meta.name).second)
          out->push_back(WorkloadGone(mesh, *cluster, "gateway", *deployment));
      }
    }
  }
}

void AddAddressesAndNames(const Mesh& mesh, std::vector<Failure>* out) {
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& object : mesh.List(*cluster, "Service")) {
      const kube::Service& service = kube::ParseService(*object);
      if (service.type != "LoadBalancer" || service.ingress.empty()) continue;
      const sim::Input input = sim::inputs::SetLoadBalancer{cluster->name, object->meta.ns, object->meta.name, "none"};
      out->push_back({"gateway address", fmt::format("{}.{}@{}", object->meta.name, object->meta.ns, cluster->name),
                      [input](sim::World& world) { return world.Do(input); }});
      for (const auto& ingress : service.ingress) {
        if (ingress.hostname.empty()) continue;
        const sim::Input dns = sim::inputs::SetDns{ingress.hostname, {}};
        out->push_back({"DNS name", ingress.hostname, [dns](sim::World& world) { return world.Do(dns); }});
      }
    }
  }
}

// Names outside of clusters that proxies resolve: those of ServiceEntries.
void AddNames(const Mesh& mesh, std::vector<Failure>* out) {
  std::set<std::string> names;
  for (const auto& cluster : mesh.clusters()) {
    for (const config::ServiceEntryRef& entry : cluster->configs.ServiceEntries()) {
      using Resolution = config::ServiceEntry::Resolution;
      const config::ServiceEntry& spec = entry->spec;
      if (spec.resolution != Resolution::kDns && spec.resolution != Resolution::kDnsRoundRobin) continue;
      for (const auto& endpoint : spec.endpoints) names.insert(endpoint.address);
      if (spec.endpoints.empty()) names.insert(spec.hosts.begin(), spec.hosts.end());
    }
  }
  for (const std::string& name : names) {
    // One that nobody resolves cannot fail any more.
    if (IsIpAddress(name) || !mesh.world().commons().dns.Resolve(name).ok()) continue;
    const sim::Input dns = sim::inputs::SetDns{name, {}};
    out->push_back({"DNS name", name, [dns](sim::World& world) { return world.Do(dns); }});
  }
}

// Between physical sites, where they are apart from networks.
void AddRoutes(const Mesh& mesh, std::vector<Failure>* out) {
  if (mesh.world().options().sites.empty()) return;
  const std::vector<std::string> sites = mesh.world().commons().network->underlay()->site_names();
  for (size_t i = 0; i < sites.size(); ++i) {
    for (size_t j = i + 1; j < sites.size(); ++j) {
      const sim::Input there = sim::inputs::SetRoute{sites[i], sites[j], {}, true},
                       back = sim::inputs::SetRoute{sites[j], sites[i], {}, true};
      out->push_back({"route", fmt::format("between {} and {}", sites[i], sites[j]), [there, back](sim::World& world) {
                        if (absl::Status status = world.Do(there); !status.ok()) return status;
                        return world.Do(back);
                      }});
    }
  }
}

sim::Input Unreachable(const std::string& cluster) {
  sim::inputs::FailApiServer fault;
  fault.cluster = cluster;
  fault.fault = "unreachable";
  return fault;
}

void AddApiServersAndSecrets(const Mesh& mesh, std::vector<Failure>* out) {
  for (const auto& cluster : mesh.clusters()) {
    const sim::Input down = Unreachable(cluster->name);
    out->push_back({"API server", cluster->name, [down](sim::World& world) { return world.Do(down); }});
    for (const kube::ObjectRef& secret : mesh.List(*cluster, "Secret", cluster->system_namespace)) {
      if (!IsRemoteSecret(*cluster, *secret)) continue;
      const sim::Input gone = sim::inputs::DeleteObject{cluster->name, "Secret", secret->meta.ns, secret->meta.name};
      out->push_back({"remote Secret", fmt::format("{}@{}", secret->meta.name, cluster->name),
                      [gone](sim::World& world) { return world.Do(gone); }});
    }
  }
}

sim::Input Cut(const std::string& a, const std::string& b) {
  sim::inputs::SetLink link;
  link.between = {a, b};
  link.cut = true;
  return link;
}

void AddLinksAndClusters(const Mesh& mesh, std::vector<Failure>* out) {
  const auto& clusters = mesh.clusters();
  for (size_t i = 0; i < clusters.size(); ++i) {
    for (size_t j = i + 1; j < clusters.size(); ++j) {
      const sim::Input cut = Cut(clusters[i]->name, clusters[j]->name);
      out->push_back({"link", fmt::format("{} to {}", clusters[i]->name, clusters[j]->name),
                      [cut](sim::World& world) { return world.Do(cut); }});
    }
  }
  if (clusters.size() < 2) return;
  for (const auto& cluster : clusters) {
    std::vector<sim::Input> cuts{Unreachable(cluster->name)};
    for (const auto& other : clusters) {
      if (other != cluster) cuts.push_back(Cut(cluster->name, other->name));
    }
    std::vector<std::function<absl::Status(sim::World&)>> gone;
    for (const kube::ObjectRef& deployment : mesh.List(*cluster, "Deployment"))
      gone.push_back(WorkloadGone(mesh, *cluster, "", *deployment).happen);
    out->push_back({"cluster", cluster->name, [cuts, gone](sim::World& world) {
                      for (const sim::Input& input : cuts) {
                        if (absl::Status status = world.Do(input); !status.ok()) return status;
                      }
                      for (const auto& each : gone) {
                        if (absl::Status status = each(world); !status.ok()) return status;
                      }
                      return absl::OkStatus();
                    }});
  }
}

void AddRoots(const Mesh& mesh, std::vector<Failure>* out) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || mesh.Get(*cluster, "Secret", cluster->system_namespace, "cacerts") == nullptr) continue;
    const sim::Input root = sim::inputs::PlugInCa{cluster->name, "another root of " + cluster->name};
    std::vector<PodName> pods;
    for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
      if (pod->app() == "istiod") pods.push_back(NameOf(*pod));
    }
    // A CA that is mounted again is read by an istiod that starts.
    out->push_back({"root certificate", cluster->name, [root, pods](sim::World& world) {
                      if (absl::Status status = world.Do(root); !status.ok()) return status;
                      return KillPods(world, pods);
                    }});
  }
}

}  // namespace

std::vector<Failure> SingleFailures(const Mesh& mesh) {
  std::vector<Failure> out;
  AddPods(mesh, &out);
  AddNodesAndZones(mesh, &out);
  AddGatewaysAndIstiods(mesh, &out);
  AddAddressesAndNames(mesh, &out);
  AddNames(mesh, &out);
  AddApiServersAndSecrets(mesh, &out);
  AddRoutes(mesh, &out);
  AddLinksAndClusters(mesh, &out);
  AddRoots(mesh, &out);
  return out;
}

}  // namespace wavetank::check
