// TLS handshakes: what each side presents and accepts, and with which words it fails. Certificates are verified by
// OpenSSL at virtual time (core/x509); equal questions are answered from memory for as long as the answer holds.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/time.h"
#include "core/x509/x509.h"
#include "fakes/envoy/tcp/fabric.h"
#include "fakes/envoy/tls/secret.h"
#include "fakes/envoy/tls/session_cache.h"
#include "fakes/envoy/tls/tls_config.h"

namespace wavetank::envoysim {

// One side of a handshake: its settings and the secrets in force when the connection began.
struct TlsParty {
  std::shared_ptr<const TlsContext> context;
  std::shared_ptr<const CertificateChain> certificate;  // nullptr: none to present
  x509::TrustBundleRef trusted_ca;                      // nullptr: the peer's chain is not verified
  std::shared_ptr<const PeerRules> peer_of_secret;      // beside those of `context`; nullptr: none

  // Whether nothing that `context` names is missing.
  bool complete() const {
    return (context->certificate_secret.empty() || certificate != nullptr) &&
           (context->validation_secret.empty() || trusted_ca != nullptr);
  }
};

class TlsClient : public TlsParty {
 public:
  std::shared_ptr<TlsSessionCache> sessions;  // of its context; nullptr: it resumes none
};
class TlsServer : public TlsParty {
 public:
  uint64_t sessions = 0;  // TlsSession::server of what it gives, of its own keys; 0: it gives none
  uint64_t number = 0;    // TlsSession::number of the next one
};

// What the server made of the client, beside what the client is told.
struct HandshakeResult {
  TlsOutcome client;
  bool server_ok = false;  // the server has a session (even if the client then refuses it)
  // The server's counter, as in listener.ADDRESS.ssl.*: "fail_verify_no_cert", "fail_verify_error",
  // "fail_verify_san", "fail_verify_cert_hash", "connection_error"; empty if it found nothing wrong. The client's own
  // is TlsOutcome::counter.
  std::string_view server_counter;
  bool client_verified = false;
  bool server_verified = false;
  std::string client_identity;  // URI SAN presented
};

// Calls `count` with the counters of a handshake that stands, below "ssl.": "versions.TLSv1.3", ...; `peers`: with what
// the peer showed that its certificate is its own. Envoy: source/common/tls/context_impl.cc, logHandshake
template <typename Count>
void ForEachTerm(const TlsTerms& terms, std::string_view peers, Count count) {
  const std::pair<std::string_view, std::string_view> all[] = {
      {"versions.", terms.version}, {"ciphers.", terms.cipher}, {"curves.", terms.curve}, {"sigalgs.", peers}};
  for (const auto& [kind, name] : all) {
    if (!name.empty()) count(kind, name);
  }
}

// Errors are BoringSSL's, written as Envoy does since 1.28: "TLS_error:|268435703:...:TLS_error_end".
// A server that speaks plain text, to a client that began a session.
inline constexpr std::string_view kAnsweredInPlainText =
    "TLS_error:|268435703:SSL routines:OPENSSL_internal:WRONG_VERSION_NUMBER:TLS_error_end";
// Of an alert that the peer sent, by RFC 8446's name: "unknown_ca".
std::string ReceivedAlert(std::string_view name);
// The same error as releases before 1.28 write it: "TLS error: 268435703:...", without what verification found.
std::string Unframed(std::string_view error);

class TlsSessions {
 public:
  // With mutual verification. The client checks the server before it presents its own certificate. `now` is what the
  // server's clock shows; the client has its own (FirstFlight::client).
  HandshakeResult Handshake(const FirstFlight& hello, const TlsServer& server, Time now);

 private:
  x509::VerificationCache cache_;
};

}  // namespace wavetank::envoysim
