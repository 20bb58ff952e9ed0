#include "core/agent/bootstrap_parts.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "core/base/duration.h"
#include "core/base/json_access.h"
#include "fmt/format.h"

namespace wavetank::agent {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kHttpOptions[] = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
constexpr char kTlsContext[] = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext";

// {"address": ..., "port_value": ...} (option/convert.go, addressConverter).
absl::StatusOr<Json> PlainAddress(const std::string& text, const char* what, const std::string& host_ip) {
  const size_t colon = text.rfind(':');
  int32_t port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(text.substr(colon + 1), &port) || port < 0 || port > 65535) {
    return absl::InvalidArgumentError(fmt::format("unable to parse {} address \"{}\"", what, text));
  }
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host == "$(HOST_IP)" && !host_ip.empty()) host = host_ip;
  return Json{{"address", host}, {"port_value", port}};
}

Json SdsConfig(const std::string& name) {
  Json config = {{"api_config_source",
                  {{"api_type", "GRPC"},
                   {"transport_api_version", "V3"},
                   {"grpc_services", Json::array({{{"envoy_grpc", {{"cluster_name", "sds-grpc"}}}}})},
                   {"set_node_on_first_message_only", true}}},
                 {"resource_api_version", "V3"}};
  if (name == "default" || name == "ROOTCA") config["initial_fetch_timeout"] = "0s";
  return {{"name", name}, {"sds_config", std::move(config)}};
}

// The transport socket for ClientTLSSettings; null for none (option/convert.go, tlsContextConvert).
Json TlsSocket(const nlohmann::json& settings, const char* sni, const nlohmann::json& metadata, bool h2) {
  if (!settings.is_object()) return nullptr;
  const std::string mode = Text(settings, "mode", "DISABLE");
  if (mode != "SIMPLE" && mode != "MUTUAL" && mode != "ISTIO_MUTUAL") return nullptr;
  const auto file = [&](const char* override, const char* field) {
    const std::string text = Text(metadata, override);
    return text.empty() ? Text(settings, field) : text;
  };
  Json common = Json::object();
  std::string root = "ROOTCA";
  if (mode == "ISTIO_MUTUAL") {
    common["tls_certificate_sds_secret_configs"] = Json::array({SdsConfig("default")});
  } else {
    const std::string ca = file("TLS_CLIENT_ROOT_CERT", "caCertificates");
    root = ca.empty() ? "" : "file-root:" + ca;
    const std::string certificate = file("TLS_CLIENT_CERT_CHAIN", "clientCertificate");
    const std::string key = file("TLS_CLIENT_KEY", "privateKey");
    if (mode == "MUTUAL" && !certificate.empty() && !key.empty()) {
      common["tls_certificate_sds_secret_configs"] =
          Json::array({SdsConfig(fmt::format("file-cert:{}~{}", certificate, key))});
    }
  }
  Json validation = Json::object();
  if (const nlohmann::json& names = At(settings, "subjectAltNames"); names.is_array() && !names.empty()) {
    Json matchers = Json::array();
    for (const nlohmann::json& name : names) matchers.push_back({{"exact", Json(name)}});
    validation["match_subject_alt_names"] = std::move(matchers);
  }
  Json& combined = common["combined_validation_context"];
  combined["default_validation_context"] = std::move(validation);
  if (!root.empty()) combined["validation_context_sds_secret_config"] = SdsConfig(root);
  if (h2) {
    common["alpn_protocols"] = mode == "ISTIO_MUTUAL" ? Json::array({"istio", "h2"}) : Json::array({"h2"});
  }
  Json context = {{kType, kTlsContext}, {"common_tls_context", std::move(common)}};
  std::string name = Text(settings, "sni");
  if (name.empty() && mode == "ISTIO_MUTUAL") name = sni;
  if (!name.empty()) context["sni"] = name;
  return {{"name", "envoy.transport_sockets.tls"}, {"typed_config", std::move(context)}};
}

// cluster.UpstreamConnectionOptions, as Go's encoding of its struct has it: numbers stand in objects of their own.
Json Keepalive(const nlohmann::json& settings) {
  Json keepalive = Json::object();
  if (const nlohmann::json& probes = At(settings, "probes"); probes.is_number_integer() && probes > 0) {
    keepalive["keepalive_probes"] = {{"value", Json(probes)}};
  }
  for (const auto& [field, name] : {std::pair("time", "keepalive_time"), std::pair("interval", "keepalive_interval")}) {
    const std::optional<Duration> value = ParseGoDuration(Text(settings, field));
    if (value && *value >= 1s) keepalive[name] = {{"value", *value / std::chrono::seconds(1)}};
  }
  return {{"tcp_keepalive", std::move(keepalive)}};
}

Json DnsCluster(const char* name, const std::string& lookup, const Json& address, Json tls, bool h2) {
  Json out = StaticCluster(name, Json{{"socket_address", address}});
  out["type"] = "STRICT_DNS";
  out["respect_dns_ttl"] = true;
  out["dns_lookup_family"] = lookup;
  if (!tls.is_null()) out["transport_socket"] = std::move(tls);
  if (h2) AddHttp2(out);
  return out;
}

Json TracingHttp(const char* name, const char* type, Json fields) {
  Json config = {{kType, fmt::format("type.googleapis.com/envoy.config.trace.v3.{}", type)}};
  config.update(fields);
  return {{"http", {{"name", name}, {"typed_config", std::move(config)}}}};
}

absl::Status AddTracing(const pilot::ProxyBootstrap& proxy, const EnvoyBootstrapOptions& options,
                        const std::string& lookup, BootstrapParts& out) {
  const nlohmann::json& tracing = At(proxy.proxy_config, "tracing");
  if (!tracing.is_object()) return absl::OkStatus();
  const nlohmann::json& tls = At(tracing, "tlsSettings");
  const auto cluster = [&](const char* name, const char* field, const char* what, bool h2) -> absl::Status {
    const std::string text = Text(At(tracing, field), "address");
    if (text.empty()) return absl::NotFoundError("");
    const absl::StatusOr<Json> address = PlainAddress(text, what, options.host_ip);
    if (!address.ok()) return address.status();
    out.clusters.push_back(DnsCluster(name, lookup, *address, TlsSocket(tls, "tracer", proxy.metadata, h2), h2));
    return absl::OkStatus();
  };
  absl::Status status;
  if (tracing.contains("zipkin")) {
    status = cluster("zipkin", "zipkin", "zipkin", false);
    if (status.ok()) {
      out.clusters.back()["dns_refresh_rate"] = "30s";
      out.tracing = TracingHttp("envoy.tracers.zipkin", "ZipkinConfig",
                                {{"collector_cluster", "zipkin"},
                                 {"collector_endpoint", "/api/v2/spans"},
                                 {"collector_endpoint_version", "HTTP_JSON"},
                                 {"trace_id_128bit", true},
                                 {"shared_span_context", false}});
    }
  } else if (tracing.contains("lightstep")) {
    status = cluster("lightstep", "lightstep", "lightstep", true);
    if (status.ok()) {
      std::string folder = Text(proxy.proxy_config, "configPath");
      if (folder.starts_with("./")) folder = folder.substr(2);  // Go's path.Join
      out.tracing = TracingHttp(
          "envoy.tracers.lightstep", "LightstepConfig",
          {{"collector_cluster", "lightstep"}, {"access_token_file", folder + "/lightstep_access_token.txt"}});
    }
  } else if (tracing.contains("datadog")) {
    status = cluster("datadog_agent", "datadog", "datadog", false);
    if (status.ok()) {
      out.tracing = TracingHttp("envoy.tracers.datadog", "DatadogConfig",
                                {{"collector_cluster", "datadog_agent"}, {"service_name", proxy.node_cluster}});
    }
  } else if (tracing.contains("openCensusAgent")) {
    const nlohmann::json& agent = At(tracing, "openCensusAgent");
    Json contexts = Json::array();
    for (const nlohmann::json& each : Items(At(agent, "context"))) {
      const std::string name = each.is_string() ? each.get<std::string>() : "";
      if (name == "W3C_TRACE_CONTEXT") contexts.push_back("TRACE_CONTEXT");
      if (name == "GRPC_BIN") contexts.push_back("GRPC_TRACE_BIN");
      if (name == "CLOUD_TRACE_CONTEXT" || name == "B3") contexts.push_back(name);
    }
    if (Items(At(agent, "context")).empty()) {
      contexts = Json::array({"TRACE_CONTEXT", "GRPC_TRACE_BIN", "CLOUD_TRACE_CONTEXT", "B3"});
    }
    if (const std::string address = Text(agent, "address"); !address.empty()) {
      out.tracing = TracingHttp("envoy.tracers.opencensus", "OpenCensusConfig",
                                {{"ocagent_exporter_enabled", true},
                                 {"ocagent_address", address},
                                 {"incoming_trace_context", contexts},
                                 {"outgoing_trace_context", contexts},
                                 {"trace_config",
                                  {{"constant_sampler", {{"decision", "ALWAYS_PARENT"}}},
                                   {"max_number_of_annotations", 200},
                                   {"max_number_of_attributes", 200},
                                   {"max_number_of_message_events", 200},
                                   {"max_number_of_links", 200}}}});
    }
  } else if (tracing.contains("stackdriver")) {
    return absl::FailedPreconditionError("unable to process Stackdriver tracer: missing GCP Project");
  }
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

}  // namespace

Json TcpAddress(const std::string& address, int port) {
  return {{"socket_address", {{"protocol", "TCP"}, {"address", address}, {"port_value", port}}}};
}

Json StaticCluster(const std::string& name, const Json& address) {
  return {{"name", name},
          {"type", "STATIC"},
          {"connect_timeout", "1s"},
          {"lb_policy", "ROUND_ROBIN"},
          {"load_assignment",
           {{"cluster_name", name},
            {"endpoints", Json::array({{{"lb_endpoints", Json::array({{{"endpoint", {{"address", address}}}}})}}})}}}};
}

void AddHttp2(Json& cluster) {
  cluster["typed_extension_protocol_options"][kHttpOptions] = {
      {kType, std::string("type.googleapis.com/") + kHttpOptions},
      {"explicit_http_config", {{"http2_protocol_options", Json::object()}}}};
}

absl::StatusOr<BootstrapParts> MakeBootstrapParts(const pilot::ProxyBootstrap& proxy,
                                                  const EnvoyBootstrapOptions& options, const std::string& lookup) {
  const nlohmann::json& config = proxy.proxy_config;
  BootstrapParts out;
  if (absl::Status status = AddTracing(proxy, options, lookup, out); !status.ok()) return status;
  const struct {
    const char *field, *name, *what;
  } services[] = {{"envoyMetricsService", "envoy_metrics_service", "envoy_metrics_service_address"},
                  {"envoyAccessLogService", "envoy_accesslog_service", "envoy_accesslog_service_address"}};
  for (const auto& service : services) {
    const nlohmann::json& settings = At(config, service.field);
    const std::string text = Text(settings, "address");
    if (text.empty()) continue;
    const absl::StatusOr<Json> address = PlainAddress(text, service.what, options.host_ip);
    if (!address.ok()) return address.status();
    Json cluster = DnsCluster(service.name, lookup, *address,
                              TlsSocket(At(settings, "tlsSettings"), service.name, proxy.metadata, true), true);
    if (const nlohmann::json& keepalive = At(settings, "tcpKeepalive"); keepalive.is_object()) {
      cluster["upstream_connection_options"] = Keepalive(keepalive);
    }
    out.clusters.push_back(std::move(cluster));
    if (service.field != std::string_view("envoyMetricsService")) continue;
    out.stats_sinks.push_back({{"name", "envoy.stat_sinks.metrics_service"},
                               {"typed_config",
                                {{kType, "type.googleapis.com/envoy.config.metrics.v3.MetricsServiceConfig"},
                                 {"transport_api_version", "V3"},
                                 {"grpc_service", {{"envoy_grpc", {{"cluster_name", "envoy_metrics_service"}}}}}}}});
  }
  if (const std::string statsd = Text(config, "statsdUdpAddress"); !statsd.empty()) {
    const absl::StatusOr<Json> address = PlainAddress(statsd, "statsd", options.host_ip);
    if (!address.ok()) return address.status();
    out.stats_sinks.push_back({{"name", "envoy.stat_sinks.statsd"},
                               {"typed_config",
                                {{kType, "type.googleapis.com/envoy.config.metrics.v3.StatsdSink"},
                                 {"address", {{"socket_address", *address}}}}}});
  }
  return out;
}

}  // namespace wavetank::agent
