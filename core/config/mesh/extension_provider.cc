#include "core/config/mesh/extension_provider.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/strings/ascii.h"
#include "core/base/ip.h"
#include "core/config/kinds/read_message.h"
#include "core/config/schema/dns_names.h"

namespace wavetank::config {
namespace {

absl::Status RefusedAuthorizer(std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("external authorizer: {}", what));
}

// "host", an address, or "namespace/host". istiod: validateExtensionProviderService.
bool IsServiceName(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == text.npos) return IsDomainName(text) || IsIpAddress(text);
  const std::string_view ns = text.substr(0, slash), host = text.substr(slash + 1);
  if (host.find('/') != host.npos || !IsWildcardDomain(host)) return false;
  return ns == "*" || ns == "." || ns == "~" || IsDnsLabel(ns);
}

// Go's url.Parse takes nearly everything for a path: control characters and broken escapes it does not.
bool IsUrlPath(std::string_view text) {
  const auto is_hex = [](char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); };
  for (size_t i = 0; i < text.size(); ++i) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(text[i]))) return false;
    if (text[i] != '%') continue;
    const std::string_view digits = text.substr(i + 1, 2);
    if (digits.size() < 2 || !std::all_of(digits.begin(), digits.end(), is_hex)) return false;
  }
  return true;
}

// A list of enums, by name or number.
void ReadTraceContexts(ProtoJson& in, std::vector<ExtensionProvider::Tracer::TraceContext>& out) {
  using Context = ExtensionProvider::Tracer::TraceContext;
  const nlohmann::json* list = in.Find("context");
  if (list == nullptr) return;
  if (!list->is_array()) return in.Fail("context", "expected a list");
  for (const nlohmann::json& item : *list) {
    const nlohmann::json wrapped = {{"context", item}};
    ProtoJson one(wrapped, in.PathOf("context"), in.status());
    Context context = Context::kUnspecified;
    one.Enum("context", context,
             {{"UNSPECIFIED", Context::kUnspecified},
              {"W3C_TRACE_CONTEXT", Context::kW3c},
              {"GRPC_BIN", Context::kGrpcBin},
              {"CLOUD_TRACE_CONTEXT", Context::kCloudTrace},
              {"B3", Context::kB3}});
    out.push_back(context);
  }
}

// Fields of OtelAccessLog's logFormat.
struct OtelFormat {
  std::string text;
  nlohmann::json labels;
};

// The Struct in `labels`, as it is written.
std::optional<nlohmann::json> ReadLabels(ProtoJson& in) {
  const nlohmann::json* labels = in.Find("labels");
  if (labels == nullptr) return std::nullopt;
  if (!labels->is_object()) {
    in.Fail("labels", "expected a mapping");
    return std::nullopt;
  }
  return *labels;
}

void ReadMessage(ProtoJson& in, OtelFormat& out) {
  in.Field("text", out.text);
  out.labels = ReadLabels(in).value_or(nlohmann::json());
}

}  // namespace

void ReadMessage(ProtoJson& in, ExtensionProvider::RequestBody& out) {
  in.Field("maxRequestBytes", out.max_request_bytes);
  in.Field("allowPartialMessage", out.allow_partial_message);
  in.Field("packAsBytes", out.pack_as_bytes);
}

void ReadMessage(ProtoJson& in, ExtensionProvider::ExtAuthz& out) {
  in.Field("service", out.service);
  in.Field("port", out.port);
  in.Field("timeout", out.timeout);
  in.Field("failOpen", out.fail_open);
  in.Field("statusOnError", out.status_on_error);
  in.Field("includeRequestBodyInCheck", out.include_request_body);
  in.Field("pathPrefix", out.path_prefix);
  in.Field("includeRequestHeadersInCheck", out.include_request_headers);
  in.Field("includeHeadersInCheck", out.include_headers);
  in.Field("includeAdditionalHeadersInCheck", out.include_additional_headers);
  in.Field("headersToUpstreamOnAllow", out.headers_to_upstream_on_allow);
  in.Field("headersToDownstreamOnDeny", out.headers_to_downstream_on_deny);
  in.Field("headersToDownstreamOnAllow", out.headers_to_downstream_on_allow);
}

void ReadMessage(ProtoJson& /*in*/, ExtensionProvider::Prometheus& /*out*/) {}

void ReadMessage(ProtoJson& in, ExtensionProvider::Stackdriver& out) {
  in.Field("maxNumberOfAttributes", out.max_attributes);
  in.Field("maxNumberOfAnnotations", out.max_annotations);
  in.Field("maxNumberOfMessageEvents", out.max_message_events);
  in.Field("maxTagLength", out.max_tag_length);
}

namespace {

// An HttpHeader of a provider; envName, whose value comes from the agent's environment, is not modelled.
struct ProviderHeader {
  std::string name, value;
};
void ReadMessage(ProtoJson& in, ProviderHeader& out) {
  in.Field("name", out.name);
  in.Field("value", out.value);
}

// Fields of how spans are sent: of Zipkin itself, of OpenTelemetry's http and grpc.
void ReadService(ProtoJson& in, const char* headers, ExtensionProvider::Tracer& out) {
  in.Field("path", out.path);
  in.Field("timeout", out.timeout);
  std::vector<ProviderHeader> read;
  in.Field(headers, read);
  for (ProviderHeader& header : read) out.headers.emplace_back(std::move(header.name), std::move(header.value));
}

struct HttpExporter {
  ExtensionProvider::Tracer of;
};
void ReadMessage(ProtoJson& in, HttpExporter& out) { ReadService(in, "headers", out.of); }
struct GrpcExporter {
  ExtensionProvider::Tracer of;
};
void ReadMessage(ProtoJson& in, GrpcExporter& out) { ReadService(in, "initialMetadata", out.of); }

struct ResourceDetector {};
void ReadMessage(ProtoJson& /*in*/, ResourceDetector& /*out*/) {}
struct ResourceDetectors {
  std::optional<ResourceDetector> environment, dynatrace;
};
void ReadMessage(ProtoJson& in, ResourceDetectors& out) {
  in.Field("environment", out.environment);
  in.Field("dynatrace", out.dynatrace);
}

void ReadOpenTelemetry(ProtoJson& in, ExtensionProvider::Tracer& out) {
  std::optional<HttpExporter> http;
  std::optional<GrpcExporter> grpc;
  ResourceDetectors detectors;
  in.Field("http", http);
  in.Field("grpc", grpc);
  in.Field("resourceDetectors", detectors);
  out.over_http = http.has_value();
  if (http || grpc) {
    ExtensionProvider::Tracer& how = http ? http->of : grpc->of;
    out.path = std::move(how.path);
    out.timeout = how.timeout;
    out.headers = std::move(how.headers);
  }
  in.Enum("serviceAttributeEnrichment", out.semantic_conventions,
          {{"ISTIO_CANONICAL", false}, {"OTEL_SEMANTIC_CONVENTIONS", true}});
  out.detects_environment = detectors.environment.has_value();
  out.detects_dynatrace = detectors.dynatrace.has_value();
}

void ReadZipkin(ProtoJson& in, ExtensionProvider::Tracer& out) {
  in.Field("enable64bitTraceId", out.short_trace_ids);
  in.Enum("traceContextOption", out.b3_with_w3c, {{"USE_B3", false}, {"USE_B3_WITH_W3C_PROPAGATION", true}});
  ReadService(in, "headers", out);
}

}  // namespace

void ReadMessage(ProtoJson& in, ExtensionProvider::Tracer& out) {
  using Tracer = ExtensionProvider::Tracer;
  in.Field("service", out.service);
  in.Field("port", out.port);
  if (out.kind != Tracer::Kind::kSkyWalking) in.Field("maxTagLength", out.max_tag_length);
  if (out.kind == Tracer::Kind::kLightstep) in.Field("accessToken", out.access_token);
  if (out.kind == Tracer::Kind::kZipkin) ReadZipkin(in, out);
  if (out.kind == Tracer::Kind::kOpenTelemetry) ReadOpenTelemetry(in, out);
  if (out.kind == Tracer::Kind::kOpenCensus) ReadTraceContexts(in, out.contexts);
}

void ReadMessage(ProtoJson& in, ExtensionProvider::FileAccessLog::Format& out) {
  in.Field("text", out.text);
  if (std::optional<nlohmann::json> labels = ReadLabels(in)) {
    out.labels = std::move(labels);
    out.text.reset();
  }
}

void ReadMessage(ProtoJson& in, ExtensionProvider::FileAccessLog& out) {
  in.Field("path", out.path);
  in.Field("logFormat", out.format);
  in.Field("omitEmptyValues", out.omit_empty);
}

void ReadMessage(ProtoJson& in, ExtensionProvider::GrpcAccessLog& out) {
  in.Field("service", out.service);
  in.Field("port", out.port);
  in.Field("logName", out.log_name);
  in.Field("filterStateObjectsToLog", out.filter_state_objects);
  if (out.tcp) return;
  in.Field("additionalRequestHeadersToLog", out.request_headers);
  in.Field("additionalResponseHeadersToLog", out.response_headers);
  in.Field("additionalResponseTrailersToLog", out.response_trailers);
}

void ReadMessage(ProtoJson& in, ExtensionProvider::OtelAccessLog& out) {
  in.Field("service", out.service);
  in.Field("port", out.port);
  in.Field("logName", out.log_name);
  OtelFormat format;
  in.Field("logFormat", format);
  out.text = std::move(format.text);
  out.labels = std::move(format.labels);
}

void ReadMessage(ProtoJson& in, ExtensionProvider& out) {
  using Tracer = ExtensionProvider::Tracer;
  in.Field("name", out.name);
  // Of several, the one that the API declares last counts.
  const auto read = [&](std::string_view field, auto provider) {
    if (!in.Has(field)) return;
    in.Field(field, provider);
    out.telemetry = std::move(provider);
    out.ext_authz_http.reset();
    out.ext_authz_grpc.reset();
  };
  in.Field("envoyExtAuthzHttp", out.ext_authz_http);
  in.Field("envoyExtAuthzGrpc", out.ext_authz_grpc);
  if (out.ext_authz_grpc) out.ext_authz_http.reset();
  read("zipkin", Tracer{.kind = Tracer::Kind::kZipkin});
  read("lightstep", Tracer{.kind = Tracer::Kind::kLightstep});
  read("datadog", Tracer{.kind = Tracer::Kind::kDatadog});
  read("stackdriver", ExtensionProvider::Stackdriver{});
  read("opencensus", Tracer{.kind = Tracer::Kind::kOpenCensus});
  read("skywalking", Tracer{.kind = Tracer::Kind::kSkyWalking});
  read("opentelemetry", Tracer{.kind = Tracer::Kind::kOpenTelemetry});
  read("prometheus", ExtensionProvider::Prometheus{});
  read("envoyFileAccessLog", ExtensionProvider::FileAccessLog{});
  read("envoyHttpAls", ExtensionProvider::GrpcAccessLog{});
  read("envoyTcpAls", ExtensionProvider::GrpcAccessLog{.tcp = true});
  read("envoyOtelAls", ExtensionProvider::OtelAccessLog{});
}

absl::Status ValidateExtAuthz(const ExtensionProvider::ExtAuthz& authz) {
  if (authz.port < 1 || authz.port > 65535) return RefusedAuthorizer("expected a port from 1 to 65535");
  if (!IsServiceName(authz.service)) return RefusedAuthorizer(fmt::format("'{}' is no service", authz.service));
  if (!authz.status_on_error.empty() && !ParseHttpStatus(authz.status_on_error)) {
    return RefusedAuthorizer(fmt::format("statusOnError '{}' is no HTTP status", authz.status_on_error));
  }
  if (!authz.path_prefix.empty() && (!authz.path_prefix.starts_with('/') || !IsUrlPath(authz.path_prefix))) {
    return RefusedAuthorizer("pathPrefix must be a path that begins with '/'");
  }
  return absl::OkStatus();
}

std::vector<ExtensionProvider> DefaultExtensionProviders() {
  std::vector<ExtensionProvider> out(3);
  out[0].name = "prometheus";
  out[0].telemetry = ExtensionProvider::Prometheus{};
  out[1].name = "stackdriver";
  out[1].telemetry = ExtensionProvider::Stackdriver{};
  out[2].name = "envoy";
  out[2].telemetry = ExtensionProvider::FileAccessLog{.path = "/dev/stdout", .format = std::nullopt};
  return out;
}

void MergeExtensionProviders(std::vector<ExtensionProvider> providers, std::vector<ExtensionProvider>& out) {
  for (ExtensionProvider& provider : providers) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const auto& p) { return p.name == provider.name; });
    if (same == out.end()) {
      out.push_back(std::move(provider));
    } else {
      *same = std::move(provider);
    }
  }
}

const ExtensionProvider* FindTelemetryProvider(const std::vector<ExtensionProvider>& providers, std::string_view name) {
  const auto same = [](char a, char b) {
    return absl::ascii_tolower(static_cast<unsigned char>(a)) == absl::ascii_tolower(static_cast<unsigned char>(b));
  };
  const auto it = std::find_if(providers.begin(), providers.end(), [&](const auto& provider) {
    return std::equal(provider.name.begin(), provider.name.end(), name.begin(), name.end(), same);
  });
  return it == providers.end() ? nullptr : &*it;
}

std::optional<int> ParseHttpStatus(std::string_view text) {
  // envoy.type.v3.StatusCode.
  struct Range {
    int first, last;
  };
  static constexpr Range kKnown[] = {{0, 0},     {100, 100}, {200, 208}, {226, 226}, {300, 305}, {307, 308}, {400, 417},
                                     {421, 424}, {426, 426}, {428, 429}, {431, 431}, {500, 508}, {510, 511}};
  int code = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  const bool known = std::any_of(std::begin(kKnown), std::end(kKnown),
                                 [&](const Range& range) { return range.first <= code && code <= range.last; });
  return known ? std::optional(code) : std::nullopt;
}

}  // namespace wavetank::config
