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

class TlsClient : public TlsParty {};
class TlsServer : public TlsParty {};

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

class TlsSessions {
 public:
  // `framed`: errors are written as "TLS_error:|...:TLS_error_end", with what verification found; else as "TLS error:
  // ...".
  explicit TlsSessions(bool framed = true) : framed_(framed) {}

  // With mutual verification. The client checks the server before it presents its own certificate. `now` is what the
  // server's clock shows; the client has its own (FirstFlight::client).
  HandshakeResult Handshake(const FirstFlight& hello, const TlsServer& server, Time now);

  size_t verifications() const { return cache_.misses(); }

 private:
  HandshakeResult Shake(const FirstFlight& hello, const TlsServer& server, Time now);

  const bool framed_;
  x509::VerificationCache cache_;
};

}  // namespace wavetank::envoysim
