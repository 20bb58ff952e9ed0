#include "core/agent/bootstrap.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/agent/bootstrap_parts.h"
#include "core/agent/stats_tags.h"
#include "core/base/ip.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "fmt/format.h"

namespace wavetank::agent {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kHttp[] =
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
constexpr char kRouter[] = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router";
constexpr char kTypedStruct[] = "type.googleapis.com/udpa.type.v1.TypedStruct";

std::vector<std::string> SplitList(const std::string& text) {
  if (text.empty()) return {};
  return absl::StrSplit(text, ',');
}

std::vector<std::string> Texts(const nlohmann::json& list) {
  std::vector<std::string> out;
  for (const nlohmann::json& each : Items(list)) {
    if (each.is_string()) out.push_back(each.get<std::string>());
  }
  return out;
}

// What decides about the address family of this proxy.
struct Family {
  std::string localhost = "127.0.0.1", wildcard = "0.0.0.0", lookup = "V4_ONLY";
  std::string other_wildcard;  // of additional addresses; empty: none
};
std::vector<std::string> AddressesOf(const pilot::ProxyBootstrap& proxy) {
  return SplitList(Text(proxy.metadata, "INSTANCE_IPS"));
}
Family FamilyOf(const pilot::ProxyBootstrap& proxy) {
  const std::vector<std::string> ips = AddressesOf(proxy);
  const auto is_v6 = [](const std::string& text) {
    const absl::StatusOr<IpAddress> ip = IpAddress::Parse(text);
    return ip.ok() && !ip->is_v4();
  };
  const auto count = std::count_if(ips.begin(), ips.end(), is_v6);
  if (count == 0) return {};
  if (static_cast<size_t>(count) == ips.size()) return {"::1", "::", "V6_ONLY", ""};
  // istiod: pkg/bootstrap/config.go.
  if (!proxy.dual_stack) return {};
  const bool first_v6 = is_v6(ips.front());
  const std::string other = first_v6 ? "0.0.0.0" : "::";
  return {first_v6 ? "::1" : "127.0.0.1", first_v6 ? "::" : "0.0.0.0", "ALL", proxy.both_wildcards ? other : ""};
}

// What of Envoy's statistics is kept. An annotation replaces the proxy's configuration; what readiness and draining
// need is added to either.
Json StatsConfig(const pilot::ProxyBootstrap& proxy, const EnvoyBootstrapOptions& options) {
  const nlohmann::json& annotations = At(proxy.metadata, "ANNOTATIONS");
  const nlohmann::json& matcher = At(proxy.proxy_config, "proxyStatsMatcher");
  const std::vector<std::string> ips = AddressesOf(proxy);
  const auto wanted = [&](const char* annotation, const char* field, const std::string& required) {
    std::vector<std::string> patterns = SplitList(Text(annotations, annotation));
    if (patterns.empty()) patterns = Texts(At(matcher, field));
    for (std::string& each : SplitList(required)) patterns.push_back(std::move(each));
    std::vector<std::string> out;
    for (const std::string& pattern : patterns) {
      if (!absl::StrContains(pattern, "{pod_ip}")) {
        out.push_back(pattern);
        continue;
      }
      for (const std::string& ip : ips) out.push_back(absl::StrReplaceAll(pattern, {{"{pod_ip}", ip}}));
    }
    return out;
  };
  std::string suffixes = "rbac.allowed,rbac.denied,shadow_allowed,shadow_denied";
  if (options.exit_on_zero_active_connections) suffixes += ",downstream_cx_active";

  Json tags = Json::array();
  const auto tag = [&](const std::string& name, const std::string& regex) {
    tags.push_back({{"tag_name", name}, {"regex", regex}});
  };
  for (const auto& [name, regex] : kStatsTags) tag(name, regex);
  std::vector<std::string> extra = Texts(At(proxy.proxy_config, "extraStatTags"));
  for (std::string& each : SplitList(Text(annotations, "sidecar.istio.io/extraStatTags"))) {
    extra.push_back(std::move(each));
  }
  std::set<std::string> told;
  for (const std::string& each : extra) {
    if (!each.empty() && told.insert(each).second) tag(each, fmt::format(R"(({}=\.=(.*?);\.;))", each));
  }
  for (const auto& [name, regex] : kStatsTagsAfterExtra) tag(name, regex);

  Json patterns = Json::array({{{"prefix", "reporter="}}});
  for (const std::string& each : wanted("sidecar.istio.io/statsInclusionPrefixes", "inclusionPrefixes",
                                        "cluster_manager,listener_manager,server,cluster.xds-grpc,wasm")) {
    patterns.push_back({{"prefix", each}});
  }
  for (const std::string& each : wanted("sidecar.istio.io/statsInclusionSuffixes", "inclusionSuffixes", suffixes)) {
    patterns.push_back({{"suffix", each}});
  }
  for (const std::string& each :
       wanted("sidecar.istio.io/statsInclusionRegexps", "inclusionRegexps", R"(vhost\.*\.route\.*)")) {
    patterns.push_back({{"safe_regex", {{"regex", each}}}});
  }
  for (const char* each : {"component", "istio"}) patterns.push_back({{"prefix", each}});
  return {{"use_all_default_tags", false},
          {"stats_tags", std::move(tags)},
          {"stats_matcher", {{"inclusion_list", {{"patterns", std::move(patterns)}}}}}};
}

// runtimeValues are added to what every proxy has; an empty one takes a default away.
Json RuntimeFlags(const pilot::ProxyBootstrap& proxy, bool upstream_envoy) {
  std::map<std::string, std::string> flags = {{"overload.global_downstream_max_connections", "2147483647"},
                                              {"re2.max_program_size.error_level", "32768"},
                                              {"envoy.reloadable_features.http_reject_path_with_fragment", "false"}};
  if (!upstream_envoy) {
    // Of the Envoy that Istio 1.18 ships; newer ones refuse a runtime key that they have dropped.
    flags["envoy.deprecated_features:envoy.config.listener.v3.Listener.hidden_envoy_deprecated_use_original_dst"] =
        "true";
    flags["envoy.reloadable_features.no_extension_lookup_by_name"] = "false";
  }
  const nlohmann::json& values = At(proxy.proxy_config, "runtimeValues");
  if (values.is_object()) {
    for (const auto& [name, value] : values.items()) {
      const std::string text = value.is_string() ? value.get<std::string>() : JsonText(value);
      if (text.empty()) {
        flags.erase(name);
      } else {
        flags[name] = text;
      }
    }
  }
  return Json(flags);
}

// A listener that passes one path on.
Json PathListener(const Family& family, int port, const std::string& stat_prefix, const std::string& path, Json route) {
  const Json virtual_host = {{"name", "backend"},
                             {"domains", {"*"}},
                             {"routes", Json::array({{{"match", {{"prefix", path}}}, {"route", std::move(route)}}})}};
  const Json router = {{"name", "envoy.filters.http.router"}, {"typed_config", {{kType, kRouter}}}};
  const Json manager = {{kType, kHttp},
                        {"codec_type", "AUTO"},
                        {"stat_prefix", stat_prefix},
                        {"route_config", {{"virtual_hosts", Json::array({virtual_host})}}},
                        {"http_filters", Json::array({router})}};
  const Json filter = {{"name", "envoy.filters.network.http_connection_manager"}, {"typed_config", manager}};
  Json out = {{"address", TcpAddress(family.wildcard, port)}};
  if (!family.other_wildcard.empty()) {
    out["additionalAddresses"] = Json::array({{{"address", TcpAddress(family.other_wildcard, port)}}});
  }
  out["filter_chains"] = Json::array({{{"filters", Json::array({filter})}}});
  return out;
}

Json FromAds() { return {{"ads", Json::object()}, {"initial_fetch_timeout", "0s"}, {"resource_api_version", "V3"}}; }

int PortOr(const nlohmann::json& config, const char* field, int fallback) {
  const nlohmann::json& value = At(config, field);
  return value.is_number_integer() && value > 0 && value < 65536 ? value.get<int>() : fallback;
}

}  // namespace

absl::StatusOr<Json> EnvoyAddress(const std::string& text) {
  if (absl::StartsWith(text, "unix:")) return Json{{"pipe", {{"path", text.substr(5)}}}};
  const size_t colon = text.rfind(':');
  int32_t port = 0;
  if (colon == std::string::npos || colon == 0 || !absl::SimpleAtoi(text.substr(colon + 1), &port) || port < 1 ||
      port > 65535) {
    return absl::InvalidArgumentError(fmt::format("'{}' is no address; write 10.0.0.1:15010 or unix:PATH", text));
  }
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return TcpAddress(host, port);
}

absl::StatusOr<Json> MakeEnvoyBootstrap(const pilot::ProxyBootstrap& proxy, const EnvoyBootstrapOptions& options) {
  const nlohmann::json& config = proxy.proxy_config;
  const Family family = FamilyOf(proxy);
  std::string folder = Text(config, "configPath");
  if (folder.empty()) folder = "./etc/istio/proxy";
  absl::StatusOr<Json> xds = EnvoyAddress(options.xds.empty() ? fmt::format("unix:{}/XDS", folder) : options.xds);
  absl::StatusOr<Json> sds =
      EnvoyAddress(options.sds.empty() ? "unix:./var/run/secrets/workload-spiffe-uds/socket" : options.sds);
  absl::StatusOr<Json> admin = options.admin.empty()
                                   ? TcpAddress(family.localhost, PortOr(config, "proxyAdminPort", 15000))
                                   : EnvoyAddress(options.admin);
  for (const absl::StatusOr<Json>* each : {&xds, &sds, &admin}) {
    if (!each->ok()) return each->status();
  }
  absl::StatusOr<BootstrapParts> parts = MakeBootstrapParts(proxy, options, family.lookup);
  if (!parts.ok()) return parts.status();

  Json out;
  Json locality = Json::object();
  if (!proxy.region.empty()) locality["region"] = proxy.region;
  if (!proxy.zone.empty()) locality["zone"] = proxy.zone;
  if (!proxy.sub_zone.empty()) locality["sub_zone"] = proxy.sub_zone;
  out["node"] = {{"id", proxy.node_id},
                 {"cluster", proxy.node_cluster},
                 {"locality", std::move(locality)},
                 {"metadata", Json(proxy.metadata)}};
  out["layered_runtime"]["layers"] =
      Json::array({{{"name", "global config"}, {"static_layer", RuntimeFlags(proxy, options.upstream_envoy)}},
                   {{"name", "admin"}, {"admin_layer", Json::object()}}});
  // A waypoint is told of workloads too, and by delta streams alone.
  const bool waypoint = absl::StartsWith(proxy.node_id, "waypoint~");
  if (!options.upstream_envoy) {
    Json extensions = Json::array();
    const auto extension = [&](const char* name, const char* type, Json value) {
      extensions.push_back(
          {{"name", name}, {"typed_config", {{kType, kTypedStruct}, {"type_url", type}, {"value", std::move(value)}}}});
    };
    if (waypoint) {
      extension("metadata_discovery", "type.googleapis.com/istio.workload.BootstrapExtension",
                {{"config_source", {{"ads", Json::object()}}}});
    }
    extension("envoy.bootstrap.internal_listener",
              "type.googleapis.com/envoy.extensions.bootstrap.internal_listener.v3.InternalListener",
              {{"buffer_size_kb", 64}});
    out["bootstrap_extensions"] = std::move(extensions);
  }
  if (!options.upstream_envoy || !options.without_agent) {
    out["stats_config"] = StatsConfig(proxy, options);
    if (waypoint) {
      Json& patterns = out["stats_config"]["stats_matcher"]["inclusion_list"]["patterns"];
      patterns.insert(patterns.begin() + 1, Json{{"prefix", "workload_discovery"}});
    }
  }
  // The template names no protocol here.
  if (admin->contains("socket_address")) (*admin)["socket_address"].erase("protocol");
  out["admin"] = {{"access_log",
                   Json::array({{{"name", "envoy.access_loggers.file"},
                                 {"typed_config",
                                  {{kType, "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog"},
                                   {"path", "/dev/null"}}}}})},
                  {"profile_path", "/var/lib/istio/data/envoy.prof"},
                  {"address", *admin}};
  out["dynamic_resources"] = {{"lds_config", FromAds()},
                              {"cds_config", FromAds()},
                              {"ads_config",
                               {{"api_type", options.delta || waypoint ? "DELTA_GRPC" : "GRPC"},
                                {"set_node_on_first_message_only", true},
                                {"transport_api_version", "V3"},
                                {"grpc_services", Json::array({{{"envoy_grpc", {{"cluster_name", "xds-grpc"}}}}})}}}};

  const auto local = [](const char* name, const Json& address) {
    Json cluster = StaticCluster(name, address);
    cluster["connect_timeout"] = "0.250s";
    return cluster;
  };
  Json stats = *admin;
  if (stats.contains("socket_address")) {
    const Json& at = stats["socket_address"];
    stats = TcpAddress(at["address"].get<std::string>(), at["port_value"].get<int>());
  }
  Json clusters = Json::array({local("prometheus_stats", stats)});
  if (!options.without_agent) {
    clusters.push_back(local("agent", TcpAddress(family.localhost, PortOr(config, "statusPort", 15020))));
  }
  Json secrets = StaticCluster("sds-grpc", *sds);
  AddHttp2(secrets);
  clusters.push_back(std::move(secrets));
  Json discovery = StaticCluster("xds-grpc", *xds);
  Json thresholds = Json::array();
  for (const char* priority : {"DEFAULT", "HIGH"}) {
    thresholds.push_back({{"priority", priority},
                          {"max_connections", 100000},
                          {"max_pending_requests", 100000},
                          {"max_requests", 100000}});
  }
  discovery["circuit_breakers"]["thresholds"] = std::move(thresholds);
  discovery["upstream_connection_options"] = {{"tcp_keepalive", {{"keepalive_time", 300}}}};
  // Each stream has a connection of its own.
  discovery["max_requests_per_connection"] = 1;
  AddHttp2(discovery);
  clusters.push_back(std::move(discovery));
  for (Json& cluster : parts->clusters) clusters.push_back(std::move(cluster));
  out["static_resources"]["clusters"] = std::move(clusters);

  Json ready = options.without_agent ? Json{{"cluster", "prometheus_stats"}, {"prefix_rewrite", "/ready"}}
                                     : Json{{"cluster", "agent"}};
  out["static_resources"]["listeners"] = Json::array(
      {PathListener(family, options.prometheus_port, "stats", "/stats/prometheus", {{"cluster", "prometheus_stats"}}),
       PathListener(family, options.status_port, "agent", "/healthz/ready", std::move(ready))});
  if (!parts->tracing.is_null()) out["tracing"] = std::move(parts->tracing);
  if (!parts->stats_sinks.empty()) out["stats_sinks"] = std::move(parts->stats_sinks);
  if (!options.outlier_log_path.empty()) {
    out["cluster_manager"]["outlier_detection"] = {{"event_log_path", options.outlier_log_path}};
  }
  if (const std::string text = Text(proxy.metadata, "LOAD_STATS_CONFIG_JSON"); !text.empty()) {
    Json load = ParseOrderedJson(text);
    if (load.is_discarded()) return absl::InvalidArgumentError("ISTIO_META_LOAD_STATS_CONFIG_JSON is no JSON");
    out["cluster_manager"]["load_stats_config"] = std::move(load);
  }
  return out;
}

}  // namespace wavetank::agent
