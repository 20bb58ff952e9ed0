#include "fakes/envoy/tls/peer_rules.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "core/x509/hash.h"
#include "envoy/config/core/v3/base.pb.h"
#include "envoy/extensions/transport_sockets/tls/v3/common.pb.h"
#include "fmt/format.h"

namespace wavetank::envoysim {
namespace {

namespace tls = envoy::extensions::transport_sockets::tls::v3;

constexpr size_t kDigestSize = 32;

std::string Digest(std::string_view bytes) { return x509::Hash(x509::HashKind::kSha256, {bytes}); }

absl::Status ReadPins(const tls::CertificateValidationContext& context, PeerRules* out) {
  for (std::string hash : context.verify_certificate_hash()) {
    constexpr size_t kWithColons = 95;
    if (hash.size() == kWithColons) hash.erase(std::remove(hash.begin(), hash.end(), ':'), hash.end());
    const bool hex = hash.size() == 2 * kDigestSize && std::all_of(hash.begin(), hash.end(), absl::ascii_isxdigit);
    if (!hex) return absl::InvalidArgumentError(fmt::format("Invalid hex-encoded SHA-256 {}", hash));
    out->certificate_hashes.push_back(absl::AsciiStrToLower(hash));
  }
  for (const std::string& hash : context.verify_certificate_spki()) {
    std::string bytes;
    if (!absl::Base64Unescape(hash, &bytes) || bytes.size() != kDigestSize) {
      return absl::InvalidArgumentError(fmt::format("Invalid base64-encoded SHA-256 {}", hash));
    }
    out->key_hashes.push_back(std::move(bytes));
  }
  return absl::OkStatus();
}

}  // namespace

bool PeerRules::FitsPins(const x509::Certificate& leaf) const {
  const auto has = [](const std::vector<std::string>& list, const std::string& digest) {
    return std::find(list.begin(), list.end(), digest) != list.end();
  };
  return has(certificate_hashes, absl::BytesToHexString(Digest(leaf.der()))) ||
         has(key_hashes, Digest(leaf.public_key()));
}

void PeerRules::Merge(const PeerRules& secret) {
  certificate_hashes.insert(certificate_hashes.end(), secret.certificate_hashes.begin(),
                            secret.certificate_hashes.end());
  key_hashes.insert(key_hashes.end(), secret.key_hashes.begin(), secret.key_hashes.end());
  if (secret.chain.revoked != nullptr) chain.revoked = secret.chain.revoked;
  chain.leaf_only |= secret.chain.leaf_only;
  chain.ignores_dates |= secret.chain.ignores_dates;
  if (secret.chain.max_depth.has_value()) chain.max_depth = secret.chain.max_depth;
  accepts_untrusted |= secret.accepts_untrusted;
}

absl::Status ReadPeerRules(const tls::CertificateValidationContext& context, PeerRules* out) {
  if (absl::Status s = ReadPins(context, out); !s.ok()) return s;
  out->accepts_untrusted = context.trust_chain_verification() == tls::CertificateValidationContext::ACCEPT_UNTRUSTED;
  out->chain.ignores_dates = context.allow_expired_certificate();
  out->chain.leaf_only = context.only_verify_leaf_cert_crl();
  if (context.has_max_verify_depth()) {
    // Envoy counts the anchor, too. Envoy: default_validator.cc, addClientValidationContext
    out->chain.max_depth = std::max(static_cast<int>(std::min(context.max_verify_depth().value(), 100u)) - 1, 0);
  }
  if (!context.has_crl()) return absl::OkStatus();
  const auto& source = context.crl();
  const std::string& pem = source.inline_string().empty() ? source.inline_bytes() : source.inline_string();
  if (pem.empty()) return absl::OkStatus();
  absl::StatusOr<x509::RevocationListRef> revoked = x509::RevocationList::FromPem(pem, "<inline>");
  if (!revoked.ok()) return absl::InvalidArgumentError("Failed to load CRL from <inline>");
  out->chain.revoked = *std::move(revoked);
  return absl::OkStatus();
}

}  // namespace wavetank::envoysim
