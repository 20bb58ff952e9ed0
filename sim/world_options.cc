#include "sim/world_options.h"

#include "absl/strings/str_cat.h"

namespace wavetank::sim {

using nlohmann::json;

namespace {

// What lies under the networks; null: nothing was said of it.
json UnderlayJson(const WorldOptions& o) {
  json out;
  for (const WorldPlace& p : o.sites)
    out["sites"].push_back({{"name", p.name}, {"clusters", p.clusters}, {"private", p.private_ranges}});
  for (const WorldRoute& r : o.routes) out["routes"].push_back({{"from", r.from}, {"to", r.to}, {"ranges", r.ranges}});
  for (const WorldFirewall& f : o.firewalls) {
    out["firewalls"].push_back({{"name", f.name},
                                {"from", f.from},
                                {"to", f.to},
                                {"ports", f.ports},
                                {"allow", f.allow},
                                {"reject", f.reject},
                                {"established", f.established}});
  }
  for (const WorldNat& n : o.nat) {
    out["nat"].push_back({{"site", n.site},
                          {"address", n.address},
                          {"port", n.port},
                          {"to", n.to},
                          {"toPort", n.to_port},
                          {"source", n.source},
                          {"as", n.as}});
  }
  return out;
}

// Throws what the library throws.
void ReadUnderlay(const json& in, WorldOptions* out) {
  using Texts = std::vector<std::string>;
  for (const json& p : in.value("sites", json::array()))
    out->sites.push_back(
        {p.at("name").get<std::string>(), p.at("clusters").get<Texts>(), p.at("private").get<Texts>()});
  for (const json& r : in.value("routes", json::array())) {
    out->routes.push_back(
        {r.at("from").get<std::string>(), r.at("to").get<std::string>(), r.at("ranges").get<Texts>()});
  }
  for (const json& f : in.value("firewalls", json::array())) {
    out->firewalls.push_back({f.at("name").get<std::string>(), f.at("from").get<Texts>(), f.at("to").get<Texts>(),
                              f.at("ports").get<std::vector<int64_t>>(), f.at("allow").get<bool>(),
                              f.at("reject").get<bool>(), f.at("established").get<bool>()});
  }
  for (const json& n : in.value("nat", json::array())) {
    out->nat.push_back({n.at("site").get<std::string>(), n.at("address").get<std::string>(),
                        n.at("to").get<std::string>(), n.at("port").get<int64_t>(), n.at("toPort").get<int64_t>(),
                        n.at("source").get<Texts>(), n.at("as").get<std::string>()});
  }
}

}  // namespace

UnderlayPlan WorldOptions::Physical() const {
  UnderlayPlan out{{}, sites, routes, firewalls, nat};
  for (const WorldCluster& cluster : clusters) out.clusters.push_back({cluster.name, cluster.network});
  return out;
}

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
  if (write_elections) out["writeElections"] = true;
  if (mending.chosen()) out["mend"] = mending.Text();
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
    if (c.nodes_untold) out["clusters"].back()["nodesUntold"] = true;
    if (c.observed) out["clusters"].back()["observed"] = true;
    if (!c.enforces_policies) out["clusters"].back()["networkPolicies"] = "ignored";
    if (c.strict_policies) out["clusters"].back()["networkPolicies"] = "strict";
    if (!c.installed_name.empty()) out["clusters"].back()["installedName"] = c.installed_name;
    if (!c.installed_network.empty()) out["clusters"].back()["installedNetwork"] = c.installed_network;
  }
  if (json underlay = UnderlayJson(*this); !underlay.is_null()) out["underlay"] = std::move(underlay);
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
    absl::StatusOr<Mending> mending = Mending::Parse(in.value("mend", ""));
    if (!mending.ok()) return mending.status();
    out.mending = *mending;
    out.delta_xds = in.at("deltaXds").get<bool>();
    out.trace_requests = in.at("traceRequests").get<bool>();
    out.write_elections = in.value("writeElections", false);
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
      cluster.nodes_untold = c.value("nodesUntold", false);
      cluster.observed = c.value("observed", false);
      cluster.enforces_policies = c.value("networkPolicies", "") != "ignored";
      cluster.strict_policies = c.value("networkPolicies", "") == "strict";
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
    if (in.contains("underlay")) ReadUnderlay(in.at("underlay"), &out);
    return out;
  } catch (const json::exception& e) {
    return absl::InvalidArgumentError(absl::StrCat("the world's description cannot be read: ", e.what()));
  }
}

}  // namespace wavetank::sim
