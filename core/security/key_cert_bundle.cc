#include "core/security/key_cert_bundle.h"

#include "core/base/status.h"
#include "fmt/format.h"

namespace wavetank::security {
namespace {
absl::Status Invalid(std::string text) { return absl::InvalidArgumentError(text); }
}  // namespace

absl::StatusOr<KeyCertBundleRef> KeyCertBundle::Create(KeyCertPem pem, Time now, std::string_view what) {
  const KeyCertNames& names = pem.names;
  const auto entry = [&](std::string_view name) { return fmt::format("{}, key {},", what, name); };
  const std::pair<std::string_view, const std::string*> required[] = {
      {names.certificate, &pem.certificate}, {names.key, &pem.key}, {names.roots, &pem.roots}};
  for (const auto& [name, text] : required) {
    if (text->empty()) return Invalid(fmt::format("{} is missing or empty", entry(name)));
  }
  std::shared_ptr<KeyCertBundle> out(new KeyCertBundle);
  auto certificate = x509::Certificate::FromPem(pem.certificate, entry(names.certificate));
  if (!certificate.ok()) return certificate.status();
  auto roots = x509::TrustBundle::FromPem(pem.roots, entry(names.roots));
  if (!roots.ok()) return roots.status();
  std::vector<x509::CertificateRef> presented{*certificate};
  if (!pem.chain.empty()) {
    auto chain = x509::ParseCertificates(pem.chain, entry(names.chain));
    if (!chain.ok()) return chain.status();
    out->chain_head_ = chain->front();
    presented.insert(presented.end(), chain->begin(), chain->end());
  }
  auto key = x509::KeyPair::FromPem(pem.key, entry(names.key));
  if (!key.ok()) return key.status();
  if (!(*certificate)->Matches(**key)) {
    return Invalid(fmt::format("{}: {} is not the key of {}; put a pair that was made together", what, names.key,
                               names.certificate));
  }
  if (!(*certificate)->is_ca()) {
    return Invalid(
        fmt::format("{} is not authorized to sign other certificates; a CA certificate is needed (basic "
                    "constraints CA:TRUE)",
                    entry(names.certificate)));
  }
  const x509::VerifyResult verified = x509::Verify(presented, **roots, now);
  if (verified.error == x509::VerifyError::kExpired || verified.error == x509::VerifyError::kNotYetValid) {
    for (const auto& certificates : {presented, (*roots)->roots()}) {
      for (const x509::CertificateRef& c : certificates) {
        if (c->not_before() <= now && now < c->not_after()) continue;
        return Invalid(fmt::format("{}: the certificate \"{}\" is valid from {} until {}, and now it is {}; renew it",
                                   what, c->subject(), x509::Rfc3339(c->not_before()), x509::Rfc3339(c->not_after()),
                                   x509::Rfc3339(now)));
      }
    }
  }
  if (!verified.ok()) {
    return Invalid(fmt::format("{}: {} does not chain to {}: {} (the certificate names as its issuer \"{}\")", what,
                               names.certificate, names.roots, verified.reason, (*certificate)->issuer()));
  }
  out->certificate_ = *std::move(certificate);
  out->key_ = *std::move(key);
  out->roots_ = *std::move(roots);
  out->pem_ = std::move(pem);
  return out;
}

}  // namespace wavetank::security
