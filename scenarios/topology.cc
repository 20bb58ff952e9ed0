#include "scenarios/topology.h"

#include <fmt/format.h>

#include <map>

#include "core/registry/multicluster/registries.h"

namespace wavetank::scenario {

namespace {

// App and version, or the pod's own name.
std::string Label(const sim::PodProcess& pod) {
  const kube::Labels& labels = pod.pod()->meta.labels;
  const auto version = labels.find("version");
  const std::string& app = pod.app().empty() ? pod.pod()->meta.name : pod.app();
  return version == labels.end() ? app : app + " " + version->second;
}

std::string NodeId(const sim::PodProcess& pod) { return pod.site().name + "/" + pod.pod()->meta.ns + "/" + Label(pod); }

}  // namespace

void AddTopology(const sim::World& world, const Scenario& scenario, RunResult* result) {
  // Workloads are drawn by what they are, not one by one: app and version in a cluster.
  std::map<std::string, int> pods;
  std::map<std::string, TopologyNode> nodes;
  for (const sim::PodProcess* pod : world.Pods()) {
    const bool istiod = pod->app() == "istiod";
    const std::string id = NodeId(*pod);
    nodes[id] = {id, Label(*pod), istiod ? "istiod" : pod->router() ? "gateway" : "workload", pod->site().name};
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
  // Who answered whom at the end, and through which gateways.
  if (result->steps.empty()) return;
  std::map<std::string, std::string> node_of;  // of proxies as traces name them, and of pods
  for (const sim::PodProcess* pod : world.Pods()) {
    node_of[pod->name()] = node_of[pod->pod()->meta.name] = NodeId(*pod);
  }
  std::map<std::pair<std::string, std::string>, int64_t> calls;
  for (const TrafficResult& traffic : result->steps.back().traffic) {
    const FlowSpec* flow = scenario.FindFlow(traffic.flow);
    if (flow == nullptr || traffic.meanwhile) continue;
    const std::vector<const sim::PodProcess*> clients =
        world.Pods(flow->from_cluster, flow->from_namespace, flow->from_app);
    if (clients.empty()) continue;
    const std::string client = NodeId(*clients.front());
    for (const auto& [way, count] : traffic.ways) {
      std::string from = client;
      for (const std::string& stop : way) {
        const auto to = node_of.find(stop);
        if (to == node_of.end()) continue;  // gone since
        calls[{from, to->second}] += count;
        from = to->second;
      }
    }
  }
  for (const auto& [ends, count] : calls) result->edges.push_back({ends.first, ends.second, fmt::format("{}", count)});
}

}  // namespace wavetank::scenario
