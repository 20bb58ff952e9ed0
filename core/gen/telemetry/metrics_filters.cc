#include "core/gen/telemetry/metrics_filters.h"

#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/strings/str_replace.h"
#include "core/base/json_text.h"
#include "core/envoyapi/any.h"
#include "core/gen/telemetry/proxy_telemetry.h"
#include "core/gen/view/listener_filters.h"
#include "core/gen/wire/duration.h"
#include "envoy/extensions/filters/http/wasm/v3/wasm.pb.h"
#include "envoy/extensions/filters/network/wasm/v3/wasm.pb.h"
#include "google/protobuf/wrappers.pb.h"
#include "istio/stats.pb.h"

namespace wavetank::pilot {
namespace {

using MetricsProvider = config::ExtensionProvider;

// Istio's metrics as either backend calls them; empty: it has none such.
struct MetricName {
  std::string_view istio, prometheus, stackdriver;
};
constexpr MetricName kMetricNames[] = {
    {"REQUEST_COUNT", "requests_total", "request_count"},
    {"REQUEST_DURATION", "request_duration_milliseconds", "response_latencies"},
    {"REQUEST_SIZE", "request_bytes", "request_bytes"},
    {"RESPONSE_SIZE", "response_bytes", "response_bytes"},
    {"TCP_OPENED_CONNECTIONS", "tcp_connections_opened_total", "connection_open_count"},
    {"TCP_CLOSED_CONNECTIONS", "tcp_connections_closed_total", "connection_close_count"},
    {"TCP_SENT_BYTES", "tcp_sent_bytes_total", "sent_bytes_count"},
    {"TCP_RECEIVED_BYTES", "tcp_received_bytes_total", "received_bytes_count"},
    {"GRPC_REQUEST_MESSAGES", "request_messages_total", ""},
    {"GRPC_RESPONSE_MESSAGES", "response_messages_total", ""},
};
const MetricName* FindMetric(std::string_view istio) {
  for (const MetricName& name : kMetricNames) {
    if (name.istio == istio) return &name;
  }
  return nullptr;
}

// The host header tells who is called only where the caller is one of ours.
bool DistrustsHostHeader(ListenerClass listener_class) { return listener_class != ListenerClass::kSidecarOutbound; }

stats::PluginConfig PrometheusConfig(const MetricsSpec& spec, ListenerClass listener_class) {
  stats::PluginConfig out;
  out.set_disable_host_header_fallback(DistrustsHostHeader(listener_class));
  if (spec.reporting_interval) SetDuration(*spec.reporting_interval, out.mutable_tcp_reporting_duration());
  for (const MetricsSpec::Override& override : spec.overrides) {
    stats::MetricConfig& metric = *out.add_metrics();
    const MetricName* known = FindMetric(override.metric);
    metric.set_name(known == nullptr ? override.metric : std::string(known->prometheus));
    metric.set_drop(override.disabled);
    for (const MetricsSpec::Tag& tag : override.tags) {
      if (tag.remove) {
        metric.add_tags_to_remove(tag.name);
      } else {
        (*metric.mutable_dimensions())[tag.name] = tag.value;
      }
    }
  }
  return out;
}

// The filter reads JSON, fields in the order of its API.
std::string StackdriverConfig(const MetricsSpec& spec, const LoggingSpec* logging, ListenerClass listener_class) {
  const bool server = listener_class == ListenerClass::kSidecarInbound;
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  if (logging == nullptr) out["disable_server_access_logging"] = true;
  if (DistrustsHostHeader(listener_class)) out["disable_host_header_fallback"] = true;
  if (logging != nullptr && !logging->HasFilter()) out["access_logging"] = server ? "FULL" : "ERRORS_ONLY";
  if (logging != nullptr && logging->HasFilter() && !(*logging->filter)->empty()) {
    out["access_logging_filter_expression"] = **logging->filter;
  }
  out["metric_expiry_duration"] = "3600s";
  std::map<std::string, std::pair<bool, std::map<std::string, std::string>>> overrides;
  for (const MetricsSpec::Override& override : spec.overrides) {
    const MetricName* known = FindMetric(override.metric);
    if (known != nullptr && known->stackdriver.empty()) continue;
    std::string name = override.metric;
    if (known != nullptr) name = (server ? "server/" : "client/") + std::string(known->stackdriver);
    if (name.empty()) continue;
    auto& [drop, tags] = overrides[name];
    drop = override.disabled;
    for (const MetricsSpec::Tag& tag : override.tags) {
      if (!tag.remove) tags[tag.name] = tag.value;  // it cannot remove any
    }
  }
  for (const auto& [name, override] : overrides) {
    nlohmann::ordered_json& to = out["metrics_overrides"][name] = nlohmann::ordered_json::object();
    if (override.first) to["drop"] = true;
    for (const auto& [tag, value] : override.second) to["tag_overrides"][tag] = value;
  }
  // istiod: jsonUnescaper, which also meets such text where a user wrote it.
  return absl::StrReplaceAll(JsonText(out), {{"\\u003e", ">"}, {"\\u003c", "<"}, {"\\u0026", "&"}});
}

void FillStackdriver(const std::string& configuration, ListenerClass listener_class,
                     ::envoy::extensions::wasm::v3::PluginConfig& out) {
  const char* id = listener_class == ListenerClass::kSidecarInbound ? "stackdriver_inbound" : "stackdriver_outbound";
  out.set_root_id(id);
  auto* vm = out.mutable_vm_config();
  vm->set_vm_id(id);
  vm->set_runtime("envoy.wasm.runtime.null");
  vm->mutable_code()->mutable_local()->set_inline_string("envoy.wasm.null.stackdriver");
  google::protobuf::StringValue value;
  value.set_value(configuration);
  *out.mutable_configuration() = PackAny(value);
}

std::string MetricsFilter(bool tcp, const char* name, const google::protobuf::Message& config) {
  return (tcp ? NetworkFilter : HttpFilterField)(name, TypeUrlOf(config), Serialize(config));
}

std::string StackdriverFilter(const std::string& configuration, ListenerClass listener_class, bool tcp) {
  namespace filters = ::envoy::extensions::filters;
  constexpr const char* kName = "istio.stackdriver";
  if (tcp) {
    filters::network::wasm::v3::Wasm wasm;
    FillStackdriver(configuration, listener_class, *wasm.mutable_config());
    return MetricsFilter(true, kName, wasm);
  }
  filters::http::wasm::v3::Wasm wasm;
  FillStackdriver(configuration, listener_class, *wasm.mutable_config());
  return MetricsFilter(false, kName, wasm);
}

}  // namespace

std::string MakeMetricsFilters(const WorkloadTelemetry& telemetry, ListenerClass listener_class,
                               const config::MeshConfig& mesh, bool stackdriver, bool tcp) {
  const TelemetrySide side = SideOf(listener_class);
  const std::map<std::string, MetricsSpec> metrics = telemetry.Metrics(side);
  const std::map<std::string, LoggingSpec> logging = telemetry.Logging(side);
  std::set<std::string> names;
  for (const auto& [name, spec] : metrics) names.insert(name);
  for (const auto& [name, spec] : logging) {
    if (!spec.disabled) names.insert(name);
  }
  std::string out;
  for (const std::string& name : names) {
    const MetricsProvider* provider = config::FindTelemetryProvider(mesh.extension_providers, name);
    if (provider == nullptr) continue;
    const auto measured = metrics.find(name);
    if (std::holds_alternative<MetricsProvider::Prometheus>(provider->telemetry)) {
      if (measured == metrics.end() || measured->second.disabled) continue;
      out += MetricsFilter(tcp, "istio.stats", PrometheusConfig(measured->second, listener_class));
    } else if (std::holds_alternative<MetricsProvider::Stackdriver>(provider->telemetry) && stackdriver) {
      // Its filter logs, too. What filter the log has istiod looks up by the provider's own name.
      const auto log = logging.find(name);
      std::optional<LoggingSpec> logs;
      if (log != logging.end() && !log->second.disabled) {
        const auto own = logging.find(provider->name);
        logs = own == logging.end() ? LoggingSpec() : own->second;
      }
      out += StackdriverFilter(StackdriverConfig(measured == metrics.end() ? MetricsSpec() : measured->second,
                                                 logs ? &*logs : nullptr, listener_class),
                               listener_class, tcp);
    }
  }
  return out;
}

}  // namespace wavetank::pilot
