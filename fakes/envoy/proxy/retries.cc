// What of a request is tried again, how often and when.
#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "fakes/envoy/proxy/data_plane_view.h"
#include "fakes/envoy/proxy/router.h"
#include "fakes/envoy/tcp/grpc.h"
#include "fakes/envoy/tcp/header_lines.h"
#include "fakes/envoy/tcp/request_edit.h"
#include "fmt/format.h"

namespace wavetank::envoysim {

// How long the request and its tries may take, and what is tried again: as the route says, and as the request does,
// which from here on says it no more. Returns the request's own limit. Envoy: router.cc, FilterUtility::finalTimeout;
// retry_state_impl.cc
Duration Router::PlanTries(Stream* s) {
  constexpr std::string_view kTimeout = "x-envoy-upstream-rq-timeout-ms",
                             kPerTry = "x-envoy-upstream-rq-per-try-timeout-ms", kOn = "x-envoy-retry-on",
                             kGrpcOn = "x-envoy-retry-grpc-on", kMost = "x-envoy-max-retries",
                             kCodes = "x-envoy-retriable-status-codes", kNames = "x-envoy-retriable-header-names",
                             kHedge = "x-envoy-hedge-on-per-try-timeout";
  const RouteEntry& route = *s->route;
  if (route.retry.has_value()) s->retry = &*route.retry;
  Duration timeout = route.timeout;
  const bool grpc = route.max_grpc_timeout.has_value() && IsGrpc(*s->spec);
  if (grpc) {
    timeout = GrpcTimeout(*s->spec).value_or(Duration::zero());
    if (timeout > route.grpc_timeout_offset) timeout -= route.grpc_timeout_offset;
    const Duration most = *route.max_grpc_timeout;
    if (most > Duration::zero() && (timeout > most || timeout == Duration::zero())) timeout = most;
  }
  s->per_try_timeout = s->retry != nullptr ? s->retry->per_try_timeout : Duration::zero();
  s->hedges = route.hedges;
  // A route may try again only what some requests ask. Envoy: retry_state_impl.cc, RetryStateImpl
  const bool never = s->retry != nullptr && !s->retry->request_headers.empty() &&
                     std::none_of(s->retry->request_headers.begin(), s->retry->request_headers.end(),
                                  [&](const HeaderMatch& m) { return m.Matches(*s->spec); });
  const bool orders = std::any_of(s->spec->headers.begin(), s->spec->headers.end(),
                                  [](const auto& header) { return header.first.starts_with("x-envoy-"); });
  if (orders) {
    const auto number = [&](std::string_view name) -> std::optional<uint64_t> {
      uint64_t value = 0;
      const std::optional<std::string_view> text = FindHeader(*s->spec, name);
      if (!text || !absl::SimpleAtoi(std::string(*text), &value)) return std::nullopt;
      return value;
    };
    // Envoy: router.cc, FilterUtility::finalHedgingParams
    if (const auto hedges = FindHeader(*s->spec, kHedge); hedges == "true" || hedges == "false") {
      s->hedges = hedges == "true";
    }
    if (const auto ms = number(kTimeout)) timeout = std::chrono::milliseconds(*ms);
    if (const auto ms = number(kPerTry)) s->per_try_timeout = std::chrono::milliseconds(*ms);
    const std::optional<std::string_view> on = FindHeader(*s->spec, kOn), grpc_on = FindHeader(*s->spec, kGrpcOn);
    if (on || grpc_on || s->retry != nullptr) {
      auto own = std::make_unique<RetryPolicy>(s->retry != nullptr ? *s->retry : RetryPolicy());
      if (on) own->on |= RetryOnOf(*on);
      if (grpc_on) own->on |= RetryOnOf(*grpc_on);
      if (const auto most = number(kMost)) own->retries = static_cast<uint32_t>(*most);
      if (const auto codes = FindHeader(*s->spec, kCodes)) {
        const std::vector<std::string> list = absl::StrSplit(std::string(*codes), ',');
        for (const std::string& code : list) {
          uint32_t value = 0;
          if (absl::SimpleAtoi(code, &value)) own->status_codes.push_back(value);
        }
      }
      if (const auto names = FindHeader(*s->spec, kNames)) {
        const std::vector<std::string> list = absl::StrSplit(std::string(*names), ',', absl::SkipEmpty());
        for (const std::string& name : list) {
          own->headers.push_back(HeaderMatch::Present(absl::AsciiStrToLower(absl::StripAsciiWhitespace(name))));
        }
      }
      s->own_retry = std::move(own);
      s->retry = s->own_retry.get();
    }
    RequestEdit edit(*s->spec);
    for (const std::string_view name : {kTimeout, kPerTry, kOn, kGrpcOn, kMost, kCodes, kNames, kHedge})
      edit.Remove(name);
    if (std::shared_ptr<const RequestSpec> changed = edit.Take()) {
      s->own_spec = std::move(changed);
      s->spec = s->own_spec.get();
    }
  }
  if (never) {
    auto own = std::make_unique<RetryPolicy>(*s->retry);
    own->on = 0;
    s->own_retry = std::move(own);
    s->retry = s->own_retry.get();
  }
  if (timeout > Duration::zero() && s->per_try_timeout >= timeout) s->per_try_timeout = Duration::zero();
  // What goes on has all the time. Envoy: router.cc, FilterUtility::setTimeoutHeaders
  s->expected = s->per_try_timeout > Duration::zero() && !s->hedges ? s->per_try_timeout : timeout;
  s->tells_grpc_timeout = grpc && s->expected > Duration::zero();
  return timeout;
}

bool Router::Retriable(const Stream& s, const Reply& reply) const {
  if (s.retry == nullptr) return false;
  const RetryPolicy& p = *s.retry;
  // An Envoy's own rate limit. Envoy: retry_state_impl.cc, wouldRetryFromHeaders
  bool limited = false;
  ForEachHeader(reply.headers,
                [&](std::string_view name, std::string_view) { limited |= name == "x-envoy-ratelimited"; });
  if (limited) return (p.on & kRetryEnvoyRateLimited) != 0;
  if (reply.grpc_status != 0xffff) {
    constexpr std::pair<uint16_t, RetryOn> kGrpc[] = {{1, kRetryGrpcCancelled},
                                                      {4, kRetryGrpcDeadlineExceeded},
                                                      {8, kRetryGrpcResourceExhausted},
                                                      {13, kRetryGrpcInternal},
                                                      {14, kRetryGrpcUnavailable}};
    for (const auto& [status, bit] : kGrpc) {
      if (reply.grpc_status == status && (p.on & bit) != 0) return true;
    }
  }
  if ((p.on & kRetry5xx) != 0 && reply.code >= 500) return true;
  if ((p.on & kRetryGatewayError) != 0 && reply.code >= 502 && reply.code <= 504) return true;
  if ((p.on & kRetryRetriable4xx) != 0 && reply.code == 409) return true;
  if ((p.on & kRetryRetriableStatusCodes) != 0 &&
      std::find(p.status_codes.begin(), p.status_codes.end(), reply.code) != p.status_codes.end()) {
    return true;
  }
  if ((p.on & kRetryRetriableHeaders) == 0) return false;
  const std::string status = fmt::format("{}", reply.code);
  return std::any_of(p.headers.begin(), p.headers.end(), [&](const HeaderMatch& m) {
    std::vector<std::string_view> values;
    if (m.name() == ":status") values.push_back(status);
    ForEachHeader(reply.headers, [&](std::string_view name, std::string_view value) {
      if (name == m.name()) values.push_back(value);
    });
    return m.Matches(values);
  });
}

// Envoy: retry_state_impl.cc, parseResetInterval; reset_header_parser.cc, parseInterval
std::optional<Duration> Router::ResetInterval(const Stream& s, const Reply& reply) {
  for (const ResetHeader& header : s.retry->reset_headers) {
    std::string text;
    ForEachHeader(reply.headers, [&](std::string_view name, std::string_view value) {
      if (name == header.name) text += (text.empty() ? "" : ",") + std::string(value);
    });
    uint64_t seconds = 0;
    if (!absl::SimpleAtoi(text, &seconds)) continue;
    if (header.timestamp) {
      const auto now = s.envoy->host().WallClock().time_since_epoch();
      const auto past = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count());
      if (seconds < past) continue;
      seconds -= past;
    }
    const auto most = std::chrono::duration_cast<std::chrono::seconds>(s.retry->reset_max_interval).count();
    if (seconds > static_cast<uint64_t>(most)) continue;
    return seconds > 0 ? std::optional<Duration>(std::chrono::seconds(seconds)) : std::nullopt;
  }
  return std::nullopt;
}

bool Router::Retriable(const Stream& s, ResetReason reason) const {
  if (s.retry == nullptr || reason == ResetReason::kOverflow) return false;
  const uint32_t on = s.retry->on;
  if ((on & (kRetry5xx | kRetryGatewayError | kRetryReset)) != 0) return true;
  switch (reason) {
    case ResetReason::kRemoteRefusedStream:
      return (on & kRetryRefusedStream) != 0;
    case ResetReason::kLocalConnectionFailure:
    case ResetReason::kRemoteConnectionFailure:
    case ResetReason::kConnectionTimeout:
      return (on & (kRetryConnectFailure | kRetryResetBeforeRequest)) != 0;
    default:
      return false;
  }
}

bool Router::MayRetry(const Stream& s) const {
  const uint32_t under_way = s.cluster->retries - (s.retrying ? 1 : 0);
  return s.retries_left > 0 && under_way < s.cluster->MaxRetries();
}

bool Router::MaybeRetry(StreamId id, FailedTry failed, Duration lead, std::optional<Duration> reset) {
  Stream& s = *streams_.Get(id);
  if (s.retrying) --s.cluster->retries;
  s.retrying = false;
  if (s.retries_left == 0) {
    s.flags |= kUpstreamRetryLimitExceeded;
    s.cluster->Count(ClusterStat::kRqRetryLimitExceeded);
    return false;
  }
  --s.retries_left;
  if (s.cluster->retries >= s.cluster->MaxRetries()) {
    s.flags |= kUpstreamOverflow;
    s.cluster->Count(ClusterStat::kRqRetryOverflow);
    return false;
  }
  ++s.cluster->retries;
  s.retrying = true;
  failed.upstream = s.upstream_host->address;
  failed.transport_failure = s.transport_failure;
  failed.tls_finding = s.tls_finding;
  failed.at = s.envoy->host().Now() + lead;
  s.failed_tries.push_back(failed);
  const RetryPolicy& policy = *s.retry;
  if (policy.avoid_previous_hosts) s.tried.push_back(s.upstream_host->id);
  // Full jitter: uniform in [0, base * 2^(n-1)), capped. Envoy: source/common/common/backoff_strategy.cc
  const Duration limit =
      std::min(policy.max_interval, policy.base_interval * (int64_t{1} << std::min(s.attempts - 1, 20u)));
  const auto below = [&s](Duration most) {
    return Duration{static_cast<int64_t>(s.envoy->random().Below(static_cast<uint64_t>(most.count())))};
  };
  // Where the upstream says when, not before, and up to half as long again. Envoy: the same, JitteredLowerBoundBackOff
  const Duration wait = reset.has_value() ? *reset + below(*reset / 2) : below(limit);
  const auto count = [limited = reset.has_value()](ClusterRuntime& cluster) {
    cluster.Count(ClusterStat::kRqRetry);
    cluster.Count(limited ? ClusterStat::kRqRetryBackoffRatelimited : ClusterStat::kRqRetryBackoffExponential);
  };
  const bool when_made = s.envoy->release().Has(EnvoyChange::kRetriesCountWhenMade);
  if (!when_made) count(*s.cluster);
  s.backoff = s.envoy->host().RunAfter(lead + wait, [this, id, when_made, count] {
    Stream* stream = streams_.Get(id);
    if (stream == nullptr) return;
    stream->backoff = kNoTimer;
    if (when_made) count(*stream->cluster);
    Try(id, Duration::zero());
  });
  return true;
}

}  // namespace wavetank::envoysim
