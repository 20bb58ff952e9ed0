#include "fakes/envoy/tls/tls.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "fakes/envoy/tls/findings.h"
#include "fmt/format.h"

namespace wavetank::envoysim {
namespace {

// BoringSSL's packed error codes: library 16 (SSL), then the reason; an alert received is 1000 + its number.
struct Alert {
  std::string_view name;
  int number;
  std::string_view reason;
};
constexpr Alert kAlerts[] = {
    {"handshake_failure", 40, "SSLV3_ALERT_HANDSHAKE_FAILURE"},
    {"bad_certificate", 42, "SSLV3_ALERT_BAD_CERTIFICATE"},
    {"unsupported_certificate", 43, "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE"},
    {"certificate_revoked", 44, "SSLV3_ALERT_CERTIFICATE_REVOKED"},
    {"certificate_expired", 45, "SSLV3_ALERT_CERTIFICATE_EXPIRED"},
    {"certificate_unknown", 46, "SSLV3_ALERT_CERTIFICATE_UNKNOWN"},
    {"unknown_ca", 48, "TLSV1_ALERT_UNKNOWN_CA"},
    {"decrypt_error", 51, "TLSV1_ALERT_DECRYPT_ERROR"},
    {"protocol_version", 70, "TLSV1_ALERT_PROTOCOL_VERSION"},
    {"bad_certificate_hash_value", 114, "TLSV1_ALERT_BAD_CERTIFICATE_HASH_VALUE"},
    {"certificate_required", 116, "TLSV1_ALERT_CERTIFICATE_REQUIRED"},
};

constexpr int kSslLibrary = 16 << 24;

std::string VerifyFailed(std::string_view why) {
  return fmt::format(
      "TLS_error:|{}:SSL routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED:verify cert failed: {}:TLS_error_end",
      kSslLibrary + 125, why);
}

std::string NamesInOrder(std::initializer_list<const std::vector<std::string>*> lists) {
  std::string out;
  for (const std::vector<std::string>* names : lists) {
    for (const std::string& n : *names) out += (out.empty() ? "" : ", ") + n;
  }
  return out;
}

std::string Names(const x509::SubjectAltNames& sans) { return NamesInOrder({&sans.uris, &sans.dns_names}); }

struct PeerCheck {
  bool ok = true;
  bool verified = false;
  bool no_certificate = false;
  std::string_view counter;                   // of what was found wrong, which may not be a reason to refuse
  std::string words;                          // Envoy's own
  std::string finding;                        // ours
  std::string alert = "certificate_unknown";  // what the peer is told

  void Fail(std::string_view what, std::string why, std::string found) {
    ok = verified = false;
    counter = what;
    words = std::move(why);
    finding = std::move(found);
  }
};

bool CheckChain(const TlsParty& self, const std::vector<x509::CertificateRef>& chain, const PeerRules& rules,
                x509::Purpose purpose, Time now, x509::VerificationCache* cache, PeerCheck* out) {
  const x509::VerifyResult result = rules.chain.plain()
                                        ? cache->Verify(chain, *self.trusted_ca, now, purpose)
                                        : x509::Verify(chain, *self.trusted_ca, now, purpose, rules.chain);
  out->verified = result.ok();
  if (result.ok()) return true;
  // What lists say, measured with 1.40.
  constexpr std::string_view kOfLists[] = {"X509_V_ERR_UNABLE_TO_GET_CRL", "X509_V_ERR_CERT_REVOKED",
                                           "X509_V_ERR_CRL_HAS_EXPIRED", "X509_V_ERR_CRL_NOT_YET_VALID"};
  const bool of_lists = std::find(std::begin(kOfLists), std::end(kOfLists), result.openssl_error) != std::end(kOfLists);
  out->Fail("fail_verify_error",
            fmt::format("X509_verify_cert: certificate verification error at depth {}: {}{}", result.depth,
                        of_lists ? "certificate revocation check against provided CRLs failed: " : "", result.reason),
            ChainFinding(chain, *self.trusted_ca, result, now));
  out->alert = result.tls_alert;
  return false;
}

// OpenSSL: crypto/x509/v3_utl.c, do_x509_check (the common name counts where there is no dNSName)
bool IsAskedCommonName(const TlsContext& context, const x509::Certificate& leaf) {
  if (!context.accepts_common_name || !leaf.sans().dns_names.empty()) return false;
  const std::string subject = ", " + leaf.subject();
  constexpr std::string_view kSign = ", CN=";
  const size_t at = subject.find(kSign);
  if (at == std::string::npos) return false;
  const std::string_view rest = std::string_view(subject).substr(at + kSign.size());
  return DnsNameMatches(context.asked_name, rest.substr(0, rest.find(", ")));
}

// Of a chain that is good, or that nobody looks at. Envoy: default_validator.cc, verifyCertificate
void CheckLeaf(const TlsParty& self, const x509::Certificate& leaf, const PeerRules& rules, PeerCheck* out) {
  if (!SansMatch(self.context->sans, leaf.sans()) && !IsAskedCommonName(*self.context, leaf)) {
    // Of a name that the request asked for it says so.
    out->Fail("fail_verify_san",
              self.context->asked_name.empty()
                  ? fmt::format("SAN matcher, certificate SANs are [{}]", Names(leaf.sans()))
                  : fmt::format("verify SAN list, expected SANs: [{}], certificate SANs: [{}]",
                                self.context->asked_name, NamesInOrder({&leaf.sans().dns_names, &leaf.sans().uris})),
              NamesFinding(leaf.sans(), self.context->sans));
  } else if (rules.pins() && !rules.FitsPins(leaf)) {
    out->Fail(
        "fail_verify_cert_hash", "cert hash and spki",
        fmt::format("neither the certificate with serial {} nor its key is among the pinned ones", leaf.serial()));
    out->alert = "bad_certificate_hash_value";
  } else if (rules.pins()) {
    out->verified = true;
  }
}

// What `self` thinks of `peer`'s certificate.
PeerCheck Check(const TlsParty& self, const TlsParty* peer, x509::Purpose purpose, Time now,
                x509::VerificationCache* cache) {
  PeerCheck out;
  PeerRules rules = self.context->peer;
  if (self.peer_of_secret != nullptr) rules.Merge(*self.peer_of_secret);
  const bool server = purpose == x509::Purpose::kClientAuth;
  if (!server) rules.chain.max_depth.reset();  // set for clients' certificates alone
  const bool trusts = self.trusted_ca != nullptr;
  if (peer == nullptr || peer->certificate == nullptr || peer->certificate->certificates.empty()) {
    // A peer that must have certain names or pins must have a certificate. Without a CA none is asked to have any.
    // Envoy: default_validator.cc, initializeSslContexts, addClientValidationContext
    const bool particular = (!self.context->sans.empty() || rules.pins()) && !rules.accepts_untrusted;
    const bool required = server ? particular || (trusts && self.context->require_client_certificate) : trusts;
    if (!required) return out;
    out.no_certificate = true;
    out.Fail("fail_verify_no_cert", "peer did not return a certificate", "none was shown");
    out.alert = "certificate_required";
    return out;
  }
  const auto& chain = peer->certificate->certificates;
  if (!trusts || CheckChain(self, chain, rules, purpose, now, cache, &out)) {
    CheckLeaf(self, *chain.front(), rules, &out);
  }
  out.ok = out.ok || rules.accepts_untrusted;
  return out;
}

// Of a party's certificate; else its key is on an elliptic curve.
bool HasRsaKey(const TlsParty& party) {
  if (party.certificate == nullptr || party.certificate->certificates.empty()) return false;
  constexpr std::string_view kRsaEncryption("\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01", 9);  // 1.2.840.113549.1.1.1
  return party.certificate->certificates.front()->public_key().find(kRsaEncryption) != std::string::npos;
}

// By which algorithm it shows that its certificate is its own, if there is one. Before TLS 1.2 there is no choice to
// tell of. BoringSSL: kSignSignatureAlgorithms
std::string_view SignatureOf(const TlsParty& party, int version) {
  if (version < 2 || party.certificate == nullptr || party.certificate->certificates.empty()) return {};
  return HasRsaKey(party) ? "rsa_pss_rsae_sha256" : "ecdsa_secp256r1_sha256";
}

// What the server would give, `server` 0: none.
TlsSession SessionOf(const TlsServer& server, int version, Time now) {
  // BoringSSL: SSL_DEFAULT_SESSION_PSK_DHE_TIMEOUT
  constexpr Duration kOfTickets = std::chrono::hours(48);
  const TlsContext& context = *server.context;
  TlsSession out;
  out.once = version == 3;
  const bool tickets = context.gives_tickets;
  if (!tickets && (out.once || !context.remembers_sessions)) return out;
  out.server = server.sessions;
  out.number = server.number;
  out.until = now + (out.once ? kOfTickets : context.session_timeout);
  return out;
}

std::string Identity(const TlsParty* party) {
  if (party == nullptr || party->certificate == nullptr || party->certificate->certificates.empty()) return {};
  const auto& uris = party->certificate->certificates.front()->sans().uris;
  return uris.empty() ? std::string() : uris.front();
}

}  // namespace

std::string ReceivedAlert(std::string_view name) {
  const Alert* alert =
      std::find_if(std::begin(kAlerts), std::end(kAlerts), [&](const Alert& a) { return a.name == name; });
  if (alert == std::end(kAlerts)) alert = &kAlerts[5];
  return fmt::format("TLS_error:|{}:SSL routines:OPENSSL_internal:{}:TLS_error_end", kSslLibrary + 1000 + alert->number,
                     alert->reason);
}

std::string Unframed(std::string_view error) {
  constexpr std::string_view kBegin = "TLS_error:|", kEnd = ":TLS_error_end", kVerify = "CERTIFICATE_VERIFY_FAILED";
  if (!error.starts_with(kBegin)) return std::string(error);
  const size_t end = std::min(error.find(kEnd), error.size());
  const size_t verify = error.find(kVerify);
  const size_t until = verify == std::string_view::npos ? end : verify + kVerify.size();
  return fmt::format("TLS error: {}", error.substr(kBegin.size(), until - kBegin.size()));
}

std::shared_ptr<const CertificateChain> CertificateChain::Of(std::vector<x509::CertificateRef> certificates) {
  auto chain = std::make_shared<CertificateChain>();
  chain->fingerprint = x509::FingerprintOf(certificates);
  chain->certificates = std::move(certificates);
  return chain;
}

HandshakeResult TlsSessions::Handshake(const FirstFlight& hello, const TlsServer& server, Time now) {
  HandshakeResult out;
  const TlsClient* client = hello.tls.get();
  const TlsContext* speaks = client != nullptr ? client->context.get() : nullptr;
  const auto before_12 = [](const std::string& cipher) { return cipher.ends_with("-SHA"); };
  if (speaks != nullptr && speaks->highest_version < 2 &&
      std::none_of(speaks->ciphers.begin(), speaks->ciphers.end(), before_12)) {
    out.client.error = fmt::format("TLS_error:|{}:SSL routines:OPENSSL_internal:NO_CIPHERS_AVAILABLE:TLS_error_end",
                                   kSslLibrary + 175);
    out.client.counter = "connection_error";
    return out;
  }
  const std::optional<int> version = CommonVersion(speaks, *server.context);
  const bool rsa = HasRsaKey(server);
  const std::optional<std::string_view> cipher =
      version.has_value() ? CommonCipher(speaks, *server.context, *version, rsa) : std::nullopt;
  const std::optional<std::string_view> curve =
      version.has_value() ? CommonCurve(speaks, *server.context, *version, rsa) : std::nullopt;
  if (!cipher.has_value() || !curve.has_value()) {
    out.client.error = ReceivedAlert(version.has_value() ? "handshake_failure" : "protocol_version");
    if (version.has_value()) {  // BoringSSL says twice that its hello was not liked
      constexpr std::string_view kEnd = ":TLS_error_end";
      out.client.error.insert(
          out.client.error.size() - kEnd.size(),
          fmt::format("|{}:SSL routines:OPENSSL_internal:HANDSHAKE_FAILURE_ON_CLIENT_HELLO", kSslLibrary + 154));
    }
    out.client.counter = out.server_counter = "connection_error";
    return out;
  }
  constexpr std::string_view kVersions[] = {"TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"};
  out.client.terms.version = kVersions[*version];
  out.client.terms.cipher = *cipher;
  out.client.terms.curve = *curve;
  out.client.terms.server_signature = SignatureOf(server, *version);
  // Without a CA nobody is asked for a certificate.
  if (client != nullptr && server.trusted_ca != nullptr) {
    out.client.terms.client_signature = SignatureOf(*client, *version);
  }
  // The server's own list decides; without an overlap the session goes on without ALPN.
  for (const std::string& protocol : server.context->alpn) {
    if (std::find(hello.alpn.begin(), hello.alpn.end(), protocol) != hello.alpn.end()) {
      out.client.alpn = protocol;
      break;
    }
  }
  out.client.server_identity = Identity(&server);
  out.client_identity = Identity(client);
  if (server.trusted_ca != nullptr) out.client.client_identity = out.client_identity;
  if (client != nullptr && client->context != nullptr) {
    const Time clients = hello.client == nullptr ? now : hello.client->WallClock();
    const PeerCheck check = Check(*client, &server, x509::Purpose::kServerAuth, clients, &cache_);
    out.client.counter = check.counter;
    if (!check.ok) {
      out.client.local = true;
      out.client.san_mismatch = check.counter == "fail_verify_san";
      out.client.error = VerifyFailed(check.words);
      out.client.finding = check.finding;
      out.server_counter = "connection_error";  // it sees the alert
      return out;
    }
    out.server_verified = check.verified;
  }
  // A session goes on with the client that it began with, which nobody looks at again; its client has looked at the
  // server above. BoringSSL: SSL_CTX_set_reverify_on_resume. Envoy: source/common/tls/context_impl.cc
  const TlsSession session = SessionOf(server, *version, now);
  if (session.server != 0 && hello.session.server == session.server && hello.session.once == session.once &&
      hello.session.until > now) {
    out.client.resumed = hello.session;
    out.client_verified = server.trusted_ca != nullptr;
    out.server_ok = out.client.ok = true;
    if (session.once) out.client.session = session;  // an older one's ticket stays good
    return out;
  }
  const PeerCheck check = Check(server, client, x509::Purpose::kClientAuth, now, &cache_);
  out.server_counter = check.counter;
  if (!check.ok) {
    const bool tls13 = *version == 3;
    out.client.error = ReceivedAlert(check.no_certificate && !tls13 ? "handshake_failure" : check.alert);
    out.client.finding = check.finding;
    // In TLS 1.3 the client is done, and its request under way, before the server has looked at its certificate.
    out.client.ok = out.client.refused = tls13 && client != nullptr && client->context != nullptr;
    if (out.client.counter.empty()) out.client.counter = "connection_error";
    return out;
  }
  out.client_verified = check.verified;
  out.server_ok = true;
  out.client.ok = true;
  out.client.session = session;
  return out;
}

}  // namespace wavetank::envoysim
