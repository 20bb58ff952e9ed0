// networking.istio.io VirtualService.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/config/kinds/typed_config.h"

namespace wavetank::config {

struct HeaderOperations {
  std::map<std::string, std::string> set, add;
  std::vector<std::string> remove;
  friend bool operator==(const HeaderOperations&, const HeaderOperations&) = default;
};

struct Headers {
  std::optional<HeaderOperations> request, response;
  friend bool operator==(const Headers&, const Headers&) = default;
};

struct HttpMatchRequest {
  std::string name, stat_prefix, source_namespace;
  std::optional<StringMatch> uri, scheme, method, authority;
  std::map<std::string, StringMatch> headers, without_headers, query_params;
  uint32_t port = 0;
  Labels source_labels;
  std::vector<std::string> gateways;
  bool ignore_uri_case = false;
  friend bool operator==(const HttpMatchRequest&, const HttpMatchRequest&) = default;
};

struct HttpRouteDestination {
  Destination destination;
  bool has_destination = false;
  int32_t weight = 0;
  std::optional<Headers> headers;
  friend bool operator==(const HttpRouteDestination&, const HttpRouteDestination&) = default;
};

struct RouteDestination {
  Destination destination;
  bool has_destination = false;
  int32_t weight = 0;
  friend bool operator==(const RouteDestination&, const RouteDestination&) = default;
};

struct HttpRewrite {
  struct Regex {
    std::string match, rewrite;
    friend bool operator==(const Regex&, const Regex&) = default;
  };
  std::string uri, authority;
  std::optional<Regex> uri_regex;
  friend bool operator==(const HttpRewrite&, const HttpRewrite&) = default;
};

struct HttpRedirect {
  enum class DerivePort : uint8_t { kFromProtocolDefault, kFromRequestPort };
  std::string uri, authority, scheme;
  std::optional<uint32_t> port;           // oneof
  std::optional<DerivePort> derive_port;  // oneof
  uint32_t redirect_code = 0;
  friend bool operator==(const HttpRedirect&, const HttpRedirect&) = default;
};

struct HttpDirectResponse {
  uint32_t status = 0;
  std::optional<std::string> body;  // string, or bytes decoded from base64
  bool body_is_bytes = false;
  friend bool operator==(const HttpDirectResponse&, const HttpDirectResponse&) = default;
};

struct HttpRetry {
  int32_t attempts = 0;
  std::optional<Duration> per_try_timeout;
  std::string retry_on;
  std::optional<bool> retry_remote_localities, retry_ignore_previous_hosts;
  std::optional<Duration> backoff;
  friend bool operator==(const HttpRetry&, const HttpRetry&) = default;
};

struct HttpFaultInjection {
  struct Delay {
    std::optional<Duration> fixed_delay;
    std::optional<double> percentage;  // value of Percent
    int32_t percent = 0;               // deprecated
    friend bool operator==(const Delay&, const Delay&) = default;
  };
  struct Abort {
    std::optional<int32_t> http_status;      // oneof
    std::optional<std::string> grpc_status;  // oneof
    std::optional<double> percentage;
    friend bool operator==(const Abort&, const Abort&) = default;
  };
  std::optional<Delay> delay;
  std::optional<Abort> abort;
  friend bool operator==(const HttpFaultInjection&, const HttpFaultInjection&) = default;
};

struct CorsPolicy {
  std::vector<std::string> allow_origin;  // deprecated, exact
  std::vector<StringMatch> allow_origins;
  std::vector<std::string> allow_methods, allow_headers, expose_headers;
  std::optional<Duration> max_age;
  std::optional<bool> allow_credentials;
  // A preflight of no allowed origin is answered here, instead of the application. The API's values.
  enum class UnmatchedPreflights : uint8_t { kUnspecified, kForward, kIgnore };
  UnmatchedPreflights unmatched_preflights = UnmatchedPreflights::kUnspecified;
  friend bool operator==(const CorsPolicy&, const CorsPolicy&) = default;
};

struct Delegate {
  std::string name, ns;
  friend bool operator==(const Delegate&, const Delegate&) = default;
};

struct HttpMirrorPolicy {
  std::optional<Destination> destination;
  std::optional<double> percentage;  // value of Percent
  friend bool operator==(const HttpMirrorPolicy&, const HttpMirrorPolicy&) = default;
};

struct HttpRoute {
  std::string name;
  std::vector<HttpMatchRequest> match;
  std::vector<HttpRouteDestination> route;
  std::optional<HttpRedirect> redirect;
  std::optional<HttpDirectResponse> direct_response;
  std::optional<Delegate> delegate;
  std::optional<HttpRewrite> rewrite;
  std::optional<Duration> timeout;
  std::optional<HttpRetry> retries;
  std::optional<HttpFaultInjection> fault;
  std::optional<Destination> mirror;
  std::optional<uint32_t> mirror_percent;   // deprecated
  std::optional<double> mirror_percentage;  // value of Percent
  std::vector<HttpMirrorPolicy> mirrors;    // beside `mirror`
  std::optional<CorsPolicy> cors_policy;
  std::optional<Headers> headers;
  friend bool operator==(const HttpRoute&, const HttpRoute&) = default;
};

struct TlsMatchAttributes {
  std::vector<std::string> sni_hosts, destination_subnets, gateways;
  uint32_t port = 0;
  Labels source_labels;
  std::string source_namespace;
  friend bool operator==(const TlsMatchAttributes&, const TlsMatchAttributes&) = default;
};

struct TlsRoute {
  std::vector<TlsMatchAttributes> match;
  std::vector<RouteDestination> route;
  friend bool operator==(const TlsRoute&, const TlsRoute&) = default;
};

struct L4MatchAttributes {
  std::vector<std::string> destination_subnets, gateways;
  uint32_t port = 0;
  std::string source_subnet;
  Labels source_labels;
  std::string source_namespace;
  friend bool operator==(const L4MatchAttributes&, const L4MatchAttributes&) = default;
};

struct TcpRoute {
  std::vector<L4MatchAttributes> match;
  std::vector<RouteDestination> route;
  friend bool operator==(const TcpRoute&, const TcpRoute&) = default;
};

struct VirtualService {
  std::vector<std::string> hosts, gateways, export_to;
  std::vector<HttpRoute> http;
  std::vector<TlsRoute> tls;
  std::vector<TcpRoute> tcp;
  friend bool operator==(const VirtualService&, const VirtualService&) = default;
};
using VirtualServiceRef = TypedConfigRef<VirtualService>;

}  // namespace wavetank::config
