// The mesh config's extensionProviders: external authorizers, which CUSTOM AuthorizationPolicies name, and where
// metrics, logs and spans go, which Telemetry names (istio.io/api mesh/v1alpha1 MeshConfig.ExtensionProvider).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "core/base/time.h"
#include "nlohmann/json.hpp"

namespace wavetank::config {

class ProtoJson;

struct ExtensionProvider {
  struct RequestBody {
    uint32_t max_request_bytes = 0;
    bool allow_partial_message = false, pack_as_bytes = false;
    friend bool operator==(const RequestBody&, const RequestBody&) = default;
  };
  // What the protocols of authorizers have in common.
  struct ExtAuthz {
    std::string service;  // "host" or "namespace/host"
    uint32_t port = 0;
    std::optional<Duration> timeout;
    bool fail_open = false;
    std::string status_on_error;
    std::optional<RequestBody> include_request_body;

    // Of HTTP alone.
    std::string path_prefix;
    std::vector<std::string> include_request_headers, include_headers;  // the second is the first's older name
    std::map<std::string, std::string> include_additional_headers;
    std::vector<std::string> headers_to_upstream_on_allow, headers_to_downstream_on_deny,
        headers_to_downstream_on_allow;
    friend bool operator==(const ExtAuthz&, const ExtAuthz&) = default;
  };

  struct Prometheus {
    friend bool operator==(const Prometheus&, const Prometheus&) = default;
  };
  struct Stackdriver {
    std::optional<int64_t> max_attributes, max_annotations, max_message_events;
    uint32_t max_tag_length = 0;
    friend bool operator==(const Stackdriver&, const Stackdriver&) = default;
  };
  // A collector of spans.
  struct Tracer {
    enum class Kind : uint8_t { kZipkin, kLightstep, kDatadog, kOpenCensus, kSkyWalking, kOpenTelemetry };
    enum class TraceContext : uint8_t { kUnspecified, kW3c, kGrpcBin, kCloudTrace, kB3 };  // the API's values
    Kind kind = Kind::kZipkin;
    std::string service;  // "host" or "namespace/host"
    uint32_t port = 0, max_tag_length = 0;
    bool short_trace_ids = false;        // of Zipkin: 64 bits
    std::string access_token;            // of Lightstep
    std::vector<TraceContext> contexts;  // of OpenCensus

    // Of Zipkin and OpenTelemetry. `over_http`, of OpenTelemetry: by that, not by gRPC.
    std::string path;
    std::optional<Duration> timeout;
    std::vector<std::pair<std::string, std::string>> headers;  // by gRPC the initial metadata
    bool over_http = false, detects_environment = false, detects_dynatrace = false;
    bool b3_with_w3c = false;           // of Zipkin
    bool semantic_conventions = false;  // of OpenTelemetry
    friend bool operator==(const Tracer&, const Tracer&) = default;
  };
  struct FileAccessLog {
    struct Format {
      // At most one of them; neither: Envoy's own format.
      std::optional<std::string> text;
      std::optional<nlohmann::json> labels;  // an object
      friend bool operator==(const Format&, const Format&) = default;
    };
    std::string path;
    std::optional<Format> format;
    bool omit_empty = false;
    friend bool operator==(const FileAccessLog&, const FileAccessLog&) = default;
  };
  // envoyHttpAls and envoyTcpAls.
  struct GrpcAccessLog {
    bool tcp = false;
    std::string service;
    uint32_t port = 0;
    std::string log_name;
    std::vector<std::string> filter_state_objects;
    std::vector<std::string> request_headers, response_headers, response_trailers;  // of HTTP
    friend bool operator==(const GrpcAccessLog&, const GrpcAccessLog&) = default;
  };
  struct OtelAccessLog {
    std::string service;
    uint32_t port = 0;
    std::string log_name, text;
    nlohmann::json labels;  // an object, or null
    friend bool operator==(const OtelAccessLog&, const OtelAccessLog&) = default;
  };

  std::string name;
  // One kind of provider at most.
  std::optional<ExtAuthz> ext_authz_http, ext_authz_grpc;
  std::variant<std::monostate, Prometheus, Stackdriver, Tracer, FileAccessLog, GrpcAccessLog, OtelAccessLog> telemetry;
  friend bool operator==(const ExtensionProvider&, const ExtensionProvider&) = default;
};

// What is wrong with it, if anything. The mesh config is accepted all the same; a resource that uses the provider gets
// nothing. istiod: pkg/config/validation/extensionprovider.go.
absl::Status ValidateExtAuthz(const ExtensionProvider::ExtAuthz& authz);

// prometheus, stackdriver and envoy (standard output), which are there unasked.
std::vector<ExtensionProvider> DefaultExtensionProviders();

// Adds `providers` to `out`; where several have one name, the last one's provider takes the place of the first.
// istiod: mesh.ApplyMeshConfig.
void MergeExtensionProviders(std::vector<ExtensionProvider> providers, std::vector<ExtensionProvider>& out);

// The first of that name, upper and lower case alike; null if there is none. istiod: Telemetries.fetchProvider.
const ExtensionProvider* FindTelemetryProvider(const std::vector<ExtensionProvider>& providers, std::string_view name);

// The number, if Envoy's API has a name for it: what an authorizer's failure may be answered with. A sign may stand
// before it, as for Go's ParseInt.
std::optional<int> ParseHttpStatus(std::string_view text);

// Reads one of extensionProviders; errors of fields go to `in`.
void ReadMessage(ProtoJson& in, ExtensionProvider& out);

}  // namespace wavetank::config
