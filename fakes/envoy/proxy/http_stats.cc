#include "fakes/envoy/proxy/http_stats.h"

#include <iterator>

namespace wavetank::envoysim {
namespace {

constexpr std::string_view kHttpStatNames[] = {
    "downstream_cx_total",
    "downstream_cx_active",
    "downstream_cx_destroy",
    "downstream_cx_destroy_local",
    "downstream_cx_destroy_remote",
    "downstream_cx_destroy_active_rq",
    "downstream_cx_destroy_local_active_rq",
    "downstream_cx_destroy_remote_active_rq",
    "downstream_cx_http1_total",
    "downstream_cx_http2_total",
    "downstream_cx_ssl_total",
    "downstream_cx_idle_timeout",
    "downstream_cx_max_duration_reached",
    "downstream_cx_max_requests_reached",
    "downstream_cx_drain_close",
    "downstream_cx_delayed_close_timeout",
    "downstream_cx_upgrades_total",
    "downstream_cx_upgrades_active",
    "downstream_rq_total",
    "downstream_rq_active",
    "downstream_rq_http1_total",
    "downstream_rq_http2_total",
    "downstream_rq_completed",
    "downstream_rq_1xx",
    "downstream_rq_2xx",
    "downstream_rq_3xx",
    "downstream_rq_4xx",
    "downstream_rq_5xx",
    "downstream_rq_rx_reset",
    "downstream_rq_tx_reset",
    "downstream_rq_response_before_rq_complete",
    "downstream_rq_timeout",
    "downstream_rq_max_duration_reached",
    "downstream_rq_ws_on_non_ws_route",
    "downstream_rq_failed_path_normalization",
    "downstream_rq_redirected_with_normalized_path",
    "rq_total",
    "rq_direct_response",
    "rq_redirect",
    "no_route",
    "no_cluster",
};
static_assert(std::size(kHttpStatNames) == static_cast<size_t>(HttpStat::kCount));

}  // namespace

std::string_view HttpStatName(HttpStat stat) { return kHttpStatNames[static_cast<size_t>(stat)]; }

}  // namespace wavetank::envoysim
