// What the agent's SDS gives to its Envoy: a workload certificate and trust bundles. Key material never appears here:
// an identity says that its owner holds the key.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/base/time.h"

namespace wavetank::envoysim {

// A certificate chain as presented in a handshake. Immutable; shared between Envoy and peers.
struct CertificateChain {
  std::vector<std::string> der;  // leaf first
  uint64_t fingerprint = 0;      // of all of it; equal chains have equal fingerprints (set by whoever makes it)
};

struct TrustBundle {
  std::vector<std::string> der;  // root certificates
  uint64_t fingerprint = 0;
};

// One SDS Secret: either a certificate whose key the holder has, or a validation context. Never both.
struct Secret {
  std::shared_ptr<const CertificateChain> certificate;
  std::shared_ptr<const TrustBundle> trusted_ca;
};

class SecretProvider {
 public:
  using OnSecret = absl::AnyInvocable<void(absl::StatusOr<Secret>)>;
  virtual ~SecretProvider() = default;
  // Subscribes to the secret `name` ("default", "ROOTCA", "file-cert:..."): calls back with each version of it, at
  // once if it is there, again whenever it rotates. An error (the secret cannot be loaded) leaves the last good one in
  // force. Until the first good one, clusters and listeners that need it stay warming.
  virtual void Subscribe(std::string_view name, OnSecret on_secret) = 0;
};

// What X.509 says about a presented chain, apart from name matching.
struct ChainVerdict {
  bool ok = false;
  std::string error;                  // OpenSSL's words, e.g. "certificate has expired"; empty if ok
  bool expired = false;               // the error is about the validity period
  std::vector<std::string> uri_sans;  // of the leaf, also when not ok
  std::vector<std::string> dns_sans;
  Time not_before{};  // the verdict holds for not_before <= now < not_after and must be asked anew outside
  Time not_after{};
};

// Verifies a chain against a bundle at an instant of virtual time. Implemented with OpenSSL over core/x509.
class ChainVerifier {
 public:
  virtual ~ChainVerifier() = default;
  virtual ChainVerdict Verify(const CertificateChain& chain, const TrustBundle& bundle, Time now) = 0;
};

}  // namespace wavetank::envoysim
