// Transport sockets, compiled from UpstreamTlsContext and DownstreamTlsContext.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "fakes/envoy/match/matchers.h"
#include "fakes/envoy/tls/peer_rules.h"
#include "fakes/envoy/tls/secret.h"

namespace envoy::config::core::v3 {
class TransportSocket;
}

namespace google::protobuf {
class Any;
}

namespace wavetank::envoysim {

enum class SanType : uint8_t { kAny, kUri, kDns };

struct SanMatch {
  SanType type = SanType::kAny;
  StringMatch match;
};

// One side's TLS settings. Certificates and roots are named (SDS) or inline; names are resolved by each Envoy.
struct TlsContext {
  std::string sni;  // upstream
  std::vector<std::string> alpn;
  bool require_client_certificate = false;      // downstream
  int lowest_version = 2, highest_version = 2;  // 1.x
  std::vector<std::string> ciphers;             // of TLS up to 1.2
  std::vector<std::string> curves;              // of the key exchange; empty: all
  std::string certificate_secret;               // empty: none by SDS
  std::string validation_secret;
  std::shared_ptr<const CertificateChain> certificate;  // inline
  x509::TrustBundleRef trusted_ca;                      // inline
  bool validates = false;                               // there is a trusted CA, inline or by SDS
  std::vector<SanMatch> sans;                           // any of them; empty: every name
  std::string asked_name;                               // `sans` is this alone, which a request asked for
  bool accepts_common_name = false;  // as OpenSSL's programs do: of a certificate without DNS names its subject counts
  PeerRules peer;
  // Sessions: how many a client keeps to resume them; whether a server gives tickets, and by which keys (0: its own),
  // and remembers sessions itself, which it does up to TLS 1.2 where it gives no tickets.
  uint32_t session_keys = 1;
  bool gives_tickets = true, remembers_sessions = true;
  uint64_t ticket_keys = 0;
  Duration session_timeout{7200s};  // up to TLS 1.2
};

struct TransportSocket {
  std::shared_ptr<const TlsContext> tls;  // nullptr: raw_buffer
  uint8_t proxy_protocol = 0;             // upstream: the version of the header that goes before all else; 0: none
};

class Extensions;

// kInvalidArgument with Envoy's words if it would be refused.
absl::StatusOr<TransportSocket> CompileTransportSocket(const envoy::config::core::v3::TransportSocket& socket,
                                                       bool downstream, const Extensions& extensions);

// The version that both speak, 1.x; nothing: none. A client that is not simulated (null) speaks all.
std::optional<int> CommonVersion(const TlsContext* client, const TlsContext& server);
// The cipher that both have and that goes with the server's key, in the words of Envoy's counters; nothing: none. The
// server's order decides.
std::optional<std::string_view> CommonCipher(const TlsContext* client, const TlsContext& server, int version,
                                             bool rsa_key);
// The group for the key exchange that both have, likewise; nothing: none, or, up to TLS 1.2, the client does not know
// that of the server's key, which is on an elliptic curve.
std::optional<std::string_view> CommonCurve(const TlsContext* client, const TlsContext& server, int version,
                                            bool rsa_key);
// Whether a certificate's name, which may begin with a wildcard, stands for `name`.
bool DnsNameMatches(std::string_view name, std::string_view pattern);

// Whether one of `matches` accepts one of the names; true if there are none to satisfy.
bool SansMatch(const std::vector<SanMatch>& matches, const x509::SubjectAltNames& names);

// One SDS resource. A private key is held against its certificate and then forgotten. InvalidArgument is what Envoy
// says when it rejects one.
struct NamedSecret {
  std::string name;
  Secret secret;
};
absl::StatusOr<NamedSecret> ReadSecret(std::string_view type_url, std::string_view resource);

}  // namespace wavetank::envoysim
