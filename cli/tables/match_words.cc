#include "cli/tables/match_words.h"

#include "absl/strings/str_join.h"
#include "fmt/format.h"

namespace wavetank::cli::tables {
namespace {

using Words = std::vector<std::string>;

Words Texts(const json& in, std::string_view name) {
  Words out;
  for (const json& text : List(in, name)) {
    if (text.is_string()) out.push_back(text.get<std::string>());
  }
  return out;
}

// Lists of application protocols that have a name (istioctl: protDescrs).
std::string Protocols(const Words& protocols) {
  static const auto* const kNamed = new std::vector<std::pair<Words, const char*>>{
      {{"http/1.0", "http/1.1", "h2c", "istio-http/1.0", "istio-http/1.1", "istio-h2"}, "App: HTTP TLS"},
      {{"istio", "istio-http/1.0", "istio-http/1.1", "istio-h2"}, "App: Istio HTTP Plain"},
      {{"istio-peer-exchange", "istio"}, "App: TCP TLS"},
      {{"http/1.0", "http/1.1", "h2c"}, "App: HTTP"}};
  for (const auto& [list, words] : *kNamed) {
    if (list == protocols) return words;
  }
  return "App: " + absl::StrJoin(protocols, ",");
}

std::string ClusterWords(const std::string& cluster) {
  return cluster.find("Cluster") != std::string::npos ? cluster : "Cluster: " + cluster;
}

// One host that takes everything to one cluster is told as that cluster.
std::string OnlyCluster(const json& config) {
  const json& hosts = List(config, "virtual_hosts");
  if (hosts.size() != 1 || Texts(hosts[0], "domains") != Words{"*"}) return "";
  const json& routes = List(hosts[0], "routes");
  if (routes.size() != 1 || TextField(Field(routes[0], "match"), "prefix") != "/") return "";
  const json& cluster = Field(Field(routes[0], "route"), "cluster");
  return cluster.is_string() ? ClusterWords(cluster.get<std::string>()) : "";
}

std::string RouteConfigWords(const json& config) {
  if (std::string cluster = OnlyCluster(config); !cluster.empty()) return cluster;
  Words hosts;
  for (const json& host : List(config, "virtual_hosts")) {
    const Words domains = Texts(host, "domains");
    Words routes;
    for (const json& route : List(host, "routes")) routes.push_back(MatchWords(Field(route, "match")));
    const std::string of_host = domains == Words{"*"} ? "" : absl::StrJoin(domains, "/");
    hosts.push_back((of_host.empty() ? "" : of_host + " ") + absl::StrJoin(routes, ", "));
  }
  return "Inline Route: " + absl::StrJoin(hosts, "; ");
}

}  // namespace

std::string MatchWords(const json& match) {
  Words words;
  if (const std::string prefix = TextField(match, "prefix"); !prefix.empty()) words.push_back(prefix + "*");
  if (std::string path = TextField(match, "path"); !path.empty()) words.push_back(std::move(path));
  if (const json& regex = Field(match, "safe_regex"); regex.is_object()) {
    words.push_back("regex " + TextField(regex, "regex"));
  }
  return absl::StrJoin(words, " ");
}

std::string ChainMatchWords(const json& match) {
  Words words;
  if (const Words names = Texts(match, "server_names"); !names.empty()) {
    words.push_back("SNI: " + absl::StrJoin(names, ","));
  }
  if (const std::string transport = TextField(match, "transport_protocol"); !transport.empty()) {
    words.push_back("Trans: " + transport);
  }
  if (const Words protocols = Texts(match, "application_protocols"); !protocols.empty()) {
    words.push_back(Protocols(protocols));
  }
  std::string port;
  if (!Field(match, "destination_port").is_null()) port = fmt::format(":{}", NumberField(match, "destination_port"));
  Words ranges;
  for (const json& range : List(match, "prefix_ranges")) {
    ranges.push_back(fmt::format("{}/{}", TextField(range, "address_prefix"), NumberField(range, "prefix_len")));
  }
  if (!ranges.empty()) {
    words.push_back("Addr: " + absl::StrJoin(ranges, ",") + port);
  } else if (!port.empty()) {
    words.push_back("Addr: *" + port);
  }
  return words.empty() ? "ALL" : absl::StrJoin(words, "; ");
}

std::string DestinationWords(const json& chain) {
  for (const json& filter : List(chain, "filters")) {
    const std::string name = TextField(filter, "name");
    const json& config = Field(filter, "typed_config");
    if (name == "envoy.filters.network.http_connection_manager") {
      if (const json& routes = Field(config, "route_config"); routes.is_object()) return RouteConfigWords(routes);
      const std::string rds = TextField(Field(config, "rds"), "route_config_name");
      return rds.empty() ? "HTTP" : "Route: " + rds;
    }
    // A filter that leads into the black hole is passed over, as by istioctl.
    const std::string cluster = TextField(config, "cluster");
    if (name == "envoy.filters.network.tcp_proxy" && cluster != "BlackHoleCluster") return ClusterWords(cluster);
  }
  return "Non-HTTP/Non-TCP";
}

}  // namespace wavetank::cli::tables
