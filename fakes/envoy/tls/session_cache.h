// The sessions that a client may resume, of one context: its settings with the secrets in force.
// Envoy: source/common/tls/client_context_impl.cc, newSsl, newSessionKey
#pragma once

#include <cstddef>
#include <deque>
#include <memory>

#include "core/base/time.h"
#include "fakes/envoy/tcp/fabric.h"

namespace wavetank::envoysim {

class TlsSessionCache {
 public:
  // `most`: that are kept; 0: none.
  explicit TlsSessionCache(size_t most) : most_(most) {}
  // The newest, whichever server gave it. It stays unless it may be used but once.
  TlsSession Take(Time now);
  // What a handshake came to: a session, if the server has given one.
  void Keep(const TlsOutcome& outcome);

 private:
  const size_t most_;
  std::deque<TlsSession> sessions_;  // the newest first
};

// The same flight, with a session that its client may resume if it has one.
std::shared_ptr<const FirstFlight> Resuming(std::shared_ptr<const FirstFlight> flight, Time now);
// TlsSession::number of what logs call the client's session; 0: nothing.
uint64_t NumberOfSession(const TlsOutcome& outcome);

}  // namespace wavetank::envoysim
