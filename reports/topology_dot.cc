#ifndef __clang__
// GCC 12 believes that an iterator of Boost.Graph may be uninitialised.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/graphviz.hpp>
#include <map>
#include <sstream>

#include "reports/report.h"

namespace wavetank::report {
namespace {

struct Vertex {
  std::string label, shape;
};
struct Edge {
  std::string label;
};
using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, Vertex, Edge>;

std::string Shape(const std::string& kind) {
  if (kind == "istiod") return "hexagon";
  if (kind == "gateway") return "house";
  if (kind == "service") return "ellipse";
  if (kind == "cluster" || kind == "network") return "folder";
  return "box";
}

}  // namespace

std::string TopologyDot(const scenario::RunResult& result) {
  Graph graph;
  std::map<std::string, Graph::vertex_descriptor> vertices;
  for (const auto& node : result.nodes) {
    const std::string label = node.cluster.empty() ? node.label : node.label + "\n" + node.cluster;
    vertices[node.id] = boost::add_vertex({label, Shape(node.kind)}, graph);
  }
  for (const auto& edge : result.edges) {
    const auto from = vertices.find(edge.from), to = vertices.find(edge.to);
    if (from == vertices.end() || to == vertices.end()) continue;
    boost::add_edge(from->second, to->second, {edge.label}, graph);
  }
  std::ostringstream out;
  boost::dynamic_properties properties;
  properties.property("node_id", boost::get(boost::vertex_index, graph));
  properties.property("label", boost::get(&Vertex::label, graph));
  properties.property("shape", boost::get(&Vertex::shape, graph));
  properties.property("label", boost::get(&Edge::label, graph));
  boost::write_graphviz_dp(out, graph, properties);
  return out.str();
}

}  // namespace wavetank::report
