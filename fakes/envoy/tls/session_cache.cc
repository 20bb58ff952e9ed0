#include "fakes/envoy/tls/session_cache.h"

#include "fakes/envoy/tls/tls.h"

namespace wavetank::envoysim {

TlsSession TlsSessionCache::Take(Time now) {
  if (sessions_.empty()) return {};
  const TlsSession out = sessions_.front();
  if (out.once) sessions_.pop_front();
  return out.until > now ? out : TlsSession();
}

void TlsSessionCache::Keep(const TlsOutcome& outcome) {
  const TlsSession& session = outcome.session;
  if (session.server == 0) return;
  // A server of TLS 1.3 gives two tickets. BoringSSL: ssl/tls13_server.cc, add_new_session_tickets
  for (int tickets = session.once ? 2 : 1; tickets > 0; --tickets) sessions_.push_front(session);
  while (sessions_.size() > most_) sessions_.pop_back();
}

std::shared_ptr<const FirstFlight> Resuming(std::shared_ptr<const FirstFlight> flight, Time now) {
  if (flight == nullptr || flight->tls == nullptr || flight->tls->sessions == nullptr) return flight;
  const TlsSession session = flight->tls->sessions->Take(now);
  if (session.server == 0) return flight;
  auto out = std::make_shared<FirstFlight>(*flight);
  out->session = session;
  return out;
}

// Those of TLS 1.3 have no ids.
uint64_t NumberOfSession(const TlsOutcome& outcome) {
  const TlsSession& session = outcome.resumed.server != 0 ? outcome.resumed : outcome.session;
  return session.once ? 0 : session.number;
}

}  // namespace wavetank::envoysim
