#include "oracles/envoy/secrets.h"

#include <algorithm>
#include <iterator>
#include <mutex>

#include "absl/strings/str_join.h"
#include "core/x509/calendar.h"
#include "core/x509/x509.h"
#include "envoy/extensions/transport_sockets/tls/v3/secret.pb.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace wavetank::envoydiff {
namespace {

constexpr uint64_t kSeed = 77;

Time Year(int year) { return x509::FromUnixSeconds(x509::FromCivil({year, 1, 1, 0, 0, 0})); }

struct Ca {
  x509::CertificateAuthority root, intermediate;
};

const Ca& CaOf(const std::string& name) {
  static auto* const mutex = new std::mutex;
  static auto* const cas = new std::map<std::string, Ca>();
  const std::lock_guard<std::mutex> lock(*mutex);
  if (const auto at = cas->find(name); at != cas->end()) return at->second;
  const Duration validity = Year(2060) - Year(2020);
  Ca ca;
  ca.root = x509::MakeRootCa(kSeed, name, Year(2020), validity);
  ca.intermediate = x509::MakeIntermediateCa(kSeed, name + "-intermediate", ca.root, Year(2020), validity);
  return cas->emplace(name, std::move(ca)).first->second;
}

absl::StatusOr<CaseSecret> Workload(const std::string& name, const std::vector<std::string>& sans,
                                    const std::string& ca, const std::string& validity) {
  x509::CertificateSpec spec;
  std::copy_if(sans.begin(), sans.end(), std::back_inserter(spec.sans), [](const auto& san) { return !san.empty(); });
  if (validity == "valid") {
    spec.not_before = Year(2021), spec.not_after = Year(2059);
  } else if (validity == "expired") {
    spec.not_before = Year(2021), spec.not_after = Year(2022);
  } else if (validity == "future") {
    spec.not_before = Year(2058), spec.not_after = Year(2059);
  } else {
    return absl::InvalidArgumentError(
        fmt::format("secret '{}': validity '{}' is none of valid, expired, future", name, validity));
  }
  const x509::CertificateAuthority& issuer = CaOf(ca).intermediate;
  const x509::KeyPairRef key = x509::KeyPair::Derive(kSeed, name + absl::StrJoin(sans, "") + ca + validity);
  const auto leaf = x509::Certificate::Issue(spec, key->public_key(), *issuer.certificate, *issuer.key);
  if (!leaf.ok()) return leaf.status();
  std::vector<x509::CertificateRef> chain{*leaf};
  chain.insert(chain.end(), issuer.chain.begin(), issuer.chain.end());
  CaseSecret out;
  out.secret.certificate = envoysim::CertificateChain::Of(std::move(chain));
  out.key_pem = key->ExportPrivateKeyPem();
  return out;
}

CaseSecret Roots(const std::vector<std::string>& cas) {
  std::vector<x509::CertificateRef> roots;
  for (const std::string& ca : cas) roots.push_back(CaOf(ca).root.root);
  CaseSecret out;
  out.secret.trusted_ca = x509::TrustBundle::Of(std::move(roots));
  return out;
}

}  // namespace

absl::StatusOr<CaseSecret> MakeSecret(const std::string& name, const nlohmann::json& json) {
  if (json.contains("roots")) return Roots(json["roots"].get<std::vector<std::string>>());
  const nlohmann::json san = json.value("san", nlohmann::json::array());
  const auto sans = san.is_array() ? san.get<std::vector<std::string>>() : std::vector{san.get<std::string>()};
  return Workload(name, sans, json.value("ca", "mesh"), json.value("validity", "valid"));
}

std::string SecretBytes(const std::string& name, const CaseSecret& secret) {
  envoy::extensions::transport_sockets::tls::v3::Secret out;
  out.set_name(name);
  if (secret.secret.certificate != nullptr) {
    auto* certificate = out.mutable_tls_certificate();
    certificate->mutable_certificate_chain()->set_inline_string(x509::ToPem(secret.secret.certificate->certificates));
    certificate->mutable_private_key()->set_inline_string(secret.key_pem);
  } else {
    out.mutable_validation_context()->mutable_trusted_ca()->set_inline_string(secret.secret.trusted_ca->ToPem());
  }
  return out.SerializeAsString();
}

CaseSecret SecretForAnyName(const std::string& name) {
  if (name == "ROOTCA" || name.starts_with("file-root:") || name.ends_with("-cacert")) return Roots({"mesh"});
  return *Workload(name, {"spiffe://cluster.local/ns/default/sa/default"}, "mesh", "valid");
}

}  // namespace wavetank::envoydiff
