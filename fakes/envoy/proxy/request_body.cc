// Requests whose body has not come yet: how long it may take, and what an answer before its end does.
// Envoy: source/common/http/conn_manager_impl.cc (encodeHeaders, doEndStream, onRequestTimeout)
#include <algorithm>

#include "fakes/envoy/http/request_body.h"
#include "fakes/envoy/proxy/data_plane_view.h"
#include "fakes/envoy/proxy/router.h"

namespace wavetank::envoysim {

bool Router::BodyIsHere(const Stream& s, Time then) {
  if (s.downstream != nullptr && s.endless) return false;
  return s.downstream == nullptr || !HasBody(*s.spec) || (s.looped && then >= s.body_end);
}

Duration Router::UntilBodyIsHere(const Stream& s, Duration lead) {
  return std::max(lead, s.body_end - s.envoy->host().Now());
}

// Envoy: source/common/http/utility.cc, maybeRequestTimeoutCode
uint16_t Router::TimeoutCode(const Stream& s) { return BodyIsHere(s, s.envoy->host().Now()) ? 504 : 408; }

void Router::LimitRequest(StreamId id, Duration lead) {
  Stream& s = *streams_.Get(id);
  const Duration limit = s.manager->request_timeout;
  if (limit <= Duration::zero() || (!s.endless && UntilBodyIsHere(s, lead) <= lead + limit)) return;
  s.overdue = s.envoy->host().RunAfter(lead + limit, [this, id] {
    Stream* const late = streams_.Get(id);
    if (late == nullptr) return;
    late->overdue = kNoTimer;
    late->looped = true;
    late->downstream->http_stats().Count(HttpStat::kRqTimeout);
    EndTry(*late, id, /*reset=*/true);
    Local(id, TimeoutCode(*late), kNoFlags, "request_overall_timeout", "request timeout", Duration::zero());
  });
}

void Router::AnswerEarly(Stream& s) {
  HttpStats& stats = s.downstream->http_stats();
  stats.Count(HttpStat::kRqResponseBeforeComplete);
  stats.Count(HttpStat::kRqRxReset);  // what is left of the request is turned away
  // HTTP/1 has no other way to be rid of what is still to come.
  if (s.spec->protocol != HttpProtocol::kHttp2) s.downstream->CloseAfterAnswer();
}

}  // namespace wavetank::envoysim
