#include "core/gen/cds/cluster_policy.h"

#include <limits>

#include "core/envoyapi/any.h"
#include "core/gen/view/traffic_policy.h"
#include "core/gen/wire/duration.h"
#include "core/profile/changes.h"

namespace wavetank::pilot {
namespace {

using envoy_cluster::Cluster;

void SetKeepalive(const std::optional<config::TcpKeepalive>& keepalive, Cluster& cluster) {
  if (!keepalive) return;
  auto* out = cluster.mutable_upstream_connection_options()->mutable_tcp_keepalive();
  const auto seconds = [](Duration d) { return static_cast<uint32_t>(d.count() / 1'000'000'000); };
  if (keepalive->probes > 0) out->mutable_keepalive_probes()->set_value(keepalive->probes);
  if (keepalive->time) out->mutable_keepalive_time()->set_value(seconds(*keepalive->time));
  if (keepalive->interval) out->mutable_keepalive_interval()->set_value(seconds(*keepalive->interval));
}

// istiod: pilot/pkg/networking/core/cluster_traffic_policy.go, setWarmup, setSlowStartConfig.
void SetSlowStart(const config::LoadBalancerSettings* lb, const Profile& profile,
                  Cluster::SlowStartConfig* (*config)(Cluster&), Cluster& cluster) {
  if (lb == nullptr) return;
  if (lb->warmup && profile.Has(Change::kWarmupShape)) {
    Cluster::SlowStartConfig& out = *config(cluster);
    if (lb->warmup->duration) SetDuration(*lb->warmup->duration, out.mutable_slow_start_window());
    out.mutable_aggression()->set_default_value(lb->warmup->aggression.value_or(1));
    out.mutable_aggression()->set_runtime_key("(");
    out.mutable_min_weight_percent()->set_value(lb->warmup->minimum_percent.value_or(10));
  } else if (lb->warmup_duration_secs) {
    SetDuration(*lb->warmup_duration_secs, config(cluster)->mutable_slow_start_window());
  }
}

void ApplyLeastRequest(const config::LoadBalancerSettings* lb, const Profile& profile, Cluster& cluster) {
  cluster.set_lb_policy(Cluster::LEAST_REQUEST);
  SetSlowStart(
      lb, profile, [](Cluster& c) { return c.mutable_least_request_lb_config()->mutable_slow_start_config(); },
      cluster);
}

void ApplyRoundRobin(const config::LoadBalancerSettings* lb, const Profile& profile, Cluster& cluster) {
  cluster.set_lb_policy(Cluster::ROUND_ROBIN);
  SetSlowStart(
      lb, profile, [](Cluster& c) { return c.mutable_round_robin_lb_config()->mutable_slow_start_config(); }, cluster);
}

// istiod: applyRetryBudget.
void SetRetryBudget(const config::RetryBudget& budget, const Profile& profile,
                    ::envoy::config::cluster::v3::CircuitBreakers::Thresholds& out) {
  const double usual = profile.Has(Change::kRetryBudgetsInherited) ? 20 : 0.2;
  constexpr uint32_t kUsualConcurrency = 3;
  out.mutable_retry_budget()->mutable_budget_percent()->set_value(budget.percent.value_or(usual));
  out.mutable_retry_budget()->mutable_min_retry_concurrency()->set_value(
      budget.min_retry_concurrency > 0 ? budget.min_retry_concurrency : kUsualConcurrency);
}

std::string EncodeThresholds(uint32_t connections, uint32_t pending, uint32_t requests, uint32_t retries, bool track,
                             const config::RetryBudget* budget = nullptr, const Profile* profile = nullptr) {
  Cluster limits;
  auto* thresholds = limits.mutable_circuit_breakers()->add_thresholds();
  thresholds->mutable_max_connections()->set_value(connections);
  thresholds->mutable_max_pending_requests()->set_value(pending);
  thresholds->mutable_max_requests()->set_value(requests);
  thresholds->mutable_max_retries()->set_value(retries);
  if (track) thresholds->set_track_remaining(true);
  if (budget != nullptr) SetRetryBudget(*budget, *profile, *thresholds);
  return Serialize(limits);
}

void ApplyLimits(const config::ConnectionPoolSettings::Tcp* tcp, const config::ConnectionPoolSettings::Http* http,
                 const config::RetryBudget* budget, const Profile& profile, ClusterDraft& draft) {
  const bool track = !profile.Has(Change::kNoRemainingCircuitBreakerMetrics);
  constexpr uint32_t kNoLimit = std::numeric_limits<uint32_t>::max();
  static const std::string* const kUnlimited[] = {
      new std::string(EncodeThresholds(kNoLimit, kNoLimit, kNoLimit, kNoLimit, false)),
      new std::string(EncodeThresholds(kNoLimit, kNoLimit, kNoLimit, kNoLimit, true))};
  const auto limit = [](int32_t wanted) { return wanted > 0 ? static_cast<uint32_t>(wanted) : kNoLimit; };
  if (tcp == nullptr && http == nullptr && budget == nullptr) {
    draft.encoded.append(*kUnlimited[track ? 1 : 0]);
    return;
  }
  draft.encoded.append(EncodeThresholds(limit(tcp != nullptr ? tcp->max_connections : 0),
                                        limit(http != nullptr ? http->http1_max_pending_requests : 0),
                                        limit(http != nullptr ? http->http2_max_requests : 0),
                                        limit(http != nullptr ? http->max_retries : 0), track, budget, &profile));
}

}  // namespace

void ApplyConnectionPool(const config::MeshConfig& mesh, const config::ConnectionPoolSettings* pool,
                         const Profile& profile, ClusterDraft& draft, const config::RetryBudget* budget) {
  const auto* tcp = pool != nullptr && pool->tcp ? &*pool->tcp : nullptr;
  const auto* http = pool != nullptr && pool->http ? &*pool->http : nullptr;
  Cluster& cluster = draft.cluster;

  ApplyLimits(tcp, http, profile.Has(Change::kRetryBudgets) ? budget : nullptr, profile, draft);

  const auto& timeout = tcp != nullptr && tcp->connect_timeout ? tcp->connect_timeout : mesh.connect_timeout;
  if (timeout) SetDuration(*timeout, cluster.mutable_connect_timeout());
  SetKeepalive(mesh.tcp_keepalive, cluster);
  if (tcp != nullptr) SetKeepalive(tcp->tcp_keepalive, cluster);

  const auto max_requests = http != nullptr ? static_cast<uint32_t>(http->max_requests_per_connection) : 0;
  if (http != nullptr && http->idle_timeout) {
    SetDuration(*http->idle_timeout, draft.CommonHttp().mutable_idle_timeout());
  } else if (tcp != nullptr && tcp->idle_timeout && profile.Has(Change::kTcpIdleTimeout)) {
    SetDuration(*tcp->idle_timeout, draft.CommonHttp().mutable_idle_timeout());
  }
  if (http != nullptr && http->max_concurrent_streams > 0 && profile.Has(Change::kConcurrentStreams)) {
    draft.CommonHttp();  // is there, be it empty
    if (draft.IsHttp2()) draft.max_concurrent_streams = static_cast<uint32_t>(http->max_concurrent_streams);
  }
  if (max_requests > 0) {
    draft.CommonHttp().mutable_max_requests_per_connection()->set_value(max_requests);
  }
  if (tcp != nullptr && tcp->max_connection_duration) {
    SetDuration(*tcp->max_connection_duration, draft.CommonHttp().mutable_max_connection_duration());
  }
  if (http != nullptr && http->use_client_protocol) {
    draft.upstream_protocol = ClusterDraft::UpstreamProtocol::kDownstream;
    draft.max_concurrent_streams = 0;
  }
}

void ApplyConsistentHash(const config::ConsistentHash& hash, Cluster& cluster) {
  constexpr uint64_t kDefaultRingSize = 1024;  // Envoy's
  switch (hash.algorithm) {
    case config::ConsistentHash::Algorithm::kMaglev:
      cluster.set_lb_policy(Cluster::MAGLEV);
      if (hash.maglev_table_size != 0) {
        cluster.mutable_maglev_lb_config()->mutable_table_size()->set_value(hash.maglev_table_size);
      }
      return;
    case config::ConsistentHash::Algorithm::kRingHash:
      cluster.set_lb_policy(Cluster::RING_HASH);
      if (hash.ring_hash_minimum_ring_size != 0) {
        cluster.mutable_ring_hash_lb_config()->mutable_minimum_ring_size()->set_value(hash.ring_hash_minimum_ring_size);
      }
      return;
    case config::ConsistentHash::Algorithm::kNone:
      cluster.set_lb_policy(Cluster::RING_HASH);
      cluster.mutable_ring_hash_lb_config()->mutable_minimum_ring_size()->set_value(
          hash.minimum_ring_size != 0 ? hash.minimum_ring_size : kDefaultRingSize);
  }
}

bool ShouldUpgradeToH2(const config::MeshConfig& mesh, const config::ConnectionPoolSettings* pool, const Port& port,
                       const Profile& profile) {
  const bool as_client = pool != nullptr && pool->http && pool->http->use_client_protocol;
  if (as_client && profile.Has(Change::kClientProtocolKept)) return false;
  using Policy = config::ConnectionPoolSettings::Http::H2UpgradePolicy;
  const Policy own = pool != nullptr && pool->http ? pool->http->h2_upgrade_policy : Policy::kDefault;
  if (own != Policy::kDefault) return own == Policy::kUpgrade;
  // The mesh's wish never concerns ports whose protocol is sniffed: their servers may know HTTP/1.1 only.
  return IsHttp(port.protocol) && mesh.h2_upgrade_policy == Policy::kUpgrade;
}

void ApplyOutlierDetection(const config::OutlierDetection* outlier, ClusterDraft& draft) {
  if (outlier == nullptr) return;
  auto* out = draft.cluster.mutable_outlier_detection();
  out->Clear();
  const auto enforcing = [](uint32_t errors) { return errors > 0 ? 100u : 0u; };
  out->mutable_enforcing_success_rate()->set_value(0);
  if (outlier->consecutive_5xx_errors) {
    out->mutable_consecutive_5xx()->set_value(*outlier->consecutive_5xx_errors);
    out->mutable_enforcing_consecutive_5xx()->set_value(enforcing(*outlier->consecutive_5xx_errors));
  }
  if (outlier->consecutive_gateway_errors) {
    out->mutable_consecutive_gateway_failure()->set_value(*outlier->consecutive_gateway_errors);
    out->mutable_enforcing_consecutive_gateway_failure()->set_value(enforcing(*outlier->consecutive_gateway_errors));
  }
  if (outlier->interval) SetDuration(*outlier->interval, out->mutable_interval());
  if (outlier->base_ejection_time) SetDuration(*outlier->base_ejection_time, out->mutable_base_ejection_time());
  if (outlier->max_ejection_percent > 0) {
    out->mutable_max_ejection_percent()->set_value(static_cast<uint32_t>(outlier->max_ejection_percent));
  }
  if (outlier->split_external_local_origin_errors) {
    out->set_split_external_local_origin_errors(true);
    if (const uint32_t failures = outlier->consecutive_local_origin_failures.value_or(0); failures > 0) {
      out->mutable_consecutive_local_origin_failure()->set_value(failures);
      out->mutable_enforcing_consecutive_local_origin_failure()->set_value(100);
    }
    out->mutable_enforcing_local_origin_success_rate()->set_value(0);
  }
  // Said even when it is 0: Envoy's own default of 50 would send requests to ejected endpoints of small services.
  if (outlier->min_health_percent >= 0) {
    draft.cluster.mutable_common_lb_config()->mutable_healthy_panic_threshold()->set_value(outlier->min_health_percent);
  }
}

void ApplyLoadBalancer(const config::MeshConfig& mesh, const config::LoadBalancerSettings* lb, const Service& service,
                       const LocalityParts& proxy_locality, const Labels& proxy_labels, const Profile& profile,
                       bool round_robin, ClusterDraft& draft) {
  Cluster& cluster = draft.cluster;
  const auto& of_mesh = mesh.locality_lb_setting;
  // In panic Envoy would send requests to endpoints that are not ready, which are sent for such services.
  if (service.attributes.traffic_distribution != TrafficDistribution::kAny) {
    cluster.mutable_common_lb_config()->mutable_healthy_panic_threshold()->set_value(0);
  }
  const auto [setting, forced] = EffectiveLocalityLb(of_mesh ? &*of_mesh : nullptr, LocalityLbOf(lb), service);
  const bool fails_over = forced || cluster.has_outlier_detection();
  if (setting != nullptr) {
    // Else it would get in the way of the load balancer that is asked for.
    const bool needed = !setting->distribute.empty() ||
                        (fails_over && (!setting->failover.empty() || !setting->failover_priority.empty()));
    if (needed || !profile.Has(Change::kLocalityWeightsWhenNeeded)) {
      cluster.mutable_common_lb_config()->mutable_locality_weighted_lb_config();
    }
    if (draft.endpoints != nullptr) {
      // istiod: cluster.go, buildOutboundClusters; where endpoints are of several localities it panics.
      LoadAssignment& assignment = draft.endpoints->assignment;
      const bool by_labels = profile.Has(Change::kDnsFailoverPriority) && assignment.localities.size() == 1;
      ApplyLocalityLb(*setting, fails_over, proxy_locality, proxy_labels, by_labels, assignment);
    }
  }
  if (draft.IsOriginalDst()) {
    cluster.set_lb_policy(Cluster::CLUSTER_PROVIDED);
    return;
  }
  using Simple = config::LoadBalancerSettings::Simple;
  switch (SimpleLbOf(lb)) {
    case Simple::kRandom:
      cluster.set_lb_policy(Cluster::RANDOM);
      break;
    case Simple::kRoundRobin:
      ApplyRoundRobin(lb, profile, cluster);
      break;
    case Simple::kPassthrough:
      cluster.set_lb_policy(Cluster::CLUSTER_PROVIDED);
      cluster.set_type(Cluster::ORIGINAL_DST);
      draft.endpoints.reset();
      break;
    case Simple::kUnspecified:
      round_robin ? ApplyRoundRobin(lb, profile, cluster) : ApplyLeastRequest(lb, profile, cluster);
      break;
    case Simple::kLeastConn:
    case Simple::kLeastRequest:
      ApplyLeastRequest(lb, profile, cluster);
  }
  if (lb != nullptr && lb->consistent_hash) ApplyConsistentHash(*lb->consistent_hash, cluster);
}

}  // namespace wavetank::pilot
