#include "oracles/envoy/secrets.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/x509/calendar.h"
#include "core/x509/hash.h"
#include "core/x509/revocation.h"
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
  ca.root.root = ca.root.certificate = x509::WithCrlSign(*ca.root.certificate, *ca.root.key).value();
  ca.intermediate = x509::MakeIntermediateCa(kSeed, name + "-intermediate", ca.root, Year(2020), validity);
  ca.intermediate.certificate = x509::WithCrlSign(*ca.intermediate.certificate, *ca.root.key).value();
  ca.intermediate.chain = {ca.intermediate.certificate};
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

absl::StatusOr<CaseSecret> MakeSecret(const std::string& name, const nlohmann::json& json) {
  if (json.contains("roots")) return Roots(json["roots"].get<std::vector<std::string>>());
  const nlohmann::json san = json.value("san", nlohmann::json::array());
  const auto sans = san.is_array() ? san.get<std::vector<std::string>>() : std::vector{san.get<std::string>()};
  return Workload(name, sans, json.value("ca", "mesh"), json.value("validity", "valid"));
}

absl::StatusOr<x509::CertificateRef> LeafOf(const Secrets& secrets, const std::string& name) {
  const auto at = secrets.find(name);
  if (at == secrets.end() || at->second.secret.certificate == nullptr) {
    return absl::InvalidArgumentError(fmt::format("no secret '{}' with a certificate", name));
  }
  return at->second.secret.certificate->certificates.front();
}

// Of the words after "crl".
absl::StatusOr<std::string> Revoked(const Secrets& secrets, const std::vector<std::string>& words) {
  if (words.size() < 2) return absl::InvalidArgumentError("{crl}: of which CA?");
  const Ca& ca = CaOf(words[1]);
  std::vector<x509::CertificateRef> of_intermediate, of_root;
  bool leaf_only = false;
  int until = 2059;
  for (size_t i = 2; i < words.size(); ++i) {
    if (words[i] == "leaf-only") {
      leaf_only = true;
    } else if (words[i] == "expired") {
      until = 2022;
    } else if (words[i] == "intermediate") {
      of_root.push_back(ca.intermediate.certificate);
    } else {
      absl::StatusOr<x509::CertificateRef> leaf = LeafOf(secrets, words[i]);
      if (!leaf.ok()) return leaf.status();
      of_intermediate.push_back(*std::move(leaf));
    }
  }
  std::string out = x509::MakeRevocationList(*ca.intermediate.certificate, *ca.intermediate.key, of_intermediate,
                                             Year(2021), Year(until));
  if (leaf_only) return out;
  return out + x509::MakeRevocationList(*ca.root.certificate, *ca.root.key, of_root, Year(2021), Year(until));
}

// What stands for the text between braces; nothing: it is none of ours.
absl::StatusOr<std::optional<std::string>> Expanded(const Secrets& secrets, const std::string& inside) {
  const std::vector<std::string> words = absl::StrSplit(inside, ' ');
  if (words[0] == "crl") return Revoked(secrets, words);
  if (words[0] == "roots") {
    const auto at = secrets.find(words.size() == 2 ? words[1] : "");
    if (at != secrets.end() && at->second.secret.trusted_ca != nullptr) return at->second.secret.trusted_ca->ToPem();
    return absl::InvalidArgumentError(fmt::format("{{{}}}: no secret with roots of that name", inside));
  }
  if (words[0] != "certificate_hash" && words[0] != "spki_hash") return std::nullopt;
  const absl::StatusOr<x509::CertificateRef> leaf = LeafOf(secrets, words.size() == 2 ? words[1] : "");
  if (!leaf.ok()) return leaf.status();
  if (words[0] == "certificate_hash") {
    return absl::BytesToHexString(x509::Hash(x509::HashKind::kSha256, {(*leaf)->der()}));
  }
  return absl::Base64Escape(x509::Hash(x509::HashKind::kSha256, {(*leaf)->public_key()}));
}

}  // namespace

absl::StatusOr<Secrets> MakeSecrets(const nlohmann::json& json) {
  Secrets out;
  for (const auto& [name, secret] : json.items()) {
    absl::StatusOr<CaseSecret> made = MakeSecret(name, secret);
    if (!made.ok()) return made.status();
    out[name] = *std::move(made);
  }
  for (const auto& [name, secret] : json.items()) {
    if (!secret.contains("crl")) continue;
    nlohmann::json text = secret["crl"];
    if (absl::Status s = ExpandSecrets(out, &text); !s.ok()) return s;
    const std::string pem = text;
    absl::StatusOr<x509::RevocationListRef> revoked = x509::RevocationList::FromPem(pem, name);
    if (!revoked.ok()) return revoked.status();
    auto rules = std::make_shared<envoysim::PeerRules>();
    rules->chain.revoked = *std::move(revoked);
    out[name].secret.peer = std::move(rules);
    out[name].crl_pem = pem;
  }
  return out;
}

absl::Status ExpandSecrets(const Secrets& secrets, nlohmann::json* resources) {
  if (resources->is_structured()) {
    for (nlohmann::json& child : *resources) {
      if (absl::Status s = ExpandSecrets(secrets, &child); !s.ok()) return s;
    }
    return absl::OkStatus();
  }
  if (!resources->is_string()) return absl::OkStatus();
  const std::string text = *resources;
  if (!text.starts_with('{') || !text.ends_with('}')) return absl::OkStatus();
  const auto expanded = Expanded(secrets, text.substr(1, text.size() - 2));
  if (!expanded.ok()) return expanded.status();
  if (expanded->has_value()) *resources = **expanded;
  return absl::OkStatus();
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
    if (!secret.crl_pem.empty()) out.mutable_validation_context()->mutable_crl()->set_inline_string(secret.crl_pem);
  }
  return out.SerializeAsString();
}

CaseSecret SecretForAnyName(const std::string& name) {
  if (name == "ROOTCA" || name.starts_with("file-root:") || name.ends_with("-cacert")) return Roots({"mesh"});
  return *Workload(name, {"spiffe://cluster.local/ns/default/sa/default"}, "mesh", "valid");
}

}  // namespace wavetank::envoydiff
