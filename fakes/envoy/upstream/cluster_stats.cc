#include "fakes/envoy/upstream/cluster_stats.h"

#include <iterator>

namespace wavetank::envoysim {
namespace {

constexpr std::string_view kStatNames[] = {
    "upstream_cx_total",
    "upstream_cx_connect_fail",
    "upstream_cx_connect_timeout",
    "upstream_cx_none_healthy",
    "upstream_cx_overflow",
    "upstream_rq_total",
    "upstream_rq_retry",
    "upstream_rq_retry_success",
    "upstream_rq_retry_overflow",
    "upstream_rq_retry_limit_exceeded",
    "upstream_rq_timeout",
    "upstream_rq_per_try_timeout",
    "upstream_rq_per_try_idle_timeout",
    "upstream_rq_pending_overflow",
    "upstream_rq_active_overflow",
    "lb_healthy_panic",
    "membership_change",
    "outlier_detection.ejections_active",
    "outlier_detection.ejections_enforced_total",
    "outlier_detection.ejections_overflow",
    "ssl.handshake",
    "ssl.connection_error",
    "ssl.fail_verify_error",
    "ssl.fail_verify_san",
    "ssl.fail_verify_no_cert",
    "ssl.fail_verify_cert_hash",
    "upstream_cx_destroy",
    "upstream_cx_destroy_local",
    "upstream_cx_destroy_remote",
    "upstream_cx_destroy_with_active_rq",
    "upstream_cx_destroy_local_with_active_rq",
    "upstream_cx_destroy_remote_with_active_rq",
    "upstream_cx_http1_total",
    "upstream_cx_http2_total",
    "upstream_cx_max_requests",
    "upstream_cx_close_notify",
    "upstream_cx_max_duration_reached",
    "upstream_cx_idle_timeout",
    "upstream_cx_protocol_error",
    "upstream_rq_pending_total",
    "upstream_rq_cancelled",
    "upstream_rq_pending_failure_eject",
    "upstream_rq_tx_reset",
    "upstream_rq_rx_reset",
    "upstream_rq_retry_backoff_exponential",
    "upstream_rq_retry_backoff_ratelimited",
    "upstream_rq_max_duration_reached",
    "outlier_detection.ejections_detected_consecutive_5xx",
    "outlier_detection.ejections_detected_consecutive_gateway_failure",
    "outlier_detection.ejections_detected_consecutive_local_origin_failure",
    "outlier_detection.ejections_enforced_consecutive_5xx",
    "outlier_detection.ejections_enforced_consecutive_gateway_failure",
    "outlier_detection.ejections_enforced_consecutive_local_origin_failure",
    "health_check.attempt",
    "health_check.success",
    "health_check.failure",
    "health_check.passive_failure",
    "health_check.network_failure",
    "health_check.verify_cluster",
    "update_attempt",
    "update_success",
};
static_assert(std::size(kStatNames) == static_cast<size_t>(ClusterStat::kCount));

}  // namespace

std::string_view ClusterStatName(ClusterStat stat) { return kStatNames[static_cast<size_t>(stat)]; }

}  // namespace wavetank::envoysim
