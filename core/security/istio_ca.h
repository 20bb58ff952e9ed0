// The signing half of istiod's certificate authority (istiod: security/pkg/pki/ca/ca.go).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/security/key_cert_bundle.h"

namespace wavetank::security {

struct IstioCaOptions {
  Duration default_workload_ttl = 24h;    // DEFAULT_WORKLOAD_CERT_TTL
  Duration max_workload_ttl = 24h * 90;   // MAX_WORKLOAD_CERT_TTL
  Duration self_signed_ttl = 24h * 3650;  // CITADEL_SELF_SIGNED_CA_CERT_TTL
};

// A signed leaf with what goes with it, in the order of IstioCertificateResponse.cert_chain: leaf, chain, roots.
struct SignedCertificate {
  x509::CertificateRef leaf;
  std::vector<std::string> cert_chain;  // PEM; an entry may hold several certificates
};

class IstioCa {
 public:
  // InvalidArgument when the chain has expired. The default lifetime of workload certificates is cut to what is left of
  // the chain's own, once, here (istiod: IstioCA.minTTL).
  static absl::StatusOr<std::unique_ptr<IstioCa>> Create(KeyCertBundleRef bundle, const IstioCaOptions& options,
                                                         Time now);

  // Signs the request's public key for `sans`, whatever names the request asks for. `ttl` <= 0: the default. A
  // certificate begins kClockSkewGracePeriod before `now`.
  // InvalidArgument: bad request, or `ttl` above the maximum.
  absl::StatusOr<SignedCertificate> Sign(std::string_view csr_pem, const std::vector<std::string>& sans, Duration ttl,
                                         Time now) const;

  // A serving certificate for istiod itself, valid for self_signed_ttl, signed without regard to the maximum (istiod:
  // GenKeyCert as called by initDNSCerts).
  absl::StatusOr<SignedCertificate> SignServer(const x509::KeyPair& key, const std::vector<std::string>& dns_names,
                                               Time now) const;

  const KeyCertBundleRef& bundle() const { return bundle_; }
  // Takes effect for all later signatures; the default lifetime stays what it was at the start, as in istiod.
  void set_bundle(KeyCertBundleRef bundle) { bundle_ = std::move(bundle); }
  Duration default_workload_ttl() const { return options_.default_workload_ttl; }

 private:
  IstioCa(KeyCertBundleRef bundle, const IstioCaOptions& options) : bundle_(std::move(bundle)), options_(options) {}
  absl::StatusOr<SignedCertificate> Issue(std::string_view public_key, const std::vector<std::string>& sans,
                                          Duration ttl, Time now) const;

  KeyCertBundleRef bundle_;
  IstioCaOptions options_;
};

// What a self-signed istiod writes into istio-ca-secret: key and root of its own, for the trust domain.
KeyCertPem MakeSelfSignedCa(uint64_t seed, std::string_view name, std::string_view trust_domain, Time now,
                            Duration ttl);
// A new root certificate for the same key (istiod: GenRootCertFromExistingKey): what was signed before stays valid
// under the new root.
absl::StatusOr<KeyCertPem> RenewSelfSignedCa(const KeyCertBundle& old, std::string_view trust_domain, Time now,
                                             Duration ttl);

}  // namespace wavetank::security
