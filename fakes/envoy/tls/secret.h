// What the agent's SDS gives to its Envoy: a workload certificate and trust bundles. Key material never appears here:
// a certificate chain says that its owner holds the key.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/x509/x509.h"
#include "fakes/envoy/tls/peer_rules.h"

namespace wavetank::envoysim {

// A chain as presented in a handshake, leaf first. Immutable and shared.
struct CertificateChain {
  std::vector<x509::CertificateRef> certificates;
  x509::Fingerprint fingerprint = 0;  // x509::FingerprintOf(certificates)

  static std::shared_ptr<const CertificateChain> Of(std::vector<x509::CertificateRef> certificates);
};

// One SDS Secret: either a certificate whose key the holder has, or a validation context. Never both.
struct Secret {
  std::shared_ptr<const CertificateChain> certificate;
  x509::TrustBundleRef trusted_ca;
  std::shared_ptr<const PeerRules> peer;  // of a validation context that says more; else null
};

class SecretProvider {
 public:
  using OnSecret = absl::AnyInvocable<void(absl::StatusOr<Secret>)>;
  virtual ~SecretProvider() = default;
  // Subscribes to the secret `name` ("default", "ROOTCA", "file-cert:..."): calls back with each version of it, at
  // once if it is there, again whenever it rotates. An error (the secret cannot be loaded) leaves the last good one in
  // force. Until the first good one, clusters and listeners that need it stay warming. `on_secret` may outlive the
  // Envoy, which guards itself.
  virtual void Subscribe(std::string_view name, OnSecret on_secret) = 0;
};

}  // namespace wavetank::envoysim
