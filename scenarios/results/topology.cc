#include "scenarios/results/topology.h"

#include <fmt/format.h>

#include <map>

#include "core/registry/multicluster/registries.h"

namespace wavetank::scenario {

namespace {

// App and version, or the pod's own name.
std::string Label(const sim::PodIdentity& pod) {
  const std::string& app = pod.app.empty() ? pod.name : pod.app;
  return pod.version.empty() ? app : app + " " + pod.version;
}

std::string NodeId(const sim::PodIdentity& pod) { return pod.cluster + "/" + pod.ns + "/" + Label(pod); }
const sim::PodIdentity& IdentityOf(const sim::World& world, const sim::PodProcess& pod) {
  return world.commons().servers.at(pod.server());
}

// A pod that took part in traffic and is gone: what it was is drawn all the same.
struct Gone {
  TopologyNode node;
  bool drawn = false;
};

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
  std::map<std::string, std::string> node_of;  // of proxies as traces name them, and of pods, those that are gone too
  std::map<std::string, Gone> gone;
  for (const auto& [server, pod] : world.commons().servers) {
    const std::string id = NodeId(pod);
    node_of[fmt::format("{}.{}@{}", pod.name, pod.ns, pod.cluster)] = node_of[pod.name] = id;
    if (!nodes.contains(id)) gone[id].node = {id, Label(pod) + " (gone)", "workload", pod.cluster};
  }
  const auto draw = [&](const std::string& id, bool gateway) {
    const auto it = gone.find(id);
    if (it == gone.end()) return;
    it->second.drawn = true;
    if (gateway) it->second.node.kind = "gateway";
  };
  std::map<std::pair<std::string, std::string>, Calls> calls;
  const auto add = [&](const std::string& client, const TrafficResult& traffic) {
    for (const auto& [way, count] : traffic.ways) {
      std::string from = client;
      for (const std::string& stop : way) {
        const auto to = node_of.find(stop);
        if (to == node_of.end()) continue;  // outside of the mesh
        draw(to->second, &stop != &way.back());
        Calls& edge = calls[{from, to->second}];
        edge.answered += count;
        edge.tries += count;
        from = to->second;
      }
    }
    for (const auto& [name, upstream] : traffic.upstreams) {
      if (upstream.failed == 0) continue;
      const auto pod = node_of.find(upstream.pod);
      std::string to = pod != node_of.end() ? pod->second : GatewayOf(nodes, upstream.cluster);
      for (auto it = gone.begin(); to.empty() && it != gone.end(); ++it) {
        if (it->second.drawn && it->second.node.kind == "gateway" && it->second.node.cluster == upstream.cluster) {
          to = it->first;
        }
      }
      if (to.empty()) continue;  // an address of nobody
      draw(to, false);
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
      if (!clients.empty()) add(NodeId(IdentityOf(world, *clients.front())), traffic);
    }
  }
  for (const auto& [id, pod] : gone) {
    if (pod.drawn) result->nodes.push_back(pod.node);
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
    const sim::PodIdentity& identity = IdentityOf(world, *pod);
    const std::string id = NodeId(identity);
    nodes[id] = {id, Label(identity), istiod ? "istiod" : pod->router() ? "gateway" : "workload", pod->site().name};
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
