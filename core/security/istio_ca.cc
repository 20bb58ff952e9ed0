#include "core/security/istio_ca.h"

#include <algorithm>

#include "core/base/assert.h"
#include "core/base/text/go_duration.h"
#include "fmt/format.h"

namespace wavetank::security {
namespace {

x509::CertificateSpec SelfSignedSpec(std::string_view trust_domain, Time now, Duration ttl) {
  x509::CertificateSpec spec;
  spec.subject.organizations = {std::string(trust_domain)};
  // Not dated back, unlike workload certificates (istiod: genCertTemplateFromOptions).
  spec.not_before = now;
  spec.not_after = now + ttl;
  spec.is_ca = true;
  return spec;
}

}  // namespace

absl::StatusOr<std::unique_ptr<IstioCa>> IstioCa::Create(KeyCertBundleRef bundle, const IstioCaOptions& options,
                                                         Time now) {
  WAVETANK_ASSERT(bundle != nullptr);
  IstioCaOptions own = options;
  if (const x509::CertificateRef& head = bundle->chain_head()) {
    const Duration left = std::chrono::floor<std::chrono::seconds>(head->not_after() - now);
    if (left <= Duration::zero()) {
      return absl::InvalidArgumentError(
          fmt::format("the CA's certificate chain expired on {}; renew it", x509::Rfc3339(head->not_after())));
    }
    own.default_workload_ttl = std::min(own.default_workload_ttl, left);
  }
  return std::unique_ptr<IstioCa>(new IstioCa(std::move(bundle), own));
}

absl::StatusOr<SignedCertificate> IstioCa::Issue(std::string_view public_key, const std::vector<std::string>& sans,
                                                 Duration ttl, Time now) const {
  x509::CertificateSpec spec;
  spec.sans = sans;
  spec.not_before = now - x509::kClockSkewGracePeriod;
  spec.not_after = now + ttl;
  auto leaf = x509::Certificate::Issue(spec, public_key, bundle_->certificate(), bundle_->key());
  if (!leaf.ok()) return leaf.status();
  SignedCertificate out{*std::move(leaf), {}};
  WAVETANK_ASSERT(!out.leaf->is_ca());  // whatever the request asked for
  out.cert_chain.push_back(out.leaf->ToPem());
  if (!bundle_->chain_pem().empty()) out.cert_chain.push_back(bundle_->chain_pem());
  out.cert_chain.push_back(bundle_->roots_pem());
  return out;
}

absl::StatusOr<SignedCertificate> IstioCa::Sign(std::string_view csr_pem, const std::vector<std::string>& sans,
                                                Duration ttl, Time now) const {
  auto request = x509::ParseCsr(csr_pem, "the certificate signing request");
  if (!request.ok()) return request.status();
  if (ttl > options_.max_workload_ttl) {
    return absl::InvalidArgumentError(fmt::format("requested TTL {} is greater than the max allowed TTL {}",
                                                  GoDurationText(ttl.count()),
                                                  GoDurationText(options_.max_workload_ttl.count())));
  }
  if (ttl <= Duration::zero()) ttl = options_.default_workload_ttl;
  return Issue(request->public_key, sans, ttl, now);
}

absl::StatusOr<SignedCertificate> IstioCa::SignServer(const x509::KeyPair& key,
                                                      const std::vector<std::string>& dns_names, Time now) const {
  return Issue(key.public_key(), dns_names, options_.self_signed_ttl, now);
}

KeyCertPem MakeSelfSignedCa(uint64_t seed, std::string_view name, std::string_view trust_domain, Time now,
                            Duration ttl) {
  const x509::KeyPairRef key = x509::KeyPair::Derive(seed, fmt::format("istio-ca-secret/{}", name));
  const auto root = x509::Certificate::SelfSign(SelfSignedSpec(trust_domain, now, ttl), *key);
  KeyCertPem out;
  if (!root.ok()) return out;  // only for a ttl that is not positive
  out.certificate = out.roots = (*root)->ToPem();
  out.key = key->ExportPrivateKeyPem();
  return out;
}

absl::StatusOr<KeyCertPem> RenewSelfSignedCa(const KeyCertBundle& old, std::string_view trust_domain, Time now,
                                             Duration ttl) {
  const auto root = x509::Certificate::SelfSign(SelfSignedSpec(trust_domain, now, ttl), old.key());
  if (!root.ok()) return root.status();
  KeyCertPem out;
  out.certificate = out.roots = (*root)->ToPem();
  out.key = old.key().ExportPrivateKeyPem();
  return out;
}

}  // namespace wavetank::security
