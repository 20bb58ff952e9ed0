// A CA's own certificate and key with what leads from it to the roots (istiod: security/pkg/pki/util/keycertbundle.go).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/x509/x509.h"

namespace wavetank::security {

class KeyCertBundle;
using KeyCertBundleRef = std::shared_ptr<const KeyCertBundle>;

// The names that the texts have in their Secret; messages use them.
struct KeyCertNames {
  std::string_view certificate = "ca-cert.pem", key = "ca-key.pem", chain = "cert-chain.pem", roots = "root-cert.pem";
};

struct KeyCertPem {
  std::string certificate;  // ca-cert.pem or tls.crt
  std::string key;          // ca-key.pem or tls.key
  std::string chain;        // cert-chain.pem; may be empty
  std::string roots;        // root-cert.pem or ca.crt
  KeyCertNames names = {};
};

// Immutable; a rotation makes a new one.
class KeyCertBundle {
 public:
  // Checks all of it: every text is what it should be, the certificate is a CA's, is valid at `now`, chains to the
  // roots and belongs to the key. InvalidArgument is one message that names `what` ("Secret istio-system/cacerts"), the
  // key within it and the remedy; FailedPrecondition the same of a certificate that may not sign.
  static absl::StatusOr<KeyCertBundleRef> Create(KeyCertPem pem, Time now, std::string_view what);

  const x509::Certificate& certificate() const { return *certificate_; }
  const x509::KeyPair& key() const { return *key_; }
  const x509::TrustBundleRef& roots() const { return roots_; }
  // As they came in; what istiod appends to every answer and writes into ConfigMaps.
  const std::string& certificate_pem() const { return pem_.certificate; }
  const std::string& chain_pem() const { return pem_.chain; }
  const std::string& roots_pem() const { return pem_.roots; }
  // First certificate of the chain; null without one.
  const x509::CertificateRef& chain_head() const { return chain_head_; }

 private:
  KeyCertBundle() = default;
  KeyCertPem pem_;
  x509::CertificateRef certificate_, chain_head_;
  x509::KeyPairRef key_;
  x509::TrustBundleRef roots_;
};

}  // namespace wavetank::security
