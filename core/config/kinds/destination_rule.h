// networking.istio.io DestinationRule and the traffic policies that it shares with others.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/config/kinds/typed_config.h"

namespace wavetank::config {

struct LocalityLbSetting {
  struct Distribute {
    std::string from;
    std::map<std::string, uint32_t> to;
    friend bool operator==(const Distribute&, const Distribute&) = default;
  };
  struct Failover {
    std::string from, to;
    friend bool operator==(const Failover&, const Failover&) = default;
  };
  std::vector<Distribute> distribute;
  std::vector<Failover> failover;
  std::vector<std::string> failover_priority;
  std::optional<bool> enabled;
  friend bool operator==(const LocalityLbSetting&, const LocalityLbSetting&) = default;
};

struct ConsistentHash {
  struct HttpCookie {
    std::string name, path;
    std::optional<Duration> ttl;
    std::vector<std::pair<std::string, std::string>> attributes;
    friend bool operator==(const HttpCookie&, const HttpCookie&) = default;
  };
  enum class Key : uint8_t { kNone, kHttpHeaderName, kHttpCookie, kUseSourceIp, kHttpQueryParameterName };
  enum class Algorithm : uint8_t { kNone, kRingHash, kMaglev };
  Key key = Key::kNone;
  std::string name;  // of the header or the query parameter
  HttpCookie cookie;
  bool use_source_ip = false;
  Algorithm algorithm = Algorithm::kNone;
  uint64_t ring_hash_minimum_ring_size = 0;
  uint64_t maglev_table_size = 0;
  uint64_t minimum_ring_size = 0;  // the deprecated field beside the oneof
  friend bool operator==(const ConsistentHash&, const ConsistentHash&) = default;
};

struct LoadBalancerSettings {
  // Values are the API's.
  enum class Simple : uint8_t { kUnspecified, kLeastConn, kRandom, kPassthrough, kRoundRobin, kLeastRequest };
  std::optional<Simple> simple;  // of the oneof: set only when the field is there
  std::optional<ConsistentHash> consistent_hash;
  std::optional<LocalityLbSetting> locality_lb_setting;
  std::optional<Duration> warmup_duration_secs;
  // How an endpoint that is new comes to its share.
  struct Warmup {
    std::optional<Duration> duration;
    std::optional<double> aggression, minimum_percent;
    friend bool operator==(const Warmup&, const Warmup&) = default;
  };
  std::optional<Warmup> warmup;
  friend bool operator==(const LoadBalancerSettings&, const LoadBalancerSettings&) = default;
};

struct TcpKeepalive {
  uint32_t probes = 0;
  std::optional<Duration> time, interval;
  friend bool operator==(const TcpKeepalive&, const TcpKeepalive&) = default;
};

struct ConnectionPoolSettings {
  struct Tcp {
    int32_t max_connections = 0;
    std::optional<Duration> connect_timeout, max_connection_duration, idle_timeout;
    std::optional<TcpKeepalive> tcp_keepalive;
    friend bool operator==(const Tcp&, const Tcp&) = default;
  };
  struct Http {
    enum class H2UpgradePolicy : uint8_t { kDefault, kDoNotUpgrade, kUpgrade };
    int32_t http1_max_pending_requests = 0, http2_max_requests = 0, max_requests_per_connection = 0, max_retries = 0,
            max_concurrent_streams = 0;
    std::optional<Duration> idle_timeout;
    H2UpgradePolicy h2_upgrade_policy = H2UpgradePolicy::kDefault;
    bool use_client_protocol = false;
    friend bool operator==(const Http&, const Http&) = default;
  };
  std::optional<Tcp> tcp;
  std::optional<Http> http;
  friend bool operator==(const ConnectionPoolSettings&, const ConnectionPoolSettings&) = default;
};

struct OutlierDetection {
  int32_t consecutive_errors = 0;  // deprecated, still parsed
  bool split_external_local_origin_errors = false;
  std::optional<uint32_t> consecutive_local_origin_failures, consecutive_gateway_errors, consecutive_5xx_errors;
  std::optional<Duration> interval, base_ejection_time;
  int32_t max_ejection_percent = 0, min_health_percent = 0;
  friend bool operator==(const OutlierDetection&, const OutlierDetection&) = default;
};

struct ClientTlsSettings {
  enum class Mode : uint8_t { kDisable, kSimple, kMutual, kIstioMutual };
  Mode mode = Mode::kDisable;
  std::string client_certificate, private_key, ca_certificates, credential_name, sni, ca_crl;
  std::vector<std::string> subject_alt_names;
  std::optional<bool> insecure_skip_verify;
  friend bool operator==(const ClientTlsSettings&, const ClientTlsSettings&) = default;
};

struct PortTrafficPolicy {
  uint32_t port = 0;
  std::optional<LoadBalancerSettings> load_balancer;
  std::optional<ConnectionPoolSettings> connection_pool;
  std::optional<OutlierDetection> outlier_detection;
  std::optional<ClientTlsSettings> tls;
  friend bool operator==(const PortTrafficPolicy&, const PortTrafficPolicy&) = default;
};

struct TunnelSettings {
  std::string protocol, target_host;
  uint32_t target_port = 0;
  friend bool operator==(const TunnelSettings&, const TunnelSettings&) = default;
};

// The client's address, told to the server at the beginning of a connection.
enum class ProxyProtocolVersion : uint8_t { kV1, kV2 };

struct RetryBudget {
  std::optional<double> percent;
  uint32_t min_retry_concurrency = 0;
  friend bool operator==(const RetryBudget&, const RetryBudget&) = default;
};

struct TrafficPolicy {
  std::optional<LoadBalancerSettings> load_balancer;
  std::optional<ConnectionPoolSettings> connection_pool;
  std::optional<OutlierDetection> outlier_detection;
  std::optional<ClientTlsSettings> tls;
  std::vector<PortTrafficPolicy> port_level_settings;
  std::optional<TunnelSettings> tunnel;
  std::optional<ProxyProtocolVersion> proxy_protocol;
  std::optional<RetryBudget> retry_budget;
  friend bool operator==(const TrafficPolicy&, const TrafficPolicy&) = default;
};

struct Subset {
  std::string name;
  Labels labels;
  std::optional<TrafficPolicy> traffic_policy;
  friend bool operator==(const Subset&, const Subset&) = default;
};

struct DestinationRule {
  std::string host;
  std::optional<TrafficPolicy> traffic_policy;
  std::vector<Subset> subsets;
  std::vector<std::string> export_to;
  std::optional<Labels> workload_selector;  // matchLabels
  friend bool operator==(const DestinationRule&, const DestinationRule&) = default;
};
using DestinationRuleRef = TypedConfigRef<DestinationRule>;

}  // namespace wavetank::config
