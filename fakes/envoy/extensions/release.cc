#include "fakes/envoy/extensions/release.h"

namespace wavetank::envoysim {
namespace {

constexpr EnvoyChangeRow kChanges[] = {
    {EnvoyChange::kEjectionCountsItself, 27,
     "A host is ejected if afterwards no more than max_ejection_percent are; before, if until then fewer were",
     "envoyproxy/envoy#27624"},
    {EnvoyChange::kEjectionPercentIsStrict, 28,
     "max_ejection_percent holds for the first host too; before, one host was ejected regardless",
     "envoyproxy/envoy#27909 (check_mep_on_first_eject)"},
    {EnvoyChange::kFiltersAreDisabled, 28,
     "An HTTP filter that its chain disables takes no part until a route enables it; before, it does as any other",
     "changelog 1.28.0 (HttpFilter.disabled)"},
    {EnvoyChange::kTlsErrorsAreFramed, 28,
     "TLS errors are written as TLS_error:|...:TLS_error_end; before, as TLS error: ...",
     "changelog 1.28.0 (ssl_transport_failure_reason_format)"},
    {EnvoyChange::kRouteFiltersByName, 29,
     "Routes configure a filter by its name in the chain; before, by the canonical name of its type as well",
     "changelog 1.29.0 (no_downgrade_to_canonical_name)"},
    {EnvoyChange::kFlagsInOrderOfSetting, 30,
     "Response flags are written in the order in which they were set; before, in the order of the enum",
     "envoyproxy/envoy#32132"},
    {EnvoyChange::kDrainingIsExcluded, 30,
     "A draining endpoint counts nowhere where a share of a priority's or locality's hosts has to be healthy; before, "
     "as an unhealthy one",
     "envoyproxy/envoy#30622 (exclude_host_in_eds_status_draining)"},
    {EnvoyChange::kRemoteResetsAreFlagged, 30,
     "The log of a request that its HTTP/2 client has reset has the flag DR; before, none",
     "envoy/stream_info/stream_info.h (DownstreamRemoteReset)"},
    {EnvoyChange::kTokensFlowBack, 31,
     "Tokens of local rate limits come back continuously; before, a timer adds a portion every fill_interval",
     "changelog 1.31.0 (no_timer_based_rate_limit_token_bucket)"},
    {EnvoyChange::kEndpointsAreCached, 32,
     "A changed cluster whose endpoints do not come in time goes on with those known before; before, with none",
     "changelog 1.32.0 (use_eds_cache_for_ads)"},
    {EnvoyChange::kHandshakesAreJudged, 32,
     "An answer to a request for WebSocket that is no 101 goes back without its body "
     "(websocket_handshake_unsuccessful); before, as any other",
     "source/common/router/upstream_codec_filter.cc (check_switch_protocol_websocket_handshake, gone in 1.35)"},
    {EnvoyChange::kConnectErrorsAreWords, 32, "A failed connect says why in words; before, by its number (111)",
     "envoyproxy/envoy#35154"},
    {EnvoyChange::kNothingIsInternal, 33,
     "Without internal_address_config no client is internal, so that its x-envoy-* orders are dropped; before, one "
     "with a "
     "private address was",
     "changelog 1.33.0 (explicit_internal_address_config)"},
    {EnvoyChange::kStreamsAreBounded, 36,
     "HTTP/2 connections carry 1024 streams at a time unless max_concurrent_streams says otherwise; before, 2147483647",
     "changelog 1.36.0 (safe_http2_options)"},
    {EnvoyChange::kHandshakesAreTimed, 36,
     "Until it is answered a request for WebSocket has the times of its route and of its tries, and an answer from 400 "
     "on goes back as any other; before, it had no such times",
     "changelog 1.36.0 (websocket_enable_timeout_on_upgrade_response, websocket_allow_4xx_5xx_through_filter_chain)"},
    {EnvoyChange::kActiveOverflowIsCounted, 38,
     "A request over max_requests counts as upstream_rq_active_overflow; before, as upstream_rq_pending_overflow",
     "changelog 1.38.0 (skip_pending_overflow_count_on_active_rq)"},
    {EnvoyChange::kRetriesCountWhenMade, 38,
     "A retry counts (upstream_rq_retry, upstream_rq_retry_backoff_...) when it is made; before, when it was planned",
     "source/common/router/retry_state_impl.cc, shouldRetry; 1.38 by measurement of 1.37.0 and 1.38.3"},
    {EnvoyChange::kBodiesHideTransportFailure, 39,
     "The body of a failed request's answer leaves out the transport's failure; before, it ended with it",
     "changelog 1.39.0 (hide_transport_failure_reason_in_response_body)"},
    {EnvoyChange::kHybridKeyExchange, 40,
     "Where no curves are named, keys are exchanged by X25519MLKEM768 if both sides speak TLS 1.3; before, by X25519",
     "envoyproxy/envoy#47225 (pqc_default_ecdh_curves)"},
    {EnvoyChange::kSeveralHealthChecks, 40,
     "A cluster may have several health checks if each has a name; before, one alone",
     "docs of 1.40.0, configuration/upstream/health_checkers/multi, by measurement"},
};

}  // namespace

absl::Span<const EnvoyChangeRow> EnvoyChanges() { return kChanges; }

bool EnvoyRelease::Has(EnvoyChange change) const { return minor >= kChanges[static_cast<size_t>(change)].minor; }

}  // namespace wavetank::envoysim
