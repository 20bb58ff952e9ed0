#include "core/gen/telemetry/tracing_providers.h"

#include <fmt/format.h>

#include <charconv>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/base/json_access.h"
#include "core/envoyapi/any.h"
#include "core/gen/authz/provider_cluster.h"
#include "core/gen/view/done_for.h"
#include "core/gen/view/proxy_view.h"
#include "core/gen/wire/duration.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "envoy/config/trace/v3/datadog.pb.h"
#include "envoy/config/trace/v3/http_tracer.pb.h"
#include "envoy/config/trace/v3/lightstep.pb.h"
#include "envoy/config/trace/v3/opencensus.pb.h"
#include "envoy/config/trace/v3/opentelemetry.pb.h"
#include "envoy/config/trace/v3/skywalking.pb.h"
#include "envoy/config/trace/v3/zipkin.pb.h"

// Tracers that Istio 1.18 still has are deprecated in today's Envoy API.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace wavetank::pilot {
namespace {

namespace trace = ::envoy::config::trace::v3;
using SpanProvider = config::ExtensionProvider;
using Tracer = SpanProvider::Tracer;
using CensusPb = trace::OpenCensusConfig;

constexpr const char* kOpenCensus = "envoy.tracers.opencensus";
constexpr const char* kOpenTelemetry = "envoy.tracers.opentelemetry";

std::string MakeTracer(const char* name, const google::protobuf::Message& config) {
  trace::Tracing::Http out;
  out.set_name(name);
  *out.mutable_typed_config() = PackAny(config);
  return Serialize(out);
}

void SetGrpc(const ProviderCluster& to, ::envoy::config::core::v3::GrpcService& out) {
  out.mutable_envoy_grpc()->set_cluster_name(to.cluster);
  out.mutable_envoy_grpc()->set_authority(to.hostname);
}

// istiod: buildHTTPHeaders.
void SetHttp(const Tracer& tracer, const std::string& uri, std::optional<Duration> timeout, const ProviderCluster& to,
             ::envoy::config::core::v3::HttpService& out) {
  using Option = ::envoy::config::core::v3::HeaderValueOption;
  out.mutable_http_uri()->set_uri(uri);
  out.mutable_http_uri()->set_cluster(to.cluster);
  if (timeout) SetDuration(*timeout, out.mutable_http_uri()->mutable_timeout());
  for (const auto& [name, value] : tracer.headers) {
    Option& header = *out.add_request_headers_to_add();
    header.set_append_action(Option::OVERWRITE_IF_EXISTS_OR_ADD);
    header.mutable_header()->set_key(name);
    header.mutable_header()->set_value(value);
  }
}

// istiod: zipkinConfig.
std::string Zipkin(const Tracer& tracer, const ProviderCluster& to, const Proxy& proxy, const Profile& profile) {
  trace::ZipkinConfig out;
  const bool path = !tracer.path.empty() && profile.Has(Change::kZipkinPaths);
  const std::string endpoint = path ? tracer.path : "/api/v2/spans";
  if (DoneFor(proxy, profile, Change::kCollectorService)) {
    // Envoy wants a timeout.
    SetHttp(tracer, absl::StrCat("http://", to.hostname, endpoint), tracer.timeout.value_or(5s), to,
            *out.mutable_collector_service());
  } else {
    out.set_collector_cluster(to.cluster);
    out.set_collector_endpoint(endpoint);
    out.set_collector_hostname(to.hostname);
  }
  if (tracer.b3_with_w3c && DoneFor(proxy, profile, Change::kZipkinW3cContext))
    out.set_trace_context_option(trace::ZipkinConfig::USE_B3_WITH_W3C_PROPAGATION);
  out.set_collector_endpoint_version(trace::ZipkinConfig::HTTP_JSON);
  out.set_trace_id_128bit(!tracer.short_trace_ids);
  out.mutable_shared_span_context()->set_value(false);
  return MakeTracer("envoy.tracers.zipkin", out);
}

std::string Datadog(const std::string& service, const ProviderCluster& to) {
  trace::DatadogConfig out;
  out.set_collector_cluster(to.cluster);
  out.set_collector_hostname(to.hostname);
  out.set_service_name(service);
  return MakeTracer("envoy.tracers.datadog", out);
}

// Since Envoy 1.24 Lightstep is reached by OpenTelemetry.
std::string Lightstep(const Tracer& tracer, bool by_otel, const ProviderCluster& to) {
  if (!by_otel) {
    trace::LightstepConfig out;
    out.set_collector_cluster(to.cluster);
    out.set_access_token_file(tracer.access_token);
    return MakeTracer("envoy.tracers.lightstep", out);
  }
  trace::OpenTelemetryConfig out;
  SetGrpc(to, *out.mutable_grpc_service());
  auto* token = out.mutable_grpc_service()->add_initial_metadata();
  token->set_key("lightstep-access-token");
  token->set_value(tracer.access_token);
  return MakeTracer("envoy.tracers.lightstep", out);
}

std::string SkyWalking(const ProviderCluster& to) {
  trace::SkyWalkingConfig out;
  SetGrpc(to, *out.mutable_grpc_service());
  return MakeTracer("envoy.tracers.skywalking", out);
}

// A host and a path, as Go's url.JoinPath puts them together.
std::string JoinPath(const std::string& host, std::string_view path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  return path.empty() ? host : host + "/" + std::string(path);
}

// What OpenTelemetry's conventions call the service of a Kubernetes pod. istiod: otelServiceName.
std::string ConventionalName(const Proxy& proxy) {
  using nlohmann::json;
  const json& raw = *proxy.metadata.raw;
  if (std::string name = Text(At(raw, "ANNOTATIONS"), "resource.opentelemetry.io/service.name"); !name.empty())
    return name;
  for (const char* label : {"app.kubernetes.io/instance", "app.kubernetes.io/name"}) {
    if (const auto it = proxy.labels.find(label); it != proxy.labels.end() && !it->second.empty()) return it->second;
  }
  if (!proxy.metadata.workload_name.empty()) return proxy.metadata.workload_name;
  if (const size_t dot = proxy.id.find('.'); dot != std::string::npos && dot != 0) return proxy.id.substr(0, dot);
  const std::string containers = Text(raw, "APP_CONTAINERS");
  return containers.empty() || containers.find(',') != std::string::npos ? "unknown_service" : containers;
}

// istiod: otelConfig. Samplers (dynatraceSampler) are not modelled.
std::string OpenTelemetry(const Tracer& tracer, const Proxy& proxy, const ProviderCluster& to, const Profile& profile) {
  const bool conventions = tracer.semantic_conventions && profile.Has(Change::kOtelServiceNames);
  trace::OpenTelemetryConfig out;
  const bool later = profile.Has(Change::kOtelOverHttp);
  if (later && tracer.over_http) {
    SetHttp(tracer, JoinPath(to.hostname, tracer.path), tracer.timeout, to, *out.mutable_http_service());
  } else {
    auto& grpc = *out.mutable_grpc_service();
    SetGrpc(to, grpc);
    if (!tracer.over_http && profile.Has(Change::kOtelMetadata)) {
      if (tracer.timeout) SetDuration(*tracer.timeout, grpc.mutable_timeout());
      for (const auto& [name, value] : tracer.headers) {
        auto* metadata = grpc.add_initial_metadata();
        metadata->set_key(name);
        metadata->set_value(value);
      }
    }
  }
  const auto detect = [&](const char* name, const char* type) {
    auto* detector = out.add_resource_detectors();
    detector->set_name(absl::StrCat("envoy.tracers.opentelemetry.resource_detectors.", name));
    detector->mutable_typed_config()->set_type_url(
        absl::StrCat("type.googleapis.com/envoy.extensions.tracers.opentelemetry.resource_detectors.v3.", type));
  };
  if (later && tracer.detects_environment) detect("environment", "EnvironmentResourceDetectorConfig");
  if (later && tracer.detects_dynatrace) detect("dynatrace", "DynatraceResourceDetectorConfig");
  // The environment may say more than the conventions' name.
  if (conventions && !tracer.detects_environment) detect("environment", "EnvironmentResourceDetectorConfig");
  out.set_service_name(conventions ? ConventionalName(proxy) : proxy.service_cluster);
  return MakeTracer(kOpenTelemetry, out);
}

void SetContexts(const std::vector<CensusPb::TraceContext>& contexts, CensusPb& out) {
  for (const CensusPb::TraceContext context : contexts) {
    out.add_incoming_trace_context(context);
    out.add_outgoing_trace_context(context);
  }
}
void SetAllContexts(CensusPb& out) {
  SetContexts({CensusPb::B3, CensusPb::CLOUD_TRACE_CONTEXT, CensusPb::GRPC_TRACE_BIN, CensusPb::TRACE_CONTEXT}, out);
}

std::string OpenCensus(const Tracer& tracer) {
  using Context = Tracer::TraceContext;
  CensusPb out;
  out.set_ocagent_address(fmt::format("{}:{}", tracer.service, tracer.port));
  out.set_ocagent_exporter_enabled(true);
  if (tracer.contexts.empty()) SetAllContexts(out);
  for (const Context context : tracer.contexts) {
    switch (context) {
      case Context::kB3:
        SetContexts({CensusPb::B3}, out);
        break;
      case Context::kCloudTrace:
        SetContexts({CensusPb::CLOUD_TRACE_CONTEXT}, out);
        break;
      case Context::kGrpcBin:
        SetContexts({CensusPb::GRPC_TRACE_BIN}, out);
        break;
      case Context::kW3c:
        SetContexts({CensusPb::TRACE_CONTEXT}, out);
        break;
      case Context::kUnspecified:
        break;
    }
  }
  return MakeTracer(kOpenCensus, out);
}

// Google's, with a token from the agent's exchange if it has one.
void SetStackdriverService(const std::string& project, int sts_port, ::envoy::config::core::v3::GrpcService& out) {
  auto* user = out.add_initial_metadata();
  user->set_key("x-goog-user-project");
  user->set_value(project);
  auto* google = out.mutable_google_grpc();
  google->set_target_uri("cloudtrace.googleapis.com");
  google->set_stat_prefix("oc_stackdriver_tracer");
  google->mutable_channel_credentials()->mutable_ssl_credentials();
  auto* sts = google->add_call_credentials()->mutable_sts_service();
  sts->set_token_exchange_service_uri(fmt::format("http://localhost:{}/token", sts_port));
  sts->set_subject_token_path("./var/run/secrets/tokens/istio-token");
  sts->set_subject_token_type("urn:ietf:params:oauth:token-type:jwt");
  sts->set_scope("https://www.googleapis.com/auth/cloud-platform");
}

std::optional<std::string> Stackdriver(const SpanProvider::Stackdriver& provider, const Proxy& proxy) {
  const nlohmann::json& platform = At(*proxy.metadata.raw, "PLATFORM_METADATA");
  const nlohmann::json* project = &At(platform, "gcp_project");
  if (!project->is_string()) project = &At(platform, "gcp_project_number");
  if (!project->is_string()) return std::nullopt;
  CensusPb out;
  out.set_stackdriver_exporter_enabled(true);
  out.set_stackdriver_project_id(project->get<std::string>());
  SetAllContexts(out);
  auto* limits = out.mutable_trace_config();
  limits->set_max_number_of_annotations(provider.max_annotations.value_or(200));
  limits->set_max_number_of_attributes(provider.max_attributes.value_or(200));
  limits->set_max_number_of_message_events(provider.max_message_events.value_or(200));
  if (const nlohmann::json& port = At(*proxy.metadata.raw, "STS_PORT"); port.is_string() && port != "") {
    const std::string& text = port.get_ref<const std::string&>();
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < 1) return std::nullopt;
    SetStackdriverService(out.stackdriver_project_id(), number, *out.mutable_stackdriver_grpc_service());
  }
  return MakeTracer(kOpenCensus, out);
}

std::optional<std::string> ConfigOf(const Tracer& tracer, const Proxy& proxy, const PushContext& push) {
  const Profile& profile = push.profile();
  if (tracer.kind == Tracer::Kind::kOpenCensus) {
    return profile.Has(Change::kTracersGone) ? std::nullopt : std::optional(OpenCensus(tracer));
  }
  const std::optional<ProviderCluster> to = LookupProviderCluster(tracer.service, tracer.port, push);
  if (!to) return std::nullopt;
  switch (tracer.kind) {
    case Tracer::Kind::kZipkin:
      return Zipkin(tracer, *to, proxy, profile);
    case Tracer::Kind::kLightstep:
      return Lightstep(tracer, IsVersionAtLeast(proxy, 1, 16), *to);
    case Tracer::Kind::kDatadog:
      return Datadog(proxy.service_cluster, *to);
    case Tracer::Kind::kSkyWalking:
      return SkyWalking(*to);
    case Tracer::Kind::kOpenTelemetry:
      return OpenTelemetry(tracer, proxy, *to, profile);
    case Tracer::Kind::kOpenCensus:
      break;
  }
  return std::nullopt;
}

}  // namespace

std::optional<TracingProvider> MakeTracingProvider(const config::ExtensionProvider& provider, const Proxy& proxy,
                                                   const PushContext& push) {
  TracingProvider out;
  std::optional<std::string> config;
  if (const auto* tracer = std::get_if<Tracer>(&provider.telemetry)) {
    config = ConfigOf(*tracer, proxy, push);
    out.max_path_tag_length = tracer->max_tag_length;
    out.start_child_span = tracer->kind == Tracer::Kind::kSkyWalking;
  } else if (const auto* stackdriver = std::get_if<SpanProvider::Stackdriver>(&provider.telemetry);
             stackdriver != nullptr && !push.profile().Has(Change::kTracersGone)) {
    config = Stackdriver(*stackdriver, proxy);
    out.max_path_tag_length = stackdriver->max_tag_length;
  }
  if (!config) return std::nullopt;
  out.config = *std::move(config);
  return out;
}

std::string ConventionalServiceName(const Proxy& proxy, const PushContext& push) {
  if (!push.profile().Has(Change::kOtelServiceNames)) return {};
  for (const SpanProvider& provider : push.mesh().extension_providers) {
    const auto* tracer = std::get_if<Tracer>(&provider.telemetry);
    if (tracer != nullptr && tracer->semantic_conventions) return ConventionalName(proxy);
  }
  return {};
}

}  // namespace wavetank::pilot

#pragma GCC diagnostic pop
