#include "sim/apps/app_tls.h"

#include <algorithm>
#include <utility>

#include "core/kube/secret.h"
#include "fmt/format.h"

namespace wavetank::sim {
namespace {

constexpr Duration kPublicValidity = std::chrono::hours(24 * 36500);
constexpr int kLowestVersion = 2, kHighestVersion = 3;  // 1.x, as OpenSSL 3 and Go have them

// Whether its client and its server read the same Secret: keys in the order in which they are looked for.
constexpr std::string_view kLeafKeys[] = {"tls.crt", "cert"};
constexpr std::string_view kAuthorityKeys[] = {"ca.crt", "cacert", "ca.pem"};

std::shared_ptr<const envoysim::CertificateChain> PublicCertificate(std::string_view name) {
  const x509::CertificateAuthority& authority = PublicAuthority();
  const x509::KeyPairRef key = x509::KeyPair::Derive(0, fmt::format("public/{}", name));
  x509::CertificateSpec spec;
  spec.subject.common_name = std::string(name);
  if (!name.empty()) spec.sans = {std::string(name)};
  spec.not_before = Time{};
  spec.not_after = Time{} + kPublicValidity;
  auto leaf = x509::Certificate::Issue(spec, key->public_key(), *authority.certificate, *authority.key);
  if (!leaf.ok()) return nullptr;  // of a name that no certificate can have
  return envoysim::CertificateChain::Of({*std::move(leaf)});
}

absl::StatusOr<kube::SecretData> DataOf(std::string_view ns, std::string_view name, const FindSecret& find) {
  const kube::ObjectRef secret = find(ns, name);
  if (secret == nullptr) return absl::InvalidArgumentError(fmt::format("there is no Secret {}/{}", ns, name));
  return kube::ReadSecretData(*secret);
}

absl::StatusOr<std::vector<x509::CertificateRef>> ChainIn(std::string_view ns, std::string_view name,
                                                          const FindSecret& find) {
  const absl::StatusOr<kube::SecretData> data = DataOf(ns, name, find);
  if (!data.ok()) return data.status();
  for (const std::string_view key : kLeafKeys) {
    if (const std::string pem = kube::SecretEntry(*data, key); !pem.empty())
      return x509::ParseCertificates(pem, fmt::format("Secret {}/{}, key {}", ns, name, key));
  }
  return absl::InvalidArgumentError(fmt::format("Secret {}/{} has no certificate under tls.crt or cert", ns, name));
}

// Of a Secret that holds nothing else its certificate is meant, whatever it is called, as docs of Istio have it
// (`kubectl create secret generic nginx-ca-certs --from-file=example.com.crt`).
absl::StatusOr<x509::TrustBundleRef> AuthoritiesIn(std::string_view ns, std::string_view name, const FindSecret& find) {
  const absl::StatusOr<kube::SecretData> data = DataOf(ns, name, find);
  if (!data.ok()) return data.status();
  std::string key;
  for (const std::string_view known : kAuthorityKeys) {
    if (key.empty() && data->contains(known)) key = known;
  }
  if (key.empty() && data->size() == 1) key = data->begin()->first;
  if (key.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("Secret {}/{} has no authorities under ca.crt, cacert or ca.pem", ns, name));
  }
  return x509::TrustBundle::FromPem(kube::SecretEntry(*data, key), fmt::format("Secret {}/{}, key {}", ns, name, key));
}

std::shared_ptr<envoysim::TlsContext> NewContext() {
  auto out = std::make_shared<envoysim::TlsContext>();
  out->lowest_version = kLowestVersion;
  out->highest_version = kHighestVersion;
  return out;
}

std::pair<std::string_view, std::string_view> SplitName(std::string_view name) {
  const size_t slash = name.find('/');
  return {name.substr(0, slash), slash == name.npos ? std::string_view() : name.substr(slash + 1)};
}

}  // namespace

bool AppTls::Speaks(int64_t port) const {
  return ports.empty() || std::find(ports.begin(), ports.end(), port) != ports.end();
}

const x509::CertificateAuthority& PublicAuthority() {
  static const auto* const authority =
      new x509::CertificateAuthority(x509::MakeRootCa(0, "a public authority", Time{}, kPublicValidity));
  return *authority;
}

absl::StatusOr<std::shared_ptr<const envoysim::TlsServer>> ServerOf(const AppTls& tls, std::string_view ns,
                                                                    std::string_view asked_name,
                                                                    const FindSecret& find) {
  auto out = std::make_shared<envoysim::TlsServer>();
  const std::shared_ptr<envoysim::TlsContext> context = NewContext();
  context->alpn = {"h2", "http/1.1"};
  if (tls.certificate.empty()) {
    out->certificate = PublicCertificate(asked_name);
  } else {
    absl::StatusOr<std::vector<x509::CertificateRef>> chain = ChainIn(ns, tls.certificate, find);
    if (!chain.ok()) return chain.status();
    out->certificate = envoysim::CertificateChain::Of(*std::move(chain));
  }
  if (!tls.clients.empty()) {
    absl::StatusOr<x509::TrustBundleRef> authorities = AuthoritiesIn(ns, tls.clients, find);
    if (!authorities.ok()) return authorities.status();
    out->trusted_ca = context->trusted_ca = *std::move(authorities);
    context->validates = context->require_client_certificate = true;
  }
  context->certificate = out->certificate;
  out->context = context;
  return out;
}

absl::StatusOr<std::shared_ptr<const envoysim::FirstFlight>> FlightOf(const ClientTls& tls, std::string_view alpn,
                                                                      const Host* client, const FindSecret& find) {
  auto out = std::make_shared<envoysim::FirstFlight>();
  out->kind = envoysim::FirstFlight::Kind::kTls;
  out->sni = tls.server_name;
  if (!alpn.empty()) out->alpn = {std::string(alpn)};
  out->client = client;
  auto speaks = std::make_shared<envoysim::TlsClient>();
  const std::shared_ptr<envoysim::TlsContext> context = NewContext();
  context->sni = out->sni;
  context->alpn = out->alpn;
  if (!tls.certificate.empty()) {
    const auto [ns, name] = SplitName(tls.certificate);
    absl::StatusOr<std::vector<x509::CertificateRef>> chain = ChainIn(ns, name, find);
    if (!chain.ok()) return chain.status();
    context->certificate = speaks->certificate = envoysim::CertificateChain::Of(*std::move(chain));
  }
  if (!tls.insecure) {
    if (tls.trusts.empty()) {
      static const auto* const roots = new x509::TrustBundleRef(
          *x509::TrustBundle::FromPem(PublicAuthority().root->ToPem(), "the public authority"));
      speaks->trusted_ca = *roots;
    } else {
      const auto [ns, name] = SplitName(tls.trusts);
      absl::StatusOr<x509::TrustBundleRef> authorities = AuthoritiesIn(ns, name, find);
      if (!authorities.ok()) return authorities.status();
      speaks->trusted_ca = *std::move(authorities);
    }
    context->trusted_ca = speaks->trusted_ca;
    context->validates = true;
    if (!tls.server_name.empty()) {
      context->sans = {
          {envoysim::SanType::kDns, envoysim::StringMatch::Make(envoysim::StringMatch::Kind::kExact, tls.server_name)}};
      context->asked_name = tls.server_name;
      context->accepts_common_name = true;
    }
  }
  speaks->context = context;
  out->tls = std::move(speaks);
  return out;
}

}  // namespace wavetank::sim
