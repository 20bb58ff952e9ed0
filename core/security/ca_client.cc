#include "core/security/ca_client.h"

#include <utility>

namespace wavetank::security {
namespace {
constexpr size_t kParserCapacity = 1024;
}  // namespace

absl::StatusOr<std::vector<x509::CertificateRef>> CertificateParser::Parse(const std::string& pem,
                                                                           std::string_view what) {
  if (const auto it = chains_.find(pem); it != chains_.end()) return it->second;
  auto parsed = x509::ParseCertificates(pem, what);
  if (!parsed.ok()) return parsed.status();
  if (chains_.size() >= kParserCapacity) chains_.clear();
  return chains_[pem] = *std::move(parsed);
}

absl::StatusOr<x509::TrustBundleRef> CertificateParser::ParseBundle(const std::string& pem, std::string_view what) {
  if (const auto it = bundles_.find(pem); it != bundles_.end()) return it->second;
  auto parsed = x509::TrustBundle::FromPem(pem, what);
  if (!parsed.ok()) return parsed.status();
  if (bundles_.size() >= kParserCapacity) bundles_.clear();
  return bundles_[pem] = *std::move(parsed);
}

}  // namespace wavetank::security
