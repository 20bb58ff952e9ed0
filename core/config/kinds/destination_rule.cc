#include "core/config/kinds/destination_rule.h"

#include "core/config/kinds/read_message.h"

namespace wavetank::config {

void ReadMessage(ProtoJson& in, LocalityLbSetting::Distribute& out) {
  in.Field("from", out.from);
  in.Field("to", out.to);
}

void ReadMessage(ProtoJson& in, LocalityLbSetting::Failover& out) {
  in.Field("from", out.from);
  in.Field("to", out.to);
}

void ReadMessage(ProtoJson& in, LocalityLbSetting& out) {
  in.Field("distribute", out.distribute);
  in.Field("failover", out.failover);
  in.Field("failoverPriority", out.failover_priority);
  in.Field("enabled", out.enabled);
}

namespace {
struct CookieAttribute {
  std::string name, value;
};
void ReadMessage(ProtoJson& in, CookieAttribute& out) {
  in.Field("name", out.name);
  in.Field("value", out.value);
}
}  // namespace

void ReadMessage(ProtoJson& in, ConsistentHash::HttpCookie& out) {
  in.Field("name", out.name);
  in.Field("path", out.path);
  in.Field("ttl", out.ttl);
  std::vector<CookieAttribute> attributes;
  in.Field("attributes", attributes);
  for (CookieAttribute& each : attributes) out.attributes.emplace_back(std::move(each.name), std::move(each.value));
}

namespace {
struct RingHash {
  uint64_t minimum_ring_size = 0;
};
void ReadMessage(ProtoJson& in, RingHash& out) { in.Field("minimumRingSize", out.minimum_ring_size); }
struct Maglev {
  uint64_t table_size = 0;
};
void ReadMessage(ProtoJson& in, Maglev& out) { in.Field("tableSize", out.table_size); }
}  // namespace

void ReadMessage(ProtoJson& in, ConsistentHash& out) {
  using Key = ConsistentHash::Key;
  if (in.Has("httpHeaderName")) {
    out.key = Key::kHttpHeaderName;
    in.Field("httpHeaderName", out.name);
  }
  if (in.Has("httpCookie")) {
    out.key = Key::kHttpCookie;
    in.Field("httpCookie", out.cookie);
  }
  if (in.Has("useSourceIp")) {
    out.key = Key::kUseSourceIp;
    in.Field("useSourceIp", out.use_source_ip);
  }
  if (in.Has("httpQueryParameterName")) {
    out.key = Key::kHttpQueryParameterName;
    in.Field("httpQueryParameterName", out.name);
  }
  if (in.Has("ringHash")) {
    out.algorithm = ConsistentHash::Algorithm::kRingHash;
    RingHash ring;
    in.Field("ringHash", ring);
    out.ring_hash_minimum_ring_size = ring.minimum_ring_size;
  }
  if (in.Has("maglev")) {
    out.algorithm = ConsistentHash::Algorithm::kMaglev;
    Maglev maglev;
    in.Field("maglev", maglev);
    out.maglev_table_size = maglev.table_size;
  }
  in.Field("minimumRingSize", out.minimum_ring_size);
}

void ReadMessage(ProtoJson& in, LoadBalancerSettings::Warmup& out) {
  in.Field("duration", out.duration);
  in.Field("aggression", out.aggression);
  in.Field("minimumPercent", out.minimum_percent);
}

void ReadMessage(ProtoJson& in, LoadBalancerSettings& out) {
  using Simple = LoadBalancerSettings::Simple;
  if (in.Has("simple")) {
    out.simple = Simple::kUnspecified;
    in.Enum("simple", *out.simple,
            {{"UNSPECIFIED", Simple::kUnspecified},
             {"LEAST_CONN", Simple::kLeastConn},
             {"RANDOM", Simple::kRandom},
             {"PASSTHROUGH", Simple::kPassthrough},
             {"ROUND_ROBIN", Simple::kRoundRobin},
             {"LEAST_REQUEST", Simple::kLeastRequest}});
  }
  in.Field("consistentHash", out.consistent_hash);
  in.Field("localityLbSetting", out.locality_lb_setting);
  in.Field("warmupDurationSecs", out.warmup_duration_secs);
  in.Field("warmup", out.warmup);
}

void ReadMessage(ProtoJson& in, TcpKeepalive& out) {
  in.Field("probes", out.probes);
  in.Field("time", out.time);
  in.Field("interval", out.interval);
}

void ReadMessage(ProtoJson& in, ConnectionPoolSettings::Tcp& out) {
  in.Field("maxConnections", out.max_connections);
  in.Field("connectTimeout", out.connect_timeout);
  in.Field("tcpKeepalive", out.tcp_keepalive);
  in.Field("maxConnectionDuration", out.max_connection_duration);
  in.Field("idleTimeout", out.idle_timeout);
}

void ReadMessage(ProtoJson& in, ConnectionPoolSettings::Http& out) {
  using Policy = ConnectionPoolSettings::Http::H2UpgradePolicy;
  in.Field("http1MaxPendingRequests", out.http1_max_pending_requests);
  in.Field("http2MaxRequests", out.http2_max_requests);
  in.Field("maxRequestsPerConnection", out.max_requests_per_connection);
  in.Field("maxRetries", out.max_retries);
  in.Field("idleTimeout", out.idle_timeout);
  in.Enum("h2UpgradePolicy", out.h2_upgrade_policy,
          {{"DEFAULT", Policy::kDefault}, {"DO_NOT_UPGRADE", Policy::kDoNotUpgrade}, {"UPGRADE", Policy::kUpgrade}});
  in.Field("useClientProtocol", out.use_client_protocol);
  in.Field("maxConcurrentStreams", out.max_concurrent_streams);
}

void ReadMessage(ProtoJson& in, ConnectionPoolSettings& out) {
  in.Field("tcp", out.tcp);
  in.Field("http", out.http);
}

void ReadMessage(ProtoJson& in, OutlierDetection& out) {
  in.Field("consecutiveErrors", out.consecutive_errors);
  in.Field("splitExternalLocalOriginErrors", out.split_external_local_origin_errors);
  in.Field("consecutiveLocalOriginFailures", out.consecutive_local_origin_failures);
  in.Field("consecutiveGatewayErrors", out.consecutive_gateway_errors);
  in.Field("consecutive5xxErrors", out.consecutive_5xx_errors);
  in.Field("interval", out.interval);
  in.Field("baseEjectionTime", out.base_ejection_time);
  in.Field("maxEjectionPercent", out.max_ejection_percent);
  in.Field("minHealthPercent", out.min_health_percent);
}

void ReadMessage(ProtoJson& in, ClientTlsSettings& out) {
  using Mode = ClientTlsSettings::Mode;
  in.Enum("mode", out.mode,
          {{"DISABLE", Mode::kDisable},
           {"SIMPLE", Mode::kSimple},
           {"MUTUAL", Mode::kMutual},
           {"ISTIO_MUTUAL", Mode::kIstioMutual}});
  in.Field("clientCertificate", out.client_certificate);
  in.Field("privateKey", out.private_key);
  in.Field("caCertificates", out.ca_certificates);
  in.Field("credentialName", out.credential_name);
  in.Field("subjectAltNames", out.subject_alt_names);
  in.Field("sni", out.sni);
  in.Field("insecureSkipVerify", out.insecure_skip_verify);
  in.Field("caCrl", out.ca_crl);
}

void ReadMessage(ProtoJson& in, PortTrafficPolicy& out) {
  if (const nlohmann::json* selector = in.Find("port")) {
    ProtoJson fields(*selector, in.PathOf("port"), in.status());
    fields.Field("number", out.port);
  }
  in.Field("loadBalancer", out.load_balancer);
  in.Field("connectionPool", out.connection_pool);
  in.Field("outlierDetection", out.outlier_detection);
  in.Field("tls", out.tls);
}

void ReadMessage(ProtoJson& in, TunnelSettings& out) {
  in.Field("protocol", out.protocol);
  in.Field("targetHost", out.target_host);
  in.Field("targetPort", out.target_port);
}

void ReadMessage(ProtoJson& in, RetryBudget& out) {
  in.Field("percent", out.percent);
  in.Field("minRetryConcurrency", out.min_retry_concurrency);
}

void ReadMessage(ProtoJson& in, TrafficPolicy& out) {
  in.Field("loadBalancer", out.load_balancer);
  in.Field("connectionPool", out.connection_pool);
  in.Field("outlierDetection", out.outlier_detection);
  in.Field("tls", out.tls);
  in.Field("portLevelSettings", out.port_level_settings);
  in.Field("tunnel", out.tunnel);
  if (const nlohmann::json* protocol = in.Find("proxyProtocol")) {
    using Version = ProxyProtocolVersion;
    ProtoJson fields(*protocol, in.PathOf("proxyProtocol"), in.status());
    fields.Enum("version", out.proxy_protocol.emplace(), {{"V1", Version::kV1}, {"V2", Version::kV2}});
  }
  in.Field("retryBudget", out.retry_budget);
}

void ReadMessage(ProtoJson& in, Subset& out) {
  in.Field("name", out.name);
  in.Field("labels", out.labels);
  in.Field("trafficPolicy", out.traffic_policy);
}

void ReadMessage(ProtoJson& in, DestinationRule& out) {
  in.Field("host", out.host);
  in.Field("trafficPolicy", out.traffic_policy);
  in.Field("subsets", out.subsets);
  in.Field("exportTo", out.export_to);
  ReadSelector(in, "workloadSelector", "matchLabels", out.workload_selector);
}

}  // namespace wavetank::config
