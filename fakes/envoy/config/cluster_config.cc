#include "fakes/envoy/config/cluster_config.h"

#include <algorithm>
#include <utility>

#include "envoy/config/cluster/v3/cluster.pb.h"
#include "envoy/extensions/upstreams/http/v3/http_protocol_options.pb.h"
#include "fakes/envoy/config/alpn_offers.h"
#include "fakes/envoy/config/config_path.h"
#include "fakes/envoy/extensions/config_json.h"
#include "fakes/envoy/extensions/extensions.h"
#include "fakes/envoy/http/http2_options.h"
#include "fakes/envoy/match/durations.h"
#include "fakes/envoy/match/proto_time.h"
#include "fmt/format.h"
#include "google/protobuf/duration.pb.h"

// Configuration in the field still uses what Envoy calls deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace wavetank::envoysim {
namespace {

namespace cluster_v3 = envoy::config::cluster::v3;

template <typename Wrapper, typename T>
void Set(bool has, const Wrapper& value, T* out) {
  if (has) *out = static_cast<T>(value.value());
}

constexpr std::string_view kDynamicForwardType = "envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig";

absl::StatusOr<DiscoveryType> TypeOf(const cluster_v3::Cluster& cluster, const Extensions& extensions) {
  if (cluster.has_cluster_type()) {
    const google::protobuf::Any& config = cluster.cluster_type().typed_config();
    if (ConfigType(config) == kDynamicForwardType) return DiscoveryType::kDynamicForward;
    extensions.NoteWithoutEffect("cluster type", config);
  }
  switch (cluster.type()) {
    case cluster_v3::Cluster::STATIC:
      return DiscoveryType::kStatic;
    case cluster_v3::Cluster::STRICT_DNS:
      return DiscoveryType::kStrictDns;
    case cluster_v3::Cluster::LOGICAL_DNS:
      return DiscoveryType::kLogicalDns;
    case cluster_v3::Cluster::EDS:
      return DiscoveryType::kEds;
    case cluster_v3::Cluster::ORIGINAL_DST:
      return DiscoveryType::kOriginalDst;
    default:
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (ClusterValidationError.Type: value must be one of the defined enum "
          "values)");
  }
}

// Of round_robin_lb_config or least_request_lb_config. Envoy: load_balancer_impl.cc, EdfLoadBalancerBase
void SetSlowStart(const cluster_v3::Cluster::SlowStartConfig& config, LbConfig* lb) {
  lb->slow_start_window = ToDuration(config.slow_start_window());
  if (config.has_aggression() && config.aggression().default_value() > 0) {
    lb->slow_start_aggression = config.aggression().default_value();
  }
  if (config.has_min_weight_percent()) lb->slow_start_min_weight = config.min_weight_percent().value() / 100;
}

// Envoy: source/extensions/load_balancing_policies/maglev/maglev_lb.cc
absl::Status SetMaglevTable(const cluster_v3::Cluster& cluster, LbConfig* lb) {
  const auto& maglev = cluster.maglev_lb_config();
  Set(maglev.has_table_size(), maglev.table_size(), &lb->maglev_table_size);
  constexpr uint64_t kLargestTable = 5'000'011;
  if (lb->maglev_table_size > kLargestTable) {
    return absl::InvalidArgumentError(
        fmt::format("Proto constraint validation failed (MaglevLbConfigValidationError.TableSize: value must be less "
                    "than or equal to {})",
                    kLargestTable));
  }
  if (lb->policy != LbPolicy::kMaglev) return absl::OkStatus();
  bool prime = lb->maglev_table_size != 0;
  for (uint64_t d = 2; d * d <= lb->maglev_table_size; ++d) prime = prime && lb->maglev_table_size % d != 0;
  if (!prime) return absl::InvalidArgumentError("The table size of maglev must be prime number");
  // A prime to Envoy, which takes hashes modulo the size less one, and ends.
  if (lb->maglev_table_size == 1) return absl::InvalidArgumentError("A maglev table of size 1 ends an Envoy (SIGFPE)");
  return absl::OkStatus();
}

absl::Status SetLb(const cluster_v3::Cluster& cluster, DiscoveryType type, LbConfig* lb) {
  switch (cluster.lb_policy()) {
    case cluster_v3::Cluster::ROUND_ROBIN:
      lb->policy = LbPolicy::kRoundRobin;
      SetSlowStart(cluster.round_robin_lb_config().slow_start_config(), lb);
      break;
    case cluster_v3::Cluster::LEAST_REQUEST:
      lb->policy = LbPolicy::kLeastRequest;
      SetSlowStart(cluster.least_request_lb_config().slow_start_config(), lb);
      break;
    case cluster_v3::Cluster::RANDOM:
      lb->policy = LbPolicy::kRandom;
      break;
    case cluster_v3::Cluster::RING_HASH:
      lb->policy = LbPolicy::kRingHash;
      break;
    case cluster_v3::Cluster::MAGLEV:
      lb->policy = LbPolicy::kMaglev;
      break;
    case cluster_v3::Cluster::CLUSTER_PROVIDED:
      lb->policy = LbPolicy::kClusterProvided;
      break;
    default:
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (ClusterValidationError.LbPolicy: value must be one of the defined enum "
          "values)");
  }
  const bool provided = lb->policy == LbPolicy::kClusterProvided;
  if (type == DiscoveryType::kOriginalDst && !provided) {
    return absl::InvalidArgumentError(fmt::format(
        "cluster: LB policy {} is not valid for Cluster type ORIGINAL_DST. Only 'CLUSTER_PROVIDED' is allowed with "
        "cluster type 'ORIGINAL_DST'",
        cluster_v3::Cluster::LbPolicy_Name(cluster.lb_policy())));
  }
  if (type == DiscoveryType::kDynamicForward && !provided) {
    return absl::InvalidArgumentError(
        fmt::format("cluster manager: cluster provided LB not specified but cluster '{}' provided one. Check cluster "
                    "documentation.",
                    cluster.name()));
  }
  if (type != DiscoveryType::kOriginalDst && type != DiscoveryType::kDynamicForward && provided) {
    return absl::InvalidArgumentError(
        fmt::format("cluster manager: cluster provided LB specified but cluster '{}' did not provide one. Check "
                    "cluster documentation.",
                    cluster.name()));
  }
  const auto& common = cluster.common_lb_config();
  if (common.has_healthy_panic_threshold()) {
    const double percent = common.healthy_panic_threshold().value();
    if (percent < 0 || percent > 100) {
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (PercentValidationError.Value: value must "
          "be inside range [0, 100])");
    }
    lb->panic_threshold_percent = static_cast<uint32_t>(percent + 0.5);
  }
  lb->locality_weighted = common.has_locality_weighted_lb_config();
  lb->fail_traffic_on_panic = common.zone_aware_lb_config().fail_traffic_on_panic();
  lb->use_hostname_for_hashing = common.consistent_hashing_lb_config().use_hostname_for_hashing();
  const auto& least = cluster.least_request_lb_config();
  Set(least.has_choice_count(), least.choice_count(), &lb->choice_count);
  if (lb->choice_count < 2) {
    return absl::InvalidArgumentError(
        "Proto constraint validation failed "
        "(LeastRequestLbConfigValidationError.ChoiceCount: value must be greater "
        "than or equal to 2)");
  }
  const auto& ring = cluster.ring_hash_lb_config();
  Set(ring.has_minimum_ring_size(), ring.minimum_ring_size(), &lb->minimum_ring_size);
  Set(ring.has_maximum_ring_size(), ring.maximum_ring_size(), &lb->maximum_ring_size);
  constexpr uint64_t kLargestRing = 8'388'608;
  for (const auto& [field, size] : {std::pair{"MinimumRingSize", ring.minimum_ring_size().value()},
                                    std::pair{"MaximumRingSize", ring.maximum_ring_size().value()}}) {
    if (size > kLargestRing) {
      return absl::InvalidArgumentError(
          fmt::format("Proto constraint validation failed (RingHashLbConfigValidationError.{}: value must be less than "
                      "or equal to {})",
                      field, kLargestRing));
    }
  }
  if (lb->policy == LbPolicy::kRingHash && lb->minimum_ring_size > lb->maximum_ring_size) {
    return absl::InvalidArgumentError(fmt::format("ring hash: minimum_ring_size ({}) > maximum_ring_size ({})",
                                                  lb->minimum_ring_size, lb->maximum_ring_size));
  }
  return SetMaglevTable(cluster, lb);
}

void SetCircuitBreakers(const cluster_v3::Cluster& cluster, CircuitBreakers* out) {
  for (const auto& t : cluster.circuit_breakers().thresholds()) {
    if (t.priority() != envoy::config::core::v3::DEFAULT) continue;
    Set(t.has_max_connections(), t.max_connections(), &out->max_connections);
    Set(t.has_max_pending_requests(), t.max_pending_requests(), &out->max_pending_requests);
    Set(t.has_max_requests(), t.max_requests(), &out->max_requests);
    Set(t.has_max_retries(), t.max_retries(), &out->max_retries);
    if (t.has_retry_budget()) {
      constexpr double kUsual = 20;
      out->retry_percent = t.retry_budget().has_budget_percent() ? t.retry_budget().budget_percent().value() : kUsual;
      Set(t.retry_budget().has_min_retry_concurrency(), t.retry_budget().min_retry_concurrency(), &out->least_retries);
    }
    return;  // the first of a priority counts
  }
}

absl::StatusOr<OutlierConfig> OutlierOf(const cluster_v3::OutlierDetection& p) {
  const auto refused = [](std::string_view field, std::string_view why) {
    return absl::InvalidArgumentError(fmt::format(
        "Proto constraint validation failed (OutlierDetectionValidationError.{}: value must be {})", field, why));
  };
  for (const auto& [field, percent] :
       {std::pair{"MaxEjectionPercent", p.max_ejection_percent().value()},
        std::pair{"EnforcingConsecutive_5Xx", p.enforcing_consecutive_5xx().value()},
        std::pair{"EnforcingSuccessRate", p.enforcing_success_rate().value()},
        std::pair{"EnforcingConsecutiveGatewayFailure", p.enforcing_consecutive_gateway_failure().value()},
        std::pair{"EnforcingConsecutiveLocalOriginFailure", p.enforcing_consecutive_local_origin_failure().value()}}) {
    if (percent > 100) return refused(field, "less than or equal to 100");
  }
  if (p.has_interval() && IsZero(p.interval())) return refused("Interval", "greater than 0s");
  if (p.has_base_ejection_time() && IsZero(p.base_ejection_time())) {
    return refused("BaseEjectionTime", "greater than 0s");
  }
  OutlierConfig o;
  Set(p.has_consecutive_5xx(), p.consecutive_5xx(), &o.consecutive_5xx);
  Set(p.has_enforcing_consecutive_5xx(), p.enforcing_consecutive_5xx(), &o.enforcing_consecutive_5xx);
  Set(p.has_consecutive_gateway_failure(), p.consecutive_gateway_failure(), &o.consecutive_gateway_failure);
  Set(p.has_enforcing_consecutive_gateway_failure(), p.enforcing_consecutive_gateway_failure(),
      &o.enforcing_consecutive_gateway_failure);
  o.split_external_local_origin_errors = p.split_external_local_origin_errors();
  Set(p.has_consecutive_local_origin_failure(), p.consecutive_local_origin_failure(),
      &o.consecutive_local_origin_failure);
  Set(p.has_enforcing_consecutive_local_origin_failure(), p.enforcing_consecutive_local_origin_failure(),
      &o.enforcing_consecutive_local_origin_failure);
  if (p.has_interval()) o.interval = ToPeriod(p.interval());
  if (p.has_base_ejection_time()) o.base_ejection_time = ToDuration(p.base_ejection_time());
  // Envoy: the maximum is at least the base. source/common/upstream/outlier_detection_impl.cc
  o.max_ejection_time =
      std::max(p.has_max_ejection_time() ? ToDuration(p.max_ejection_time()) : 300s, o.base_ejection_time);
  Set(p.has_max_ejection_percent(), p.max_ejection_percent(), &o.max_ejection_percent);
  o.always_eject_one_host = p.always_eject_one_host().value();
  Set(p.has_successful_active_health_check_uneject_host(), p.successful_active_health_check_uneject_host(),
      &o.passed_check_returns_host);
  return o;
}

absl::Status SetHttpOptions(const cluster_v3::Cluster& cluster, const Extensions& extensions, ClusterConfig* out) {
  auto http2 = cluster.http2_protocol_options();
  auto http1 = cluster.http_protocol_options();
  if (cluster.has_http2_protocol_options()) out->protocol = UpstreamProtocol::kHttp2;
  if (cluster.protocol_selection() == cluster_v3::Cluster::USE_DOWNSTREAM_PROTOCOL)
    out->protocol = UpstreamProtocol::kDownstream;
  Set(cluster.has_max_requests_per_connection(), cluster.max_requests_per_connection(),
      &out->max_requests_per_connection);
  auto common = cluster.common_http_protocol_options();
  const auto& typed = cluster.typed_extension_protocol_options();
  const auto it = typed.find("envoy.extensions.upstreams.http.v3.HttpProtocolOptions");
  if (it != typed.end()) {
    using Options = envoy::extensions::upstreams::http::v3::HttpProtocolOptions;
    Options options;
    if (!it->second.UnpackTo(&options)) {
      return absl::InvalidArgumentError("Unable to unpack HttpProtocolOptions");
    }
    if (absl::Status s = CheckDurations(options); !s.ok()) return absl::FailedPreconditionError(s.message());
    switch (options.upstream_protocol_options_case()) {
      case Options::kExplicitHttpConfig:
        out->protocol = options.explicit_http_config().has_http2_protocol_options() ? UpstreamProtocol::kHttp2
                                                                                    : UpstreamProtocol::kHttp1;
        http2 = options.explicit_http_config().http2_protocol_options();
        http1 = options.explicit_http_config().http_protocol_options();
        break;
      case Options::kUseDownstreamProtocolConfig:
        out->protocol = UpstreamProtocol::kDownstream;
        http2 = options.use_downstream_protocol_config().http2_protocol_options();
        http1 = options.use_downstream_protocol_config().http_protocol_options();
        break;
      case Options::kAutoConfig:
        out->protocol = UpstreamProtocol::kAlpn;
        http2 = options.auto_config().http2_protocol_options();
        http1 = options.auto_config().http_protocol_options();
        break;
      default:
        return absl::FailedPreconditionError(
            "Proto constraint validation failed "
            "(HttpProtocolOptionsValidationError.UpstreamProtocolOptions: value is "
            "required)");
    }
    if (options.has_common_http_protocol_options()) common = options.common_http_protocol_options();
    out->auto_sni = options.upstream_http_protocol_options().auto_sni();
    out->auto_san_validation = options.upstream_http_protocol_options().auto_san_validation();
  }
  out->http1_trailers = http1.enable_trailers();
  const absl::StatusOr<uint32_t> streams = ConcurrentStreams(http2, extensions.release());
  if (!streams.ok()) {
    return it != typed.end() ? absl::FailedPreconditionError(streams.status().message()) : streams.status();
  }
  out->max_concurrent_streams = *streams;
  if (common.has_idle_timeout()) out->idle_timeout = ToDuration(common.idle_timeout());
  out->max_connection_duration = ToDuration(common.max_connection_duration());
  out->max_stream_duration = ToDuration(common.max_stream_duration());
  Set(common.has_max_requests_per_connection(), common.max_requests_per_connection(),
      &out->max_requests_per_connection);
  return absl::OkStatus();
}

void AddSecrets(const TransportSocket& socket, std::vector<std::string>* secrets) {
  if (socket.tls == nullptr) return;
  for (const std::string& name : {socket.tls->certificate_secret, socket.tls->validation_secret}) {
    if (!name.empty() && std::find(secrets->begin(), secrets->end(), name) == secrets->end()) secrets->push_back(name);
  }
}

absl::Status SetSockets(const cluster_v3::Cluster& cluster, const Extensions& extensions, ClusterConfig* out) {
  if (cluster.has_transport_socket()) {
    absl::StatusOr<TransportSocket> socket =
        CompileTransportSocket(cluster.transport_socket(), /*downstream=*/false, extensions);
    if (!socket.ok()) return socket.status();
    out->socket = *std::move(socket);
    AddSecrets(out->socket, &out->secrets);
  }
  for (const auto& match : cluster.transport_socket_matches()) {
    TransportSocketMatch m;
    m.name = match.name();
    if (m.name.empty()) {
      return absl::InvalidArgumentError(
          "Proto constraint validation failed "
          "(Cluster_TransportSocketMatchValidationError.Name: value length must be at "
          "least 1 characters)");
    }
    for (const auto& [key, value] : match.match().fields()) m.criteria.emplace_back(key, value.string_value());
    std::sort(m.criteria.begin(), m.criteria.end());
    absl::StatusOr<TransportSocket> socket =
        CompileTransportSocket(match.transport_socket(), /*downstream=*/false, extensions);
    if (!socket.ok()) return socket.status();
    m.socket = *std::move(socket);
    AddSecrets(m.socket, &out->secrets);
    out->socket_matches.push_back(std::move(m));
  }
  return absl::OkStatus();
}

// Envoy: clusters/dynamic_forward_proxy/cluster.cc, createClusterWithConfig
absl::Status SetDynamicForward(const cluster_v3::Cluster& cluster, const Extensions& extensions, ClusterConfig* out) {
  if (out->type != DiscoveryType::kDynamicForward) return absl::OkStatus();
  const absl::StatusOr<nlohmann::json> config = ConfigJson(cluster.cluster_type().typed_config());
  if (!config.ok()) return config.status();
  const nlohmann::json& sub_clusters = JsonAt(*config, "sub_clusters_config");
  if (!sub_clusters.is_null()) {
    extensions.NoteWithoutEffect("sub_clusters_config", std::string(kDynamicForwardType));
  } else {
    absl::StatusOr<DnsCacheConfig> cache = CompileDnsCache(JsonAt(*config, "dns_cache_config"));
    if (!cache.ok()) return cache.status();
    out->dns_cache = *std::move(cache);
  }
  // Said by nobody, both are so; options of the newer kind say all themselves.
  const bool typed =
      cluster.typed_extension_protocol_options().contains("envoy.extensions.upstreams.http.v3.HttpProtocolOptions");
  if (!typed) {
    const bool said = cluster.has_upstream_http_protocol_options();
    out->auto_sni = !said || cluster.upstream_http_protocol_options().auto_sni();
    out->auto_san_validation = !said || cluster.upstream_http_protocol_options().auto_san_validation();
  }
  if (!BoolAt(*config, "allow_insecure_cluster_options") && (!out->auto_sni || !out->auto_san_validation)) {
    return absl::InvalidArgumentError(
        "dynamic_forward_proxy cluster must have auto_sni and auto_san_validation true unless "
        "allow_insecure_cluster_options is set.");
  }
  return absl::OkStatus();
}

absl::Status SetEndpoints(const cluster_v3::Cluster& cluster, ClusterConfig* out) {
  if (out->type == DiscoveryType::kDynamicForward) return absl::OkStatus();
  if (out->type == DiscoveryType::kEds) {
    if (!cluster.has_eds_cluster_config()) {
      return absl::InvalidArgumentError("cannot create an EDS cluster without an EDS config");
    }
    const auto& eds = cluster.eds_cluster_config();
    if (!eds.service_name().empty()) out->service_name = eds.service_name();
    if (eds.eds_config().has_initial_fetch_timeout()) {
      out->initial_fetch_timeout = ToDuration(eds.eds_config().initial_fetch_timeout());
    }
    if (cluster.has_load_assignment()) {
      return absl::InvalidArgumentError("load_assignment is not allowed with EDS clusters");
    }
    return absl::OkStatus();
  }
  if (out->type == DiscoveryType::kOriginalDst) {
    if (cluster.has_load_assignment()) {
      return absl::InvalidArgumentError("ORIGINAL_DST clusters must have no load assignment configured");
    }
    // Envoy: source/extensions/clusters/original_dst/original_dst_cluster.cc, LoadBalancer::chooseHost.
    out->port_override = static_cast<uint16_t>(cluster.original_dst_lb_config().upstream_port_override().value());
    return absl::OkStatus();
  }
  if (!cluster.has_load_assignment()) {
    if (out->type == DiscoveryType::kLogicalDns) {
      return absl::InvalidArgumentError("LOGICAL_DNS clusters must have a single host");
    }
    out->load_assignment = std::make_shared<EndpointTable>();
    return absl::OkStatus();
  }
  const bool names = out->type != DiscoveryType::kStatic;
  absl::StatusOr<std::shared_ptr<const EndpointTable>> table =
      CompileEndpoints(cluster.load_assignment(), out->hash, names ? AddressKind::kNames : AddressKind::kStatic);
  if (!table.ok()) return table.status();
  out->load_assignment = *std::move(table);
  if (out->type == DiscoveryType::kLogicalDns && out->load_assignment->endpoints.size() != 1) {
    return absl::InvalidArgumentError(
        "LOGICAL_DNS clusters must have a single locality_lb_endpoint and a single lb_endpoint");
  }
  return absl::OkStatus();
}

// Envoy: upstream_impl.cc, ClusterInfoImpl::HttpProtocolOptionsConfigImpl::parseFeatures
bool MaySpeakHttp2(const cluster_v3::Cluster& cluster, const ClusterConfig& config) {
  if (config.protocol != UpstreamProtocol::kDownstream) return config.protocol != UpstreamProtocol::kHttp1;
  const auto typed =
      cluster.typed_extension_protocol_options().find("envoy.extensions.upstreams.http.v3.HttpProtocolOptions");
  envoy::extensions::upstreams::http::v3::HttpProtocolOptions options;
  if (typed == cluster.typed_extension_protocol_options().end() || !typed->second.UnpackTo(&options)) {
    return cluster.has_http2_protocol_options();
  }
  return options.use_downstream_protocol_config().has_http2_protocol_options();
}

absl::Status SetHealthCheck(const cluster_v3::Cluster& cluster, const Extensions& extensions, ClusterConfig* out) {
  out->unchecked_are_excluded = cluster.common_lb_config().ignore_new_hosts_until_first_hc();
  out->removed_whatever_health = cluster.ignore_health_on_host_removal();
  if (cluster.health_checks().empty()) return absl::OkStatus();
  if (cluster.health_checks_size() > 1) {
    // Names came with that release; the messages here have none.
    return absl::InvalidArgumentError(
        extensions.release().Has(EnvoyChange::kSeveralHealthChecks)
            ? "health check at index 0 is missing a name; all health checks must have a name when multiple health "
              "checks are configured"
            : "Multiple health checks not supported");
  }
  absl::StatusOr<std::shared_ptr<const HealthCheckConfig>> check =
      CompileHealthCheck(cluster.health_checks(0), extensions);
  if (!check.ok()) return check.status();
  out->health_check = *std::move(check);
  // Envoy: source/common/upstream/health_checker_impl.cc, HealthCheckerFactory::create
  if (cluster.health_checks(0).has_grpc_health_check() && !MaySpeakHttp2(cluster, *out)) {
    return absl::InvalidArgumentError(
        fmt::format("{} cluster must support HTTP/2 for gRPC healthchecking", cluster.name()));
  }
  const bool original = out->type == DiscoveryType::kOriginalDst;
  if (original || out->type == DiscoveryType::kDynamicForward) {
    out->health_check = nullptr;
    extensions.NoteWithoutEffect("active health check", original ? "envoy.config.core.v3.HealthCheck of ORIGINAL_DST"
                                                                 : "envoy.config.core.v3.HealthCheck of names");
  }
  return absl::OkStatus();
}

// istio/proxy: source/extensions/filters/http/istio_stats/istio_stats.cc, populatePeerInfo: the first of the services.
void ReadService(const envoy::config::core::v3::Metadata& metadata, ClusterConfig* out) {
  const auto istio = metadata.filter_metadata().find("istio");
  if (istio == metadata.filter_metadata().end()) return;
  const auto services = istio->second.fields().find("services");
  if (services == istio->second.fields().end() || services->second.list_value().values().empty()) return;
  const auto& service = services->second.list_value().values(0).struct_value().fields();
  if (const auto host = service.find("host"); host != service.end()) out->istio_host = host->second.string_value();
  const auto name = service.find("name");
  out->istio_name =
      name != service.end() ? name->second.string_value() : out->istio_host.substr(0, out->istio_host.find('.'));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ClusterConfig>> CompileCluster(const cluster_v3::Cluster& cluster,
                                                                    const Hash128& hash, const Extensions& binary) {
  auto out = std::make_shared<ClusterConfig>();
  const Extensions extensions = binary.WithNotes(&out->without_effect);
  out->hash = hash;
  out->name = out->service_name = cluster.name();
  out->config = ConfigPath(cluster.metadata());
  ReadService(cluster.metadata(), out.get());
  out->alt_stat_name = cluster.alt_stat_name();
  if (out->name.empty()) {
    return absl::InvalidArgumentError(
        "Proto constraint validation failed (ClusterValidationError.Name: value length "
        "must be at least 1 characters)");
  }
  absl::StatusOr<DiscoveryType> type = TypeOf(cluster, extensions);
  if (!type.ok()) return type.status();
  out->type = *type;
  if (cluster.has_connect_timeout()) {
    out->connect_timeout = ToDuration(cluster.connect_timeout());
    if (IsZero(cluster.connect_timeout())) {
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (ClusterValidationError.ConnectTimeout: "
          "value must be greater than 0s)");
    }
  }
  if (absl::Status s = SetLb(cluster, out->type, &out->lb); !s.ok()) return s;
  SetCircuitBreakers(cluster, &out->circuit_breakers);
  if (cluster.has_outlier_detection()) {
    absl::StatusOr<OutlierConfig> outlier = OutlierOf(cluster.outlier_detection());
    if (!outlier.ok()) return outlier.status();
    out->outlier = *std::move(outlier);
  }
  if (cluster.common_lb_config().has_update_merge_window()) {
    out->update_merge_window = ToDuration(cluster.common_lb_config().update_merge_window());
  }
  if (cluster.has_dns_refresh_rate()) {
    out->dns_refresh_rate = ToDuration(cluster.dns_refresh_rate());
    if (out->dns_refresh_rate <= 1ms) {
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (ClusterValidationError.DnsRefreshRate: "
          "value must be greater than 1ms)");
    }
  }
  out->respect_dns_ttl = cluster.respect_dns_ttl();
  out->close_on_health_failure = cluster.close_connections_on_host_health_failure();
  if (cluster.has_cleanup_interval()) {
    out->cleanup_interval = ToPeriod(cluster.cleanup_interval());
    if (IsZero(cluster.cleanup_interval())) {
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (ClusterValidationError.CleanupInterval: value must be greater than 0s)");
    }
  }
  if (absl::Status s = SetHttpOptions(cluster, extensions, out.get()); !s.ok()) return s;
  if (absl::Status s = SetDynamicForward(cluster, extensions, out.get()); !s.ok()) return s;
  for (const auto& filter : cluster.filters()) {
    if (absl::Status s = extensions.Check(filter.name(), filter.typed_config()); !s.ok()) return s;
    out->exchanges_peers |= ConfigType(filter.typed_config()) == kPeerExchangeMessage;
    extensions.NoteWithoutEffect("cluster filter", filter.typed_config());
  }
  if (absl::Status s = SetHealthCheck(cluster, extensions, out.get()); !s.ok()) return s;
  if (absl::Status s = SetSockets(cluster, extensions, out.get()); !s.ok()) return s;
  if (cluster.upstream_bind_config().has_source_address()) {
    absl::StatusOr<IpAddress> source = IpAddress::Parse(cluster.upstream_bind_config().source_address().address());
    if (!source.ok()) return source.status();
    out->bind_source = *source;
  }
  if (absl::Status s = SetEndpoints(cluster, out.get()); !s.ok()) return s;
  return out;
}

uint16_t DefaultPort(const ClusterConfig& config) {
  const int match = MatchTransportSocket(config, nullptr);
  return (match < 0 ? config.socket : config.socket_matches[match].socket).tls != nullptr ? 443 : 80;
}

int MatchTransportSocket(const ClusterConfig& config, const StringPairs* metadata) {
  for (size_t i = 0; i < config.socket_matches.size(); ++i) {
    const StringPairs& criteria = config.socket_matches[i].criteria;
    if (criteria.empty() ||
        (metadata != nullptr && std::includes(metadata->begin(), metadata->end(), criteria.begin(), criteria.end()))) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

// Envoy: source/common/upstream/resource_manager_impl.h, RetryBudgetImpl
uint32_t CircuitBreakers::MaxRetries(uint32_t requests) const {
  if (!retry_percent) return max_retries;
  return std::max(static_cast<uint32_t>(*retry_percent / 100 * requests), least_retries);
}

}  // namespace wavetank::envoysim
