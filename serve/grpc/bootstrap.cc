#include "serve/grpc/bootstrap.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "core/gen/grpc/proxyless.h"
#include "core/model/proxyless.h"
#include "fmt/format.h"

namespace wavetank::serve {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kType[] = "@type";
constexpr char kHttp[] =
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
constexpr char kRouter[] = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router";
constexpr char kHttpOptions[] = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

// istiod 1.18's own patterns of names that become tags (tools/packaging/common/envoy_bootstrap.json); what a tag is cut
// from stays in Envoy's statistics under its full name.
constexpr std::pair<const char*, const char*> kTags[] = {
    {"cluster_name", R"(^cluster\.((.+?(\..+?\.svc\.cluster\.local)?)\.))"},
    {"tcp_prefix", R"(^tcp\.((.*?)\.)\w+?$)"},
    {"http_conn_manager_prefix", R"(^http\.(((?:[_.[:digit:]]*|[_\[\]aAbBcCdDeEfF[:digit:]]*))\.))"},
    {"listener_address", R"(^listener\.(((?:[_.[:digit:]]*|[_\[\]aAbBcCdDeEfF[:digit:]]*))\.))"},
    {"response_code_class", R"(_rq(_(\dxx))$)"},
};

Json Socket(const std::string& address, int port) {
  return {{"socket_address", {{"protocol", "TCP"}, {"address", address}, {"port_value", port}}}};
}

// "host:port" or "unix:PATH".
absl::StatusOr<Json> Address(const std::string& text) {
  if (absl::StartsWith(text, "unix:")) return Json{{"pipe", {{"path", text.substr(5)}}}};
  const size_t colon = text.rfind(':');
  int32_t port = 0;
  if (colon == std::string::npos || colon == 0 || !absl::SimpleAtoi(text.substr(colon + 1), &port) || port < 1 ||
      port > 65535) {
    return absl::InvalidArgumentError(fmt::format("'{}' is no address; write 10.0.0.1:15010 or unix:PATH", text));
  }
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return Socket(host, port);
}

Json Cluster(const std::string& name, const Json& address) {
  return {{"name", name},
          {"type", "STATIC"},
          {"connect_timeout", "1s"},
          {"lb_policy", "ROUND_ROBIN"},
          {"load_assignment",
           {{"cluster_name", name},
            {"endpoints", Json::array({{{"lb_endpoints", Json::array({{{"endpoint", {{"address", address}}}}})}}})}}}};
}

Json GrpcCluster(const std::string& name, const Json& address) {
  Json out = Cluster(name, address);
  out["typed_extension_protocol_options"][kHttpOptions] = {
      {kType, std::string("type.googleapis.com/") + kHttpOptions},
      {"explicit_http_config", {{"http2_protocol_options", Json::object()}}}};
  return out;
}

// A listener that passes one path on.
Json PathListener(int port, const std::string& stat_prefix, const std::string& path, Json route) {
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
  return {{"address", Socket("0.0.0.0", port)}, {"filter_chains", Json::array({{{"filters", Json::array({filter})}}})}};
}

Json FromAds() { return {{"ads", Json::object()}, {"initial_fetch_timeout", "0s"}, {"resource_api_version", "V3"}}; }

Json Locality(const pilot::ProxyBootstrap& proxy) {
  Json out = Json::object();
  if (!proxy.region.empty()) out["region"] = proxy.region;
  if (!proxy.zone.empty()) out["zone"] = proxy.zone;
  if (!proxy.sub_zone.empty()) out["sub_zone"] = proxy.sub_zone;
  return out;
}

}  // namespace

absl::StatusOr<Json> MakeBootstrap(const pilot::ProxyBootstrap& proxy, const BootstrapOptions& options) {
  if (options.grpc) return MakeGrpcBootstrap(proxy, {options.xds, ""});
  absl::StatusOr<Json> xds = Address(options.xds), sds = Address(options.sds), admin = Address(options.admin);
  for (const absl::StatusOr<Json>* each : {&xds, &sds, &admin}) {
    if (!each->ok()) return each->status();
  }
  Json out;
  out["node"] = {{"id", proxy.node_id},
                 {"cluster", proxy.node_cluster},
                 {"locality", Locality(proxy)},
                 {"metadata", Json(proxy.metadata)}};

  Json runtime = {{"overload.global_downstream_max_connections", "2147483647"},
                  {"re2.max_program_size.error_level", "32768"},
                  {"envoy.reloadable_features.http_reject_path_with_fragment", "false"}};
  if (!options.upstream_envoy) {
    // Of the Envoy that Istio 1.18 ships; newer ones refuse a runtime key that they have dropped.
    runtime["envoy.deprecated_features:envoy.config.listener.v3.Listener.hidden_envoy_deprecated_use_original_dst"] =
        "true";
    runtime["envoy.reloadable_features.no_extension_lookup_by_name"] = "false";
  }
  out["layered_runtime"]["layers"] = Json::array({{{"name", "global config"}, {"static_layer", std::move(runtime)}},
                                                  {{"name", "admin"}, {"admin_layer", Json::object()}}});

  if (!options.upstream_envoy) {
    out["bootstrap_extensions"] = Json::array(
        {{{"name", "envoy.bootstrap.internal_listener"},
          {"typed_config",
           {{kType, "type.googleapis.com/udpa.type.v1.TypedStruct"},
            {"type_url", "type.googleapis.com/envoy.extensions.bootstrap.internal_listener.v3.InternalListener"},
            {"value", {{"buffer_size_kb", 64}}}}}}});
    Json tags = Json::array();
    for (const auto& [name, regex] : kTags) tags.push_back({{"tag_name", name}, {"regex", regex}});
    Json patterns = Json::array();
    for (const char* prefix : {"reporter=", "cluster_manager", "listener_manager", "server", "cluster.xds-grpc", "wasm",
                               "component", "istio"}) {
      patterns.push_back({{"prefix", prefix}});
    }
    for (const char* suffix : {"rbac.allowed", "rbac.denied", "shadow_allowed", "shadow_denied"}) {
      patterns.push_back({{"suffix", suffix}});
    }
    out["stats_config"] = {{"use_all_default_tags", false},
                           {"stats_tags", std::move(tags)},
                           {"stats_matcher", {{"inclusion_list", {{"patterns", std::move(patterns)}}}}}};
  }
  out["admin"]["address"] = *admin;

  out["dynamic_resources"] = {{"lds_config", FromAds()},
                              {"cds_config", FromAds()},
                              {"ads_config",
                               {{"api_type", options.delta ? "DELTA_GRPC" : "GRPC"},
                                {"set_node_on_first_message_only", true},
                                {"transport_api_version", "V3"},
                                {"grpc_services", Json::array({{{"envoy_grpc", {{"cluster_name", "xds-grpc"}}}}})}}}};

  Json clusters = Json::array({Cluster("prometheus_stats", *admin)});
  if (!options.upstream_envoy) clusters.push_back(Cluster("agent", Socket("127.0.0.1", proxy.status_port)));
  clusters.push_back(GrpcCluster("sds-grpc", *sds));
  Json discovery = GrpcCluster("xds-grpc", *xds);
  Json thresholds = Json::array();
  for (const char* priority : {"DEFAULT", "HIGH"}) {
    thresholds.push_back({{"priority", priority},
                          {"max_connections", 100000},
                          {"max_pending_requests", 100000},
                          {"max_requests", 100000}});
  }
  discovery["circuit_breakers"]["thresholds"] = std::move(thresholds);
  discovery["upstream_connection_options"] = {{"tcp_keepalive", {{"keepalive_time", 300}}}};
  clusters.push_back(std::move(discovery));
  out["static_resources"]["clusters"] = std::move(clusters);

  // Without an agent, Envoy's own readiness is all there is to ask.
  Json ready = options.upstream_envoy ? Json{{"cluster", "prometheus_stats"}, {"prefix_rewrite", "/ready"}}
                                      : Json{{"cluster", "agent"}};
  out["static_resources"]["listeners"] =
      Json::array({PathListener(15090, "stats", "/stats/prometheus", {{"cluster", "prometheus_stats"}}),
                   PathListener(15021, "agent", "/healthz/ready", std::move(ready))});
  if (!options.upstream_envoy) {
    out["cluster_manager"] = {{"outlier_detection", {{"event_log_path", "/dev/stdout"}}}};
  }
  return out;
}

absl::StatusOr<Json> MakeGrpcBootstrap(const pilot::ProxyBootstrap& proxy, const GrpcBootstrapOptions& options) {
  if (absl::StatusOr<Json> valid = Address(options.xds); !valid.ok()) return valid.status();
  const std::string uri =
      absl::StartsWith(options.xds, "unix:/") ? "unix://" + options.xds.substr(5) : options.xds;  // an absolute path
  Json out;
  out["xds_servers"] = Json::array({{{"server_uri", uri},
                                     {"channel_creds", Json::array({{{"type", "insecure"}}})},
                                     {"server_features", {"xds_v3"}}}});
  out["node"] = {{"id", proxy.node_id}, {"locality", Locality(proxy)}, {"metadata", Json(proxy.metadata)}};
  out["node"]["metadata"]["GENERATOR"] = pilot::kGrpcGenerator;
  if (!options.certificates.empty()) {
    const std::string folder = options.certificates + "/";
    out["certificate_providers"]["default"] = {{"plugin_name", "file_watcher"},
                                               {"config",
                                                {{"certificate_file", folder + "cert-chain.pem"},
                                                 {"private_key_file", folder + "key.pem"},
                                                 {"ca_certificate_file", folder + "root-cert.pem"},
                                                 {"refresh_interval", "900s"}}}};
  }
  out["server_listener_resource_name_template"] = std::string(pilot::kGrpcServerListenerPrefix) + "%s";
  return out;
}

}  // namespace wavetank::serve
