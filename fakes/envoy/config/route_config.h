// An envoy.config.route.v3.RouteConfiguration, compiled: virtual hosts by domain, routes in order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "fakes/envoy/http/header_operations.h"
#include "fakes/envoy/http/rate_limit_actions.h"
#include "fakes/envoy/http/rewrites.h"
#include "fakes/envoy/match/dynamic_metadata.h"
#include "fakes/envoy/match/hash128.h"
#include "fakes/envoy/match/matchers.h"
#include "fakes/envoy/match/string_map.h"
#include "nlohmann/json_fwd.hpp"

namespace envoy::config::route::v3 {
class RouteConfiguration;
class RouteMatch;
}  // namespace envoy::config::route::v3

namespace wavetank::envoysim {

struct RequestSpec;
class Extensions;
class RouteFilterConfig;

// What routes say to filters, by the names that these have in their chain.
struct RouteFilterEntry {
  std::string filter;
  std::shared_ptr<const RouteFilterConfig> config;  // null: nothing but whether it takes part
  bool disabled = false;                            // it takes no part; else it does, even if its chain says otherwise
};
using RouteFilterConfigs = std::vector<RouteFilterEntry>;
// Their name for what stands in the field `cors` of routes and virtual hosts.
inline constexpr std::string_view kCorsField = "field cors";

// x-envoy-retry-on and x-envoy-retry-grpc-on policies. Envoy: configuration/http/http_filters/router_filter
enum RetryOn : uint32_t {
  kRetry5xx = 1u << 0,
  kRetryGatewayError = 1u << 1,
  kRetryReset = 1u << 2,
  kRetryConnectFailure = 1u << 3,
  kRetryRetriable4xx = 1u << 4,
  kRetryRefusedStream = 1u << 5,
  kRetryRetriableStatusCodes = 1u << 6,
  kRetryEnvoyRateLimited = 1u << 7,
  kRetryGrpcCancelled = 1u << 8,
  kRetryGrpcDeadlineExceeded = 1u << 9,
  kRetryGrpcResourceExhausted = 1u << 10,
  kRetryGrpcUnavailable = 1u << 11,
  kRetryGrpcInternal = 1u << 12,
  kRetryResetBeforeRequest = 1u << 13,
  kRetryRetriableHeaders = 1u << 14,
};

// A header of an answer that says when to come again. Envoy: router/reset_header_parser.h
struct ResetHeader {
  std::string name;
  bool timestamp = false;  // seconds since 1970, not from now
};

struct RetryPolicy {
  uint32_t on = 0;
  uint32_t retries = 1;
  Duration per_try_timeout{};
  bool avoid_previous_hosts = false;
  uint32_t host_selection_attempts = 1;
  std::vector<uint32_t> status_codes;
  std::vector<HeaderMatch> headers;          // of answers
  std::vector<HeaderMatch> request_headers;  // of requests that are tried again; empty: all
  Duration per_try_idle_timeout{};           // 0: none
  std::vector<ResetHeader> reset_headers;
  Duration reset_max_interval = 300s;  // what is longer does not count
  // After so many tries their priorities are left out, and again after as many; 0: never.
  uint32_t priorities_update_frequency = 0;
  Duration base_interval = 25ms;
  Duration max_interval = 250ms;
};

// The conditions in a list of x-envoy-retry-on or x-envoy-retry-grpc-on, as RetryPolicy::on has them.
uint32_t RetryOnOf(std::string_view list);

struct HashPolicy {
  enum class Kind : uint8_t { kHeader, kCookie, kSourceIp, kQuery };
  Kind kind = Kind::kHeader;
  std::string name;
  bool terminal = false;
  // Of a cookie: where a request lacks it, one is made up and the client told. Its path, and seconds (0: a session).
  std::optional<Duration> ttl;
  std::string path;
  std::string attributes;  // "; SameSite=Strict"
};

// What one level (route table, virtual host, route, weighted cluster) does to headers.
struct HeaderLevel {
  HeaderOperations request, reply;
  bool empty() const { return request.empty() && reply.empty(); }
};

// What a route does to requests that go on, beyond saying where; few routes have one.
struct RouteEdits {
  HeaderLevel headers;
  HostRewrite host;
  PathRewrite path;
};

struct MirrorPolicy {
  std::string cluster;
  uint32_t per_million = 1'000'000;
  bool keeps_host = false;  // disable_shadow_host_suffix_append
};

struct WeightedCluster {
  std::string name;
  uint32_t weight = 0;
  std::shared_ptr<const RouteEdits> edits;  // nullptr: none
  RouteFilterConfigs filters;               // typed_per_filter_config
};

struct RouteEntry {
  enum class PathKind : uint8_t { kPrefix, kExact, kRegex, kSeparatedPrefix, kConnect };
  enum class Action : uint8_t { kCluster, kWeighted, kHeader, kRedirect, kDirect, kNonForwarding };

  std::string name;
  std::string config;  // the object that it comes from (ConfigPath()); empty: not said
  PathKind path_kind = PathKind::kPrefix;
  StringMatch path;
  bool case_sensitive = true;
  std::vector<HeaderMatch> headers;
  std::vector<QueryMatch> queries;
  std::vector<MetadataMatch> metadata;
  uint32_t runtime_per_million = 1'000'000;

  Action action = Action::kCluster;
  std::string cluster;  // or the header that names it
  std::vector<WeightedCluster> clusters;
  uint32_t total_weight = 0;
  bool clusters_configure_filters = false;  // one of `clusters` at least
  uint16_t not_found_code = 503;            // cluster_not_found_response_code
  Duration timeout = 15s;                   // 0: none
  std::optional<RetryPolicy> retry;
  bool hedges = false;  // a try that takes too long goes on beside the next one (hedge_on_per_try_timeout)
  std::vector<HashPolicy> hashes;
  std::vector<MirrorPolicy> mirrors;
  RouteFilterConfigs filters;  // typed_per_filter_config
  RateLimitActions limits;     // rate_limits
  bool includes_host_limits = false;
  std::shared_ptr<const nlohmann::json> lua_metadata;  // of envoy.filters.http.lua; null: none
  uint16_t direct_code = 0;
  std::string direct_body;
  uint16_t redirect_code = 301;
  std::shared_ptr<const Redirect> redirect;
  std::shared_ptr<const RouteEdits> edits;  // nullptr: none
  // max_stream_duration; 0: none; nullopt: the connection manager's. `grpc_timeout_max`: the header grpc-timeout
  // counts, up to this if it is not 0.
  std::optional<Duration> max_stream_duration;
  std::optional<Duration> grpc_timeout_max;
  Duration grpc_timeout_offset{};  // sooner than the header says
  // max_grpc_timeout, the older way: of a gRPC request its header is the timeout, up to this if it is not 0.
  std::optional<Duration> max_grpc_timeout;
  std::optional<Duration> idle_timeout;                // in place of the manager's stream_idle_timeout
  std::vector<std::pair<std::string, bool>> upgrades;  // upgrade_configs: type in lower case, whether it is enabled

  // `random` decides runtime fractions; `notes` may be null.
  bool Matches(const RequestSpec& spec, uint64_t random, const DynamicMetadata* notes) const;
  // What of a path that it matches it stands for.
  MatchedPath Matched() const;
};

struct VirtualHost {
  std::string name;
  HeaderLevel headers;
  bool require_tls_of_others = false;  // require_tls holds for external requests only
  bool require_tls = false, count_attempts = false, count_attempts_in_reply = false;
  RouteFilterConfigs filters;
  RateLimitActions limits;
  std::vector<RouteEntry> routes;
};

// A cluster named by a route, and what Envoy says if it is unknown: "route: unknown cluster 'x'".
struct ClusterUse {
  std::string cluster;
  std::string complaint;
};

struct RouteTable {
  Hash128 hash;
  std::string name;
  bool ignore_port = false;
  HeaderLevel headers;
  bool most_specific_wins = false;    // header operations go from the table to the route, not back
  bool edits_headers = false;         // any level of it
  bool disables_filters = false;      // the same
  std::vector<ClusterUse> validated;  // clusters that must be there for the table to be accepted
  std::vector<VirtualHost> hosts;
  StringMap<uint32_t> exact;                               // domain -> hosts
  std::vector<std::pair<std::string, uint32_t>> suffixes;  // "*.foo.com" as ".foo.com", longest first
  std::vector<std::pair<std::string, uint32_t>> prefixes;  // "foo.*" as "foo.", longest first
  std::optional<uint32_t> any;                             // "*"

  // Envoy's order: exact, longest suffix wildcard, longest prefix wildcard, "*". nullptr: none.
  // Envoy: source/common/router/config_impl.cc, RouteMatcher::findVirtualHost
  const VirtualHost* FindHost(std::string_view authority) const;
  // The first route that matches.
  const RouteEntry* FindRoute(const VirtualHost& host, const RequestSpec& spec, uint64_t random,
                              const DynamicMetadata* notes) const;
};

// What a RouteEntry says of requests; the rest of it stays as it is.
absl::Status CompileRouteMatch(const envoy::config::route::v3::RouteMatch& match, RouteEntry* out);

// InvalidArgument: Envoy would refuse the table; the message is what its NACK says.
absl::StatusOr<std::shared_ptr<const RouteTable>> CompileRoutes(
    const envoy::config::route::v3::RouteConfiguration& config, const Hash128& hash, const Extensions& extensions,
    bool validate);  // whether clusters must exist unless the configuration says: true for inline, false for RDS

}  // namespace wavetank::envoysim
