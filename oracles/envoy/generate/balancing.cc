// Who gets the next request.
#include <set>

#include "fmt/format.h"
#include "oracles/envoy/generate/kinds.h"

namespace wavetank::envoydiff {
namespace {

using Json = nlohmann::json;

struct HostList {
  Json hosts = Json::array();
  bool priorities = false, degraded = false;
  std::set<std::string> localities;
  bool weights = false;
};

HostList DrawHosts(Draw& d, int count) {
  HostList out;
  const bool weights = d.Maybe(45), priorities = d.Maybe(30), localities = d.Maybe(45), health = d.Maybe(35);
  for (int i = 0; i < count; ++i) {
    std::string host = BackendAddress(i);
    if (weights && d.Maybe(70)) {
      host += fmt::format(" w{}", d.Of({1, 2, 3, 5}));
      out.weights = true;
    }
    // The first host stands for priority 0: without any Envoy refuses the assignment.
    const int priority = priorities && i > 0 ? d.Int(0, 2) : 0;
    const bool gap = priority == 2 && !out.priorities;
    if (priority > 0) {
      host += gap ? " p1" : fmt::format(" p{}", priority);
      out.priorities = true;
    }
    if (localities) {
      const std::string locality = d.Of({"x", "y", "z"});
      host += " @" + locality;
      out.localities.insert(locality);
    }
    if (health && d.Maybe(35)) {
      const std::string state = d.Of({"UNHEALTHY", "DRAINING", "DEGRADED", "TIMEOUT"});
      out.degraded |= state == "DEGRADED";
      host += " " + state;
    }
    out.hosts.push_back(host);
  }
  return out;
}

Json HostAssignment(Draw& d, const HostList& hosts, bool eds) {
  Json out = {{eds ? "eds" : "static", "c"}, {"hosts", hosts.hosts}};
  for (const std::string& locality : hosts.localities) {
    if (d.Maybe(80)) out["locality_weights"][locality] = d.Of({1, 1, 2, 3});
  }
  if (eds && d.Maybe(15)) out["policy"] = {{"overprovisioning_factor", d.Of({100, 140, 200})}};
  if (eds && d.Maybe(8)) out["policy"]["weighted_priority_health"] = true;
  return out;
}

Json HashPolicies(Draw& d) {
  Json out = Json::array();
  for (int n = d.Int(1, 2); n > 0; --n) {
    Json policy = Json::object();
    switch (d.Int(0, 4)) {
      case 0:
        policy["cookie"] = {{"name", "session"}};
        break;
      case 1:
        policy["query_parameter"] = {{"name", "q"}};
        break;
      case 2:
        policy["connection_properties"] = {{"source_ip", true}};
        break;
      default:
        policy["header"] = {{"header_name", "x-user"}};
    }
    if (d.Maybe(30)) policy["terminal"] = true;
    out.push_back(policy);
  }
  return out;
}

}  // namespace

Json BalancingCase(Draw& d) {
  const int count = d.Int(1, 6);
  Json out = {{"backends", Backends(count)}};
  const HostList hosts = DrawHosts(d, count);
  const std::string policy =
      d.Of({"ROUND_ROBIN", "ROUND_ROBIN", "LEAST_REQUEST", "LEAST_REQUEST", "RANDOM", "RING_HASH", "MAGLEV"});
  const bool hashes = policy == "RING_HASH" || policy == "MAGLEV";
  const bool eds = d.Maybe(60);
  Json cluster = {{"lb_policy", policy}};
  Json assignment = HostAssignment(d, hosts, eds);
  if (eds) {
    cluster["eds"] = "c";
    out["resources"]["endpoints"] = Json::array({assignment});
  } else {
    cluster.update(assignment);
  }
  Json common = Json::object();
  if (d.Maybe(60)) common["healthy_panic_threshold"] = {{"value", d.Of({0, 30, 50, 100})}};
  const bool by_locality = !hosts.localities.empty() && d.Maybe(50);
  if (by_locality) common["locality_weighted_lb_config"] = Json::object();
  if (!common.empty()) cluster["common_lb_config"] = common;
  if (policy == "LEAST_REQUEST" && d.Maybe(25)) cluster["least_request_lb_config"] = {{"choice_count", d.Int(2, 5)}};
  if (policy == "RING_HASH" && d.Maybe(50)) {
    cluster["ring_hash_lb_config"] = {{"minimum_ring_size", d.Of({16, 64, 1024})}, {"maximum_ring_size", 2048}};
  }
  if (policy == "MAGLEV" && d.Maybe(40)) cluster["maglev_lb_config"] = {{"table_size", d.Of({101, 1009})}};
  Json route = {{"timeout", "0s"}};
  if (hashes || d.Maybe(5)) route["hash_policy"] = HashPolicies(d);
  out["resources"]["clusters"] = Json::array({cluster});
  out["resources"]["listeners"] = Json::array({Json{{"http", "l"}, {"at", kListener}, {"to", "c"}, {"route", route}}});
  const auto requests = [&](int n) {
    Json r = {{"to", kListener}, {"count", n}};
    if (hashes) {
      // All that policies may ask for: without a hash the choice is random.
      r["headers"]["x-user"] = d.Of({"alice", "bob", "carol", "dave", "erin"});
      r["headers"]["cookie"] = d.Of({"session=one", "other=1; session=two", "session=\"three\""});
      r["path"] = d.Of({"/?q=1", "/?a=b&q=two", "/?q=%20"});
      if (d.Maybe(20)) r["from"] = "127.77.0.201";
    }
    return Json{{"requests", r}};
  };
  Json steps = Json::array();
  for (int n = hashes ? d.Int(4, 8) : d.Int(1, 3); n > 0; --n)
    steps.push_back(requests(hashes ? d.Of({1, 20}) : d.Of({30, 60, 100})));
  if (eds && d.Maybe(40)) {
    // Other hosts at the same addresses: a push while nothing is under way.
    const HostList other = DrawHosts(d, d.Int(1, count));
    steps.push_back({{"push", {{"endpoints", Json::array({HostAssignment(d, other, true)})}}}});
    steps.push_back(requests(hashes ? 20 : 60));
  }
  out["steps"] = steps;
  // Exact where nothing is drawn by the process; what starts at random is found among the seeds.
  out["compare"] = "statistical";
  if (hashes) {
    out["compare"] = "exact";
  } else if (!hosts.priorities && !hosts.degraded && (policy == "ROUND_ROBIN") && !by_locality &&
             !out["steps"].back().contains("push")) {
    out["compare"] = "exact";
    out["draws"] = 40;
  }
  out["stats"] = {"cluster.c.upstream_rq_total", "cluster.c.upstream_cx_none_healthy", "cluster.c.membership_change"};
  return out;
}

}  // namespace wavetank::envoydiff
