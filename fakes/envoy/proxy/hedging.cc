// Tries that go on beside the next one (hedge_on_per_try_timeout): the first answer that nobody would try again counts.
// The latest try is the request's own stream's; those before it are streams of their own.
// Envoy: source/common/router/router.cc, onSoftPerTryTimeout, resetOtherUpstreams, numRequestsAwaitingHeaders
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/assert.h"
#include "fakes/envoy/proxy/data_plane_view.h"
#include "fakes/envoy/proxy/router.h"

namespace wavetank::envoysim {

void Router::OnSoftTimeout(StreamId id) {
  Stream& s = *streams_.Get(id);
  s.cluster->Report(*s.upstream_host, OutlierResult::kTimeout, 0);
  s.timeout_told = true;
  // Whatever a policy names: no stream is reset here. Without one nothing is tried again.
  // Envoy: retry_state_impl.cc, shouldHedgeRetryPerTryTimeout, RetryStateImpl::create
  if (s.begun != 0 || s.followed || s.retry == nullptr) return;
  if (s.retry->on == 0 && s.retry->request_headers.empty()) return;
  if (MaybeRetry(id, {.code = 504, .flags = kUpstreamRequestTimeout}, Duration::zero())) s.followed = true;
}

void Router::MoveTry(StreamId from, StreamId to) {
  Stream &a = *streams_.Get(from), &b = *streams_.Get(to);
  b.upstream_host = a.upstream_host;
  b.upstream_connection = a.upstream_connection;
  b.upstream = std::exchange(a.upstream, nullptr);
  b.upstream_exchange = std::exchange(a.upstream_exchange, kNoExchange);
  b.counted = std::exchange(a.counted, false);
  b.sent = std::move(a.sent);
  b.upstream_identity = a.upstream_identity;
  b.own_identity = a.own_identity;
  b.transport_failure = a.transport_failure;
  b.tls_finding = a.tls_finding;
  b.followed = a.followed;
  b.timeout_told = a.timeout_told;
  if (a.log != nullptr) {
    if (b.log == nullptr) b.log = std::make_unique<RequestLog>();
    const uint64_t request_id = b.log->request_id;
    const Time routed = b.log->routed;
    *b.log = *a.log;
    b.log->request_id = request_id;
    b.log->routed = routed;
  }
  if (b.upstream != nullptr) b.upstream->Rename(from, to);
  plane_.fabric().SetCookie(b.upstream_exchange, static_cast<uint64_t>(to));
  Host& host = a.envoy->host();
  for (TimerId* timer : {&a.per_try, &a.per_try_idle}) {
    host.Cancel(*timer);
    *timer = kNoTimer;
  }
  if (a.upstream_longest == kNoTimer) return;
  host.Cancel(a.upstream_longest);
  a.upstream_longest = kNoTimer;
  b.try_ends_at = a.try_ends_at;
  b.upstream_longest =
      host.RunAfter(std::max(a.try_ends_at - host.Now(), Duration::zero()), [this, to] { OnUpstreamDuration(to); });
}

void Router::SetAside(StreamId id) {
  const StreamId aside = streams_.Allocate();
  Stream &s = *streams_.Get(id), &t = *streams_.Get(aside);
  WAVETANK_ASSERT(s.followed, s.attempts);
  t.earlier_of = id;
  t.envoy = s.envoy;
  t.own_spec = s.own_spec;
  t.spec = s.spec;
  t.keeper = s.keeper;
  t.manager = s.manager;
  t.route = s.route;
  t.host = s.host;
  t.cluster = s.cluster;
  t.retry = s.retry;
  t.hedges = true;
  t.attempts = s.attempts;
  t.start = s.start;
  MoveTry(id, aside);
  s.earlier.push_back(aside);
}

void Router::Forget(StreamId id) {
  Stream& s = *streams_.Get(streams_.Get(id)->earlier_of);
  const auto at = std::find(s.earlier.begin(), s.earlier.end(), id);
  WAVETANK_ASSERT(at != s.earlier.end());  // an earlier try ends once
  s.earlier.erase(at);
  streams_.Free(id);
}

StreamId Router::Prefer(StreamId id) {
  const StreamId of = streams_.Get(id)->earlier_of;
  Stream& s = *streams_.Get(of);
  EndTry(s, of, /*reset=*/true);
  s.envoy->host().Cancel(s.backoff);
  s.backoff = kNoTimer;
  MoveTry(id, of);
  Forget(id);
  EndEarlier(s);
  return of;
}

void Router::EndEarlier(Stream& s) {
  if (s.earlier.empty()) return;
  std::vector<StreamId> earlier;
  earlier.swap(s.earlier);
  for (const StreamId id : earlier) {
    EndTry(*streams_.Get(id), id, /*reset=*/true);
    streams_.Free(id);
  }
}

bool Router::OthersAwait(const Stream& s) const {
  if (s.earlier_of == kNoStream) return !s.earlier.empty() || s.backoff != kNoTimer;
  const Stream& of = *streams_.Get(s.earlier_of);
  return of.earlier.size() > 1 || of.pool != nullptr || of.upstream != nullptr || of.backoff != kNoTimer;
}

}  // namespace wavetank::envoysim
