#include "core/security/key_cert_bundle.h"

#include "core/base/status.h"
#include "fmt/format.h"

namespace wavetank::security {
namespace {
// istiod's words (security/pkg/pki/util/keycertbundle.go, Verify), then what is behind them.
absl::Status Invalid(std::string_view words, std::string_view cause) {
  return absl::InvalidArgumentError(words.empty() ? std::string(cause) : fmt::format("{}: {}", words, cause));
}
absl::Status Invalid(std::string_view words, const absl::Status& cause) { return Invalid(words, Message(cause)); }

constexpr std::string_view kUnverified =
    "cannot verify the cert with the provided root chain and cert pool with error: ";
}  // namespace

absl::StatusOr<KeyCertBundleRef> KeyCertBundle::Create(KeyCertPem pem, Time now, std::string_view what) {
  const KeyCertNames& names = pem.names;
  const auto entry = [&](std::string_view name) { return fmt::format("{}, key {},", what, name); };
  const std::pair<std::string_view, const std::string*> required[] = {
      {names.certificate, &pem.certificate}, {names.key, &pem.key}, {names.roots, &pem.roots}};
  for (const auto& [name, text] : required) {
    // A root that is not there is no file's name (pilot/pkg/bootstrap/istio_ca.go, createIstioCA).
    if (!text->empty()) continue;
    const std::string path = name == names.roots ? "" : fmt::format("etc/cacerts/{}", name);
    return Invalid(what.ends_with("/cacerts") ? fmt::format("open {}: no such file or directory", path) : "",
                   fmt::format("{} is missing or empty", entry(name)));
  }
  std::shared_ptr<KeyCertBundle> out(new KeyCertBundle);
  auto certificate = x509::Certificate::FromPem(pem.certificate, entry(names.certificate));
  if (!certificate.ok()) return Invalid("failed to parse cert PEM", certificate.status());
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
  if (!key.ok()) return Invalid("failed to parse private key PEM", key.status());
  if (!(*certificate)->Matches(**key)) {
    return Invalid("the cert does not match the key",
                   fmt::format("{}: {} is not the key of {}; put a pair that was made together", what, names.key,
                               names.certificate));
  }
  const x509::VerifyResult verified = x509::Verify(presented, **roots, now);
  if (verified.error == x509::VerifyError::kExpired || verified.error == x509::VerifyError::kNotYetValid) {
    for (const auto& certificates : {presented, (*roots)->roots()}) {
      for (const x509::CertificateRef& c : certificates) {
        if (c->not_before() <= now && now < c->not_after()) continue;
        const bool late = now >= c->not_after();
        return Invalid(fmt::format("{}x509: certificate has expired or is not yet valid: current time {} is {} {}",
                                   kUnverified, x509::Rfc3339(now), late ? "after" : "before",
                                   x509::Rfc3339(late ? c->not_after() : c->not_before())),
                       fmt::format("{}: the certificate \"{}\" is valid from {} until {}, and now it is {}; renew it",
                                   what, c->subject(), x509::Rfc3339(c->not_before()), x509::Rfc3339(c->not_after()),
                                   x509::Rfc3339(now)));
      }
    }
  }
  if (!verified.ok()) {
    return Invalid(fmt::format("{}x509: certificate signed by unknown authority", kUnverified),
                   fmt::format("{}: {} does not chain to {}: {} (the certificate names as its issuer \"{}\")", what,
                               names.certificate, names.roots, verified.reason, (*certificate)->issuer()));
  }
  // After the bundle is made (istiod: security/pkg/pki/ca/ca.go, NewPluggedCertIstioCAOptions).
  if (!(*certificate)->is_ca()) {
    return absl::FailedPreconditionError(
        fmt::format("certificate is not authorized to sign other certificates: {} is one of a server or workload; a CA "
                    "certificate is needed (basic constraints CA:TRUE)",
                    entry(names.certificate)));
  }
  out->certificate_ = *std::move(certificate);
  out->key_ = *std::move(key);
  out->roots_ = *std::move(roots);
  out->pem_ = std::move(pem);
  return out;
}

}  // namespace wavetank::security
