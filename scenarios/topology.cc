#include "scenarios/topology.h"

#include <fmt/format.h>

#include <map>

#include "core/registry/registries.h"

namespace wavetank::scenario {

void AddTopology(const sim::World& world, const Scenario& scenario, RunResult* result) {
  // Workloads are drawn by what they are, not one by one: app and version in a cluster.
  std::map<std::string, int> pods;
  std::map<std::string, TopologyNode> nodes;
  for (const sim::PodProcess* pod : world.Pods()) {
    const kube::Labels& labels = pod->pod()->meta.labels;
    const auto version = labels.find("version");
    const std::string& cluster = pod->site().name;
    const bool istiod = pod->app() == "istiod";
    std::string label = pod->app().empty() ? pod->pod()->meta.name : pod->app();
    if (version != labels.end()) label += " " + version->second;
    const std::string id = cluster + "/" + pod->pod()->meta.ns + "/" + label;
    nodes[id] = {id, label, istiod ? "istiod" : pod->router() ? "gateway" : "workload", cluster};
    ++pods[id];
  }
  for (auto& [id, node] : nodes) {
    if (pods[id] > 1) node.label += fmt::format(" x{}", pods[id]);
    result->nodes.push_back(node);
  }
  const auto id_of = [&](const std::string& cluster, const std::string& kind) -> std::string {
    for (const auto& [id, node] : nodes) {
      if (node.cluster == cluster && node.kind == kind) return id;
    }
    return {};
  };
  for (const sim::WorldCluster& cluster : world.options().clusters) {
    const std::string istiod = id_of(cluster.control_plane, "istiod");
    const std::string gateway = id_of(cluster.name, "gateway");
    if (!cluster.primary() && !istiod.empty() && !gateway.empty()) result->edges.push_back({istiod, gateway, "serves"});
  }
  for (const RemoteSecretSpec& secret : scenario.remote_secrets) {
    const std::string from = id_of(secret.in, "istiod");
    const std::string to = id_of(secret.of, "istiod");
    if (!from.empty() && !to.empty()) result->edges.push_back({from, to, "watches " + secret.of});
  }
  // Who answered whom at the end.
  if (result->steps.empty()) return;
  for (const TrafficResult& traffic : result->steps.back().traffic) {
    const FlowSpec* flow = scenario.FindFlow(traffic.flow);
    if (flow == nullptr || traffic.meanwhile) continue;
    const std::string from = flow->from_cluster + "/" + flow->from_namespace + "/" + flow->from_app;
    for (const auto& [pod_name, count] : traffic.by_pod) {
      for (const sim::PodProcess* pod : world.Pods()) {
        if (pod->pod()->meta.name != pod_name) continue;
        const kube::Labels& labels = pod->pod()->meta.labels;
        const auto version = labels.find("version");
        std::string label = pod->app();
        if (version != labels.end()) label += " " + version->second;
        const std::string to = pod->site().name + "/" + pod->pod()->meta.ns + "/" + label;
        result->edges.push_back({from, to, fmt::format("{}", count)});
      }
    }
  }
}

}  // namespace wavetank::scenario
