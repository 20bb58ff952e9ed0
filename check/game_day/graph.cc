// The mesh as graphs: which point every way of a flow passes, and how much fits between two clusters.
#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/biconnected_components.hpp>
#include <boost/graph/edmonds_karp_max_flow.hpp>
#include <map>
#include <set>

#include "check/game_day/game_day.h"
#include "check/rules/look.h"
#include "core/model/service.h"
#include "fakes/envoy/envoy.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS>;

// A graph whose vertices have names.
class NamedGraph {
 public:
  size_t Vertex(const std::string& name) {
    const auto [it, added] = index_.emplace(name, names_.size());
    if (added) {
      names_.push_back(name);
      boost::add_vertex(graph_);
    }
    return it->second;
  }
  void Edge(const std::string& a, const std::string& b) {
    const size_t x = Vertex(a), y = Vertex(b);
    if (edges_.insert(std::minmax(x, y)).second) boost::add_edge(x, y, graph_);
  }
  // Without which the rest falls apart, but for the two ends.
  std::vector<std::string> ArticulationPoints(const std::string& a, const std::string& b) const {
    std::vector<size_t> points;
    boost::articulation_points(graph_, std::back_inserter(points));
    std::set<std::string> out;
    for (const size_t point : points) {
      if (names_[point] != a && names_[point] != b && Separates(point, a, b)) out.insert(names_[point]);
    }
    return {out.begin(), out.end()};
  }

 private:
  // An articulation point may cut off something else than the way from `a` to `b`.
  bool Separates(size_t point, const std::string& a, const std::string& b) const {
    const auto from = index_.find(a), to = index_.find(b);
    if (from == index_.end() || to == index_.end()) return false;
    std::vector<size_t> open{from->second};
    std::set<size_t> seen{from->second, point};
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      if (at == to->second) return false;
      for (const auto& [x, y] : edges_) {
        const size_t next = x == at ? y : y == at ? x : point;
        if ((x == at || y == at) && seen.insert(next).second) open.push_back(next);
      }
    }
    return true;
  }

  Graph graph_;
  std::vector<std::string> names_;
  std::map<std::string, size_t> index_;
  std::set<std::pair<size_t, size_t>> edges_;
};

std::string IpOf(const std::string& address) { return address.substr(0, address.rfind(':')); }

// Pods by (physical network, address), and gateway pods by their Services' addresses.
struct Addresses {
  std::map<std::pair<std::string, std::string>, const sim::PodProcess*> pods;
  std::map<std::string, std::vector<const sim::PodProcess*>> gateways;
};

Addresses AddressesOf(const Mesh& mesh) {
  Addresses out;
  for (const auto& cluster : mesh.clusters()) {
    for (const sim::PodProcess* pod : mesh.Pods(*cluster))
      out.pods[{cluster->network, kube::ParsePod(*pod->pod()).ip}] = pod;
    for (const kube::ObjectRef& service : NetworkGatewayServices(mesh, *cluster)) {
      for (const auto& ingress : kube::ParseService(*service).ingress) {
        if (!ingress.ip.empty()) out.gateways[ingress.ip] = Behind(mesh, *cluster, *service);
      }
    }
  }
  return out;
}

// Which of a proxy's clusters serve the flow's host.
bool IsOfFlow(const std::string& cluster, const scenario::FlowSpec& flow) {
  const auto key = pilot::ParseSubsetKey(cluster);
  if (!key || key->port != flow.port || key->direction != pilot::TrafficDirection::kOutbound) return false;
  return key->hostname == flow.host || key->hostname.starts_with(flow.host + ".") ||
         key->hostname.starts_with(fmt::format("{}.{}.", flow.host, flow.from_namespace));
}

}  // namespace

std::vector<WeakPoint> WeakPoints(const Mesh& mesh, const std::vector<scenario::FlowSpec>& flows) {
  std::vector<WeakPoint> out;
  const Addresses addresses = AddressesOf(mesh);
  for (const scenario::FlowSpec& flow : flows) {
    NamedGraph graph;
    const std::string client = "flow", service = "service";
    graph.Vertex(client);
    graph.Vertex(service);
    for (const sim::PodProcess* pod : mesh.world().Pods(flow.from_cluster, flow.from_namespace, flow.from_app)) {
      if (pod->envoy() == nullptr) continue;
      const std::string from = "pod " + pod->name();
      graph.Edge(client, from);
      const MeshCluster* here = mesh.Find(pod->site().name);
      for (const envoysim::EndpointStatus& e : pod->envoy()->Endpoints()) {
        if (!IsOfFlow(e.cluster, flow) || here == nullptr) continue;
        if (const auto near = addresses.pods.find({here->network, IpOf(e.address)}); near != addresses.pods.end()) {
          graph.Edge(from, "pod " + near->second->name());
          graph.Edge("pod " + near->second->name(), service);
          continue;
        }
        const auto gateway = addresses.gateways.find(IpOf(e.address));
        if (gateway == addresses.gateways.end()) continue;
        const auto key = pilot::ParseSubsetKey(e.cluster);
        const std::string sni =
            pilot::BuildDnsSrvSubsetKey(pilot::TrafficDirection::kOutbound, key->subset, key->hostname, key->port);
        graph.Edge(from, "address " + gateway->first);
        for (const sim::PodProcess* each : gateway->second) {
          if (each->envoy() == nullptr) continue;
          graph.Edge("address " + gateway->first, "gateway " + each->name());
          const MeshCluster* there = mesh.Find(each->site().name);
          for (const envoysim::EndpointStatus& far : each->envoy()->Endpoints()) {
            if (far.cluster != sni || there == nullptr) continue;
            const auto server = addresses.pods.find({there->network, IpOf(far.address)});
            if (server == addresses.pods.end()) continue;
            graph.Edge("gateway " + each->name(), "pod " + server->second->name());
            graph.Edge("pod " + server->second->name(), service);
          }
        }
      }
    }
    for (std::string& point : graph.ArticulationPoints(client, service)) out.push_back({flow.name, std::move(point)});
  }
  return out;
}

namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using FlowGraph = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<boost::edge_capacity_t, int,
                    boost::property<boost::edge_residual_capacity_t, int,
                                    boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

void AddEdge(FlowGraph& graph, size_t from, size_t to, int capacity) {
  const auto forth = boost::add_edge(from, to, graph).first;
  const auto back = boost::add_edge(to, from, graph).first;
  boost::put(boost::edge_capacity, graph, forth, capacity);
  boost::put(boost::edge_capacity, graph, back, 0);
  boost::put(boost::edge_reverse, graph, forth, back);
  boost::put(boost::edge_reverse, graph, back, forth);
}

}  // namespace

std::vector<Capacity> Capacities(const Mesh& mesh) {
  static constexpr int kMuch = 1'000'000;
  std::vector<Capacity> out;
  for (const auto& from : mesh.clusters()) {
    for (const auto& to : mesh.clusters()) {
      if (from == to || from->network == to->network) continue;
      FlowGraph graph(2);  // 0: the one cluster, 1: the other
      std::map<const sim::PodProcess*, size_t> pods;
      size_t addresses = 0;
      for (const kube::ObjectRef& service : NetworkGatewayServices(mesh, *to)) {
        for (const auto& ingress : kube::ParseService(*service).ingress) {
          if (ingress.ip.empty() && ingress.hostname.empty()) continue;
          const size_t address = boost::add_vertex(graph);
          ++addresses;
          AddEdge(graph, 0, address, kMuch);
          for (const sim::PodProcess* pod : Behind(mesh, *to, *service)) {
            const auto [it, added] = pods.emplace(pod, 0);
            if (added) {
              it->second = boost::add_vertex(graph);
              AddEdge(graph, it->second, 1, 1);
            }
            AddEdge(graph, address, it->second, 1);
          }
        }
      }
      Capacity capacity{from->name, to->name, 0, ""};
      if (!pods.empty()) capacity.gateways = boost::edmonds_karp_max_flow(graph, 0, 1);
      capacity.cut = addresses == 0           ? "no gateway address"
                     : capacity.gateways == 0 ? "no gateway pod"
                     : addresses == 1         ? "one gateway address"
                     : capacity.gateways == 1 ? "one gateway pod"
                                              : fmt::format("{} gateway pods", capacity.gateways);
      out.push_back(std::move(capacity));
    }
  }
  return out;
}

}  // namespace wavetank::check
