// What a world is made of before anything happens in it. Together with the inputs that follow it decides everything,
// so an event log begins with it, as JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "nlohmann/json.hpp"
#include "sim/mending/mending.h"
#include "sim/network/underlay_plan.h"

namespace wavetank::sim {

struct WorldNode {
  std::string name, region, zone;
  std::string external_ip;  // the address at which it is reached from elsewhere; empty: none
};

struct WorldCluster {
  std::string name;           // the API server's name and the cluster ID
  std::string network;        // the flat network that its pods are attached to
  std::string control_plane;  // the cluster whose istiod serves its proxies; its own name for a primary
  std::string pod_cidr, service_cidr, load_balancer_cidr;
  bool load_balancer_hostname = false;
  std::vector<WorldNode> nodes;
  bool nodes_untold = false;  // nobody says which it has: there are as many as its pods ask for
  // A record of another cluster: its objects are told by inputs, statuses included, and no controller runs.
  bool observed = false;
  bool enforces_policies = true;  // its network plugin acts upon NetworkPolicies
  bool strict_policies = false;   // and on connections that stand when one comes
  // What its installation says where that is not as the world has it: global.multiCluster.clusterName, global.network.
  std::string installed_name, installed_network;
  const std::string& cluster_id() const { return installed_name.empty() ? name : installed_name; }
  const std::string& mesh_network() const { return installed_network.empty() ? network : installed_network; }
  bool primary() const { return control_plane == name; }
};

struct WorldLink {
  std::string a, b;
  Duration latency{}, jitter{};
  int64_t loss_ppm = 0;
};

struct WorldOptions {
  uint64_t seed = 1;
  // Where the world's clock stands at first. A world for real clients begins at the real calendar, so that its
  // certificates are valid for them.
  Time start{};
  std::string profile = "istio-1.18";
  std::vector<WorldCluster> clusters;
  std::vector<WorldLink> links;  // those that differ from the timing's default
  // The physical network (sim/network/underlay.h).
  std::vector<WorldPlace> sites;
  std::vector<WorldRoute> routes;
  std::vector<WorldFirewall> firewalls;
  std::vector<WorldNat> nat;
  std::map<std::string, std::string> timing;  // overrides, by name
  std::string mesh_config;                    // YAML of istiod's installation; empty: defaults
  Mending mending;
  bool delta_xds = false;
  bool trace_requests = true;
  // istiods write their elections also where no other could take part, for clients who look (core/election).
  bool write_elections = false;

  UnderlayPlan Physical() const;
  nlohmann::json ToJson() const;
  // InvalidArgument names the field.
  static absl::StatusOr<WorldOptions> FromJson(const nlohmann::json& in);
};

}  // namespace wavetank::sim
