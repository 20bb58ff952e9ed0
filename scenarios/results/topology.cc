#include "scenarios/results/topology.h"

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

// The node of a cluster's first gateway.
std::string GatewayOf(const std::map<std::string, TopologyNode>& nodes, const std::string& cluster) {
  for (const auto& [id, node] : nodes) {
    if (node.cluster == cluster && node.kind == "gateway") return id;
  }
  return {};
}

struct Calls {
  int64_t answered = 0, tries = 0, failed = 0;
};

// Who answered whom in the whole run, through which gateways, and which tries failed on the first stretch.
void AddCalls(const sim::World& world, const Scenario& scenario, RunResult* result) {
  std::map<std::string, TopologyNode> nodes;
  for (const TopologyNode& node : result->nodes) nodes[node.id] = node;
  std::map<std::string, std::string> node_of;  // of proxies as traces name them, and of pods
  for (const sim::PodProcess* pod : world.Pods()) {
    node_of[pod->name()] = node_of[pod->pod()->meta.name] = NodeId(*pod);
  }
  std::map<std::pair<std::string, std::string>, Calls> calls;
  const auto add = [&](const std::string& client, const TrafficResult& traffic) {
    for (const auto& [way, count] : traffic.ways) {
      std::string from = client;
      for (const std::string& stop : way) {
        const auto to = node_of.find(stop);
        if (to == node_of.end()) continue;  // gone since
        Calls& edge = calls[{from, to->second}];
        edge.answered += count;
        edge.tries += count;
        from = to->second;
      }
    }
    for (const auto& [name, upstream] : traffic.upstreams) {
      if (upstream.failed == 0) continue;
      const auto pod = node_of.find(upstream.pod);
      const std::string to = pod != node_of.end() ? pod->second : GatewayOf(nodes, upstream.cluster);
      if (to.empty()) continue;  // gone since
      Calls& edge = calls[{client, to}];
      edge.tries += upstream.failed;
      edge.failed += upstream.failed;
    }
  };
  for (const StepResult& step : result->steps) {
    for (const TrafficResult& traffic : step.traffic) {
      const FlowSpec* flow = scenario.FindFlow(traffic.flow);
      if (flow == nullptr) continue;
      const auto clients = world.Pods(flow->from_cluster, flow->from_namespace, flow->from_app);
      if (!clients.empty()) add(NodeId(*clients.front()), traffic);
    }
  }
  for (const auto& [ends, edge] : calls) {
    result->edges.push_back(
        {ends.first, ends.second, fmt::format("{}", edge.answered), "calls", edge.tries, edge.failed});
  }
}

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
    if (!cluster.primary() && !istiod.empty() && !gateway.empty())
      result->edges.push_back({istiod, gateway, "serves", "serves"});
  }
  for (const RemoteSecretSpec& secret : scenario.remote_secrets) {
    const std::string from = id_of(secret.in, "istiod");
    const std::string to = id_of(secret.of, "istiod");
    if (!from.empty() && !to.empty()) result->edges.push_back({from, to, "watches " + secret.of, "watches"});
  }
  AddCalls(world, scenario, result);
}

}  // namespace wavetank::scenario
