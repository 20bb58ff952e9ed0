#include "sim/world_options.h"

#include "absl/strings/str_cat.h"

namespace wavetank::sim {

using nlohmann::json;

json WorldOptions::ToJson() const {
  json out = {{"seed", seed},
              {"profile", profile},
              {"meshConfig", mesh_config},
              {"deltaXds", delta_xds},
              {"clusters", json::array()},
              {"links", json::array()},
              {"timing", timing},
              {"traceRequests", trace_requests}};
  if (start != Time{}) out["startNs"] = start.time_since_epoch().count();
  for (const WorldCluster& c : clusters) {
    json nodes_json = json::array();
    for (const WorldNode& n : c.nodes) {
      nodes_json.push_back({{"name", n.name}, {"region", n.region}, {"zone", n.zone}});
      if (!n.external_ip.empty()) nodes_json.back()["externalIP"] = n.external_ip;
    }
    out["clusters"].push_back({{"name", c.name},
                               {"network", c.network},
                               {"controlPlane", c.control_plane},
                               {"pods", c.pod_cidr},
                               {"services", c.service_cidr},
                               {"loadBalancers", c.load_balancer_cidr},
                               {"loadBalancerHostnames", c.load_balancer_hostname},
                               {"nodes", std::move(nodes_json)}});
    if (c.observed) out["clusters"].back()["observed"] = true;
    if (!c.installed_name.empty()) out["clusters"].back()["installedName"] = c.installed_name;
    if (!c.installed_network.empty()) out["clusters"].back()["installedNetwork"] = c.installed_network;
  }
  for (const WorldLink& l : links) {
    out["links"].push_back({{"between", {l.a, l.b}},
                            {"latencyNs", l.latency.count()},
                            {"jitterNs", l.jitter.count()},
                            {"lossPpm", l.loss_ppm}});
  }
  return out;
}

absl::StatusOr<WorldOptions> WorldOptions::FromJson(const json& in) {
  // The library's messages name the field; exceptions end here.
  try {
    WorldOptions out;
    out.seed = in.at("seed").get<uint64_t>();
    out.start = Time(Duration(in.value("startNs", int64_t{0})));
    out.profile = in.at("profile").get<std::string>();
    out.mesh_config = in.at("meshConfig").get<std::string>();
    out.delta_xds = in.at("deltaXds").get<bool>();
    out.trace_requests = in.at("traceRequests").get<bool>();
    out.timing = in.at("timing").get<std::map<std::string, std::string>>();
    for (const json& c : in.at("clusters")) {
      WorldCluster cluster;
      cluster.name = c.at("name").get<std::string>();
      cluster.network = c.at("network").get<std::string>();
      cluster.control_plane = c.at("controlPlane").get<std::string>();
      cluster.pod_cidr = c.at("pods").get<std::string>();
      cluster.service_cidr = c.at("services").get<std::string>();
      cluster.load_balancer_cidr = c.at("loadBalancers").get<std::string>();
      cluster.load_balancer_hostname = c.at("loadBalancerHostnames").get<bool>();
      cluster.observed = c.value("observed", false);
      cluster.installed_name = c.value("installedName", "");
      cluster.installed_network = c.value("installedNetwork", "");
      for (const json& n : c.at("nodes")) {
        cluster.nodes.push_back({n.at("name").get<std::string>(), n.at("region").get<std::string>(),
                                 n.at("zone").get<std::string>(), n.value("externalIP", "")});
      }
      out.clusters.push_back(std::move(cluster));
    }
    for (const json& l : in.at("links")) {
      out.links.push_back({l.at("between").at(0).get<std::string>(), l.at("between").at(1).get<std::string>(),
                           Duration(l.at("latencyNs").get<int64_t>()), Duration(l.at("jitterNs").get<int64_t>()),
                           l.at("lossPpm").get<int64_t>()});
    }
    return out;
  } catch (const json::exception& e) {
    return absl::InvalidArgumentError(absl::StrCat("the world's description cannot be read: ", e.what()));
  }
}

}  // namespace wavetank::sim
