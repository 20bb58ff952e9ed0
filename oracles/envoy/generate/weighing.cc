// Clusters that routes weigh.
#include "oracles/envoy/generate/kinds.h"

namespace wavetank::envoydiff {
namespace {

using Json = nlohmann::json;

}  // namespace

// Counts of each cluster's answers are chance's, what it does to a request is not.
Json WeighingCase(Draw& d) {
  const int clusters = d.Int(2, 3);
  Json out = {{"backends", Backends(clusters)}};
  const char* const kClusterNames[] = {"c", "d", "e"};
  for (int i = 0; i < clusters; ++i) {
    out["resources"]["clusters"].push_back({{"static", kClusterNames[i]}, {"hosts", Json::array({BackendAddress(i)})}});
  }
  Json hosts = DrawVirtualHosts(d);
  for (Json& host : hosts) {
    for (Json& route : host["routes"]) {
      if (!route.contains("route") || d.Maybe(25)) continue;
      Json& action = route["route"];
      for (const char* other : {"cluster", "cluster_header", "cluster_not_found_response_code"}) action.erase(other);
      Json& weighted = action["weighted_clusters"] = Json::object();
      for (int i = 0; i < clusters; ++i) {
        Json cluster = {{"name", d.Maybe(4) ? "nowhere" : kClusterNames[i]}, {"weight", i == 0 ? 1 : d.Int(0, 3)}};
        DrawHeaderOperations(d, 40, &cluster);
        if (d.Maybe(20)) cluster["host_rewrite_literal"] = "weighted.example";
        if (d.Maybe(30)) {
          cluster["typed_per_filter_config"]["envoy.filters.http.fault"] = {
              {"@type", "type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault"},
              {"abort", {{"http_status", d.Of({418, 503})}, {"percentage", {{"numerator", d.Of({0, 100})}}}}}};
        }
        weighted["clusters"].push_back(cluster);
      }
    }
  }
  const Json fault = {
      {"name", "envoy.filters.http.fault"},
      {"typed_config", {{"@type", "type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault"}}}};
  const Json table = {{"name", "l"}, {"virtual_hosts", hosts}, {"validate_clusters", false}};
  out["resources"]["listeners"] = Json::array({Json{
      {"http", "l"}, {"at", kListener}, {"filters", Json::array({fault})}, {"manager", {{"route_config", table}}}}});
  Json steps = Json::array();
  AddEcho(clusters, &steps);
  for (int n = d.Int(3, 5); n > 0; --n) {
    Json step = DrawRequest(d);
    step["requests"]["count"] = 40;
    if (step["requests"].contains("headers")) {
      step["requests"]["headers"].erase("connection");
      step["requests"]["headers"].erase("upgrade");
    }
    steps.push_back(step);
  }
  out["steps"] = steps;
  out["compare"] = "statistical";
  out["stats"] = {"http.l.downstream_rq_total"};
  return out;
}

}  // namespace wavetank::envoydiff
