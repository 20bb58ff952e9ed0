// Listeners: which chain takes a connection, and TCP.
#include <set>

#include "fmt/format.h"
#include "oracles/envoy/generate/kinds.h"

namespace wavetank::envoydiff {
namespace {

using Json = nlohmann::json;

Json ChainMatch(Draw& d) {
  Json m = Json::object();
  if (d.Maybe(25)) m["destination_port"] = d.Of({10000, 10001});
  if (d.Maybe(35)) {
    m["prefix_ranges"] = Json::array({Json{{"address_prefix", d.Of({"127.77.0.1", "127.77.0.0", "10.0.0.0"})},
                                           {"prefix_len", d.Of({8, 16, 24, 32})}}});
  }
  if (d.Maybe(35)) {
    m["source_prefix_ranges"] = Json::array({Json{{"address_prefix", d.Of({"127.77.0.201", "127.77.0.0", "127.0.0.1"})},
                                                  {"prefix_len", d.Of({8, 24, 32})}}});
  }
  if (d.Maybe(15)) m["source_type"] = d.Of({"SAME_IP_OR_LOOPBACK", "EXTERNAL", "ANY"});
  if (d.Maybe(30)) m["transport_protocol"] = d.Of({"raw_buffer", "tls"});
  if (d.Maybe(35)) m["application_protocols"] = Json::array({d.Of({"http/1.1", "h2c", "istio"})});
  if (d.Maybe(10)) m["server_names"] = Json::array({d.Of({"one.example", "*.example"})});
  return m;
}

Json Chain(Draw& d, int index) {
  const std::string name = fmt::format("chain{}", index);
  if (d.Maybe(40)) {
    Json proxy = {{"@type", "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy"},
                  {"stat_prefix", "t"}};
    switch (d.Int(0, 5)) {
      case 0:
        proxy["weighted_clusters"] = {{"clusters", Json::array({Json{{"name", "c"}, {"weight", 1}}})}};
        break;
      case 1:
        proxy["cluster"] = d.Of({"nowhere", "dead"});
        proxy["max_connect_attempts"] = d.Int(1, 3);
        break;
      default:
        proxy["cluster"] = d.Of({"c", "d"});
    }
    return {{"name", name},
            {"filters", Json::array({Json{{"name", "envoy.filters.network.tcp_proxy"}, {"typed_config", proxy}}})}};
  }
  const Json route = {{"match", {{"prefix", "/"}}}, {"name", name}, {"route", {{"cluster", d.Of({"c", "d"})}}}};
  const Json router = {
      {"name", "envoy.filters.http.router"},
      {"typed_config", {{"@type", "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}}};
  Json manager = {
      {"@type",
       "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"},
      {"stat_prefix", "h"},
      {"http_filters", Json::array({router})},
      {"route_config",
       {{"name", name},
        {"virtual_hosts",
         Json::array({Json{{"name", "v"}, {"domains", Json::array({"*"})}, {"routes", Json::array({route})}}})}}}};
  return {{"name", name},
          {"filters",
           Json::array({Json{{"name", "envoy.filters.network.http_connection_manager"}, {"typed_config", manager}}})}};
}

}  // namespace

Json ConnectingCase(Draw& d) {
  Json out = {{"backends", Backends(2)}};
  out["resources"]["clusters"] = Json::array({Json{{"static", "c"}, {"hosts", Json::array({BackendAddress(0)})}},
                                              Json{{"static", "d"}, {"hosts", Json::array({BackendAddress(1)})}},
                                              Json{{"static", "dead"}, {"hosts", Json::array({"127.77.0.99:9000"})}}});
  Json listener = {{"name", "l"},
                   {"address", {{"socket_address", {{"address", "127.77.0.1"}, {"port_value", 10000}}}}},
                   {"filter_chains", Json::array()}};
  std::set<std::string> taken;
  for (int n = d.Int(1, 4), i = 0; i < n; ++i) {
    const Json match = ChainMatch(d);
    // What says the default says the same as what leaves it out, and two such chains are refused.
    Json rule = match;
    if (rule.value("source_type", "") == "ANY") rule.erase("source_type");
    if (!taken.insert(rule.dump()).second) continue;
    Json chain = Chain(d, i);
    if (!match.empty()) chain["filter_chain_match"] = match;
    listener["filter_chains"].push_back(chain);
  }
  if (d.Maybe(40)) listener["default_filter_chain"] = Chain(d, 9);
  Json inspectors = Json::array();
  for (const char* name : {"tls_inspector", "http_inspector"}) {
    if (!d.Maybe(55)) continue;
    const std::string type = std::string(name) == "tls_inspector" ? "TlsInspector" : "HttpInspector";
    inspectors.push_back(
        {{"name", fmt::format("envoy.filters.listener.{}", name)},
         {"typed_config",
          {{"@type", fmt::format("type.googleapis.com/envoy.extensions.filters.listener.{}.v3.{}", name, type)}}}});
  }
  if (!inspectors.empty()) listener["listener_filters"] = inspectors;
  if (d.Maybe(15)) listener["connection_balance_config"] = {{"exact_balance", Json::object()}};
  out["resources"]["listeners"] = Json::array({listener});
  Json steps = Json::array();
  for (int n = d.Int(3, 6); n > 0; --n) {
    Json r = {{"to", kListener}, {"count", d.Int(1, 3)}, {"keep_alive", d.Maybe(60)}};
    if (d.Maybe(50)) r["from"] = d.Of({"127.77.0.201", "127.77.0.1", "127.77.0.202"});
    steps.push_back({{"requests", r}});
  }
  out["steps"] = steps;
  // That nobody takes a connection is a fair outcome.
  out["answers"] = false;
  out["stats"] = {"cluster.c.upstream_rq_total", "cluster.d.upstream_rq_total",
                  "listener.127.77.0.1_10000.no_filter_chain_match"};
  return out;
}

}  // namespace wavetank::envoydiff
