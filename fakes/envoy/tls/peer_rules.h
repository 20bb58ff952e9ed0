// What a peer's certificate has to fulfil beside chaining to a trusted CA and having a name that is liked: pins, lists
// of revoked ones, and what is forgiven. Compiled from CertificateValidationContext.
// Envoy: source/common/tls/cert_validator/default_validator.cc
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/x509/revocation.h"

namespace envoy::extensions::transport_sockets::tls::v3 {
class CertificateValidationContext;
}

namespace wavetank::envoysim {

struct PeerRules {
  std::vector<std::string> certificate_hashes, key_hashes;  // SHA-256, in hex and as bytes; one of any has to fit
  x509::VerifyRules chain;
  bool accepts_untrusted = false;  // what is found wrong is counted, and no reason to refuse

  bool pins() const { return !certificate_hashes.empty() || !key_hashes.empty(); }
  bool plain() const { return !pins() && chain.plain() && !accepts_untrusted; }
  bool FitsPins(const x509::Certificate& leaf) const;
  // Those of a secret, over what a context says itself. Envoy: MergeFrom of combined_validation_context
  void Merge(const PeerRules& secret);
};

// InvalidArgument: Envoy's words if it would be refused.
absl::Status ReadPeerRules(const envoy::extensions::transport_sockets::tls::v3::CertificateValidationContext& context,
                           PeerRules* out);

}  // namespace wavetank::envoysim
