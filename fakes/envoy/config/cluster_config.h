// An envoy.config.cluster.v3.Cluster, compiled: immutable and shared.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "fakes/envoy/config/health_check_config.h"
#include "fakes/envoy/extensions/dns_cache_config.h"
#include "fakes/envoy/extensions/extensions.h"
#include "fakes/envoy/lb/endpoint_table.h"
#include "fakes/envoy/lb/load_balancer.h"
#include "fakes/envoy/match/hash128.h"
#include "fakes/envoy/tcp/address.h"
#include "fakes/envoy/tls/tls_config.h"

namespace envoy::config::cluster::v3 {
class Cluster;
}

namespace wavetank::envoysim {

// kDynamicForward: to whatever host a request asks for (envoy.clusters.dynamic_forward_proxy).
enum class DiscoveryType : uint8_t { kStatic, kStrictDns, kLogicalDns, kEds, kOriginalDst, kDynamicForward };
enum class UpstreamProtocol : uint8_t { kHttp1, kHttp2, kDownstream, kAlpn };

struct CircuitBreakers {
  uint32_t max_connections = 1024;
  uint32_t max_pending_requests = 1024;
  uint32_t max_requests = 1024;
  uint32_t max_retries = 3;
  // retry_budget: instead, so many percent of the requests under way, `least_retries` always.
  std::optional<double> retry_percent;
  uint32_t least_retries = 3;
  // How many retries there may be while so many requests are under way or wait for a connection.
  uint32_t MaxRetries(uint32_t requests) const;
};

// envoy.config.cluster.v3.OutlierDetection; success-rate ejection is left out (Istio switches it off).
struct OutlierConfig {
  uint32_t consecutive_5xx = 5;
  uint32_t enforcing_consecutive_5xx = 100;
  uint32_t consecutive_gateway_failure = 5;
  uint32_t enforcing_consecutive_gateway_failure = 0;
  bool split_external_local_origin_errors = false;
  uint32_t consecutive_local_origin_failure = 5;
  uint32_t enforcing_consecutive_local_origin_failure = 100;
  Duration interval = 10s;
  Duration base_ejection_time = 30s;
  Duration max_ejection_time = 300s;
  uint32_t max_ejection_percent = 10;
  bool always_eject_one_host = false;
  bool passed_check_returns_host = true;  // successful_active_health_check_uneject_host
};

struct TransportSocketMatch {
  std::string name;
  StringPairs criteria;  // sorted; all must be in the endpoint's metadata
  TransportSocket socket;
};

struct ClusterConfig {
  Hash128 hash;
  std::string name;
  std::string config;        // the DestinationRule that shaped it (ConfigPath()); empty: none
  std::string service_name;  // of the ClusterLoadAssignment; equals `name` unless given
  DiscoveryType type = DiscoveryType::kStatic;
  Duration connect_timeout = 5s;
  LbConfig lb;
  CircuitBreakers circuit_breakers;
  std::optional<OutlierConfig> outlier;
  std::shared_ptr<const HealthCheckConfig> health_check;  // null: none
  bool unchecked_are_excluded = false;                    // ignore_new_hosts_until_first_hc
  bool removed_whatever_health = false;                   // ignore_health_on_host_removal
  Duration update_merge_window = 1s;
  Duration initial_fetch_timeout = 15s;  // of EDS; 0: for good
  Duration dns_refresh_rate = 5s;
  Duration cleanup_interval = 5s;  // of hosts of ORIGINAL_DST
  uint16_t port_override = 0;      // of ORIGINAL_DST: in the place of the destination's; 0: none
  DnsCacheConfig dns_cache;        // of kDynamicForward
  bool respect_dns_ttl = false;
  // An ejected host's connections of tcp_proxies end.
  bool close_on_health_failure = false;
  UpstreamProtocol protocol = UpstreamProtocol::kHttp1;
  bool http1_trailers = false;                                // HTTP/1: trailers are written, and read
  uint32_t max_concurrent_streams = 0;                        // HTTP/2
  uint32_t max_requests_per_connection = 0;                   // 0: no limit
  Duration idle_timeout = 1h;                                 // of pooled connections; 0: none
  Duration max_connection_duration{}, max_stream_duration{};  // 0: none
  // The name that a request asks for is the TLS server's name, and has to stand in its certificate.
  bool auto_sni = false, auto_san_validation = false;
  std::string alt_stat_name;
  bool exchanges_peers = false;        // its connections tell who they are, and ask (FilterChain)
  std::string istio_host, istio_name;  // of the Service that it is of: metadata "istio", services; empty: of none
  IpAddress bind_source;               // upstream_bind_config
  TransportSocket socket;
  std::vector<TransportSocketMatch> socket_matches;
  std::shared_ptr<const EndpointTable> load_assignment;  // static and DNS clusters
  std::vector<std::string> secrets;                      // SDS names that it needs before it is warm
  Extensions::Notes without_effect;
};

// InvalidArgument: Envoy would refuse the cluster; the message is what its NACK says. FailedPrecondition: the same of
// an extension's configuration, which never spoils a whole response.
absl::StatusOr<std::shared_ptr<const ClusterConfig>> CompileCluster(const envoy::config::cluster::v3::Cluster& cluster,
                                                                    const Hash128& hash, const Extensions& extensions);

// Where a request's host says no port, that of its cluster. Envoy: clusters/dynamic_forward_proxy/cluster.cc,
// chooseHost
uint16_t DefaultPort(const ClusterConfig& config);

// Index into config.socket_matches of the first whose criteria the metadata meets, or -1: config.socket.
// Envoy: source/common/upstream/transport_socket_match_impl.cc
int MatchTransportSocket(const ClusterConfig& config, const StringPairs* metadata);

}  // namespace wavetank::envoysim
