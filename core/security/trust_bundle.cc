#include "core/security/trust_bundle.h"

#include <set>
#include <utility>

#include "core/x509/x509.h"

namespace wavetank::security {

absl::Status TrustBundleSources::Update(Source source, std::vector<std::string> roots) {
  std::vector<std::string>& slot = by_source_[static_cast<size_t>(source)];
  if (slot == roots) return absl::OkStatus();
  for (const std::string& pem : roots) {
    const absl::StatusOr<x509::CertificateRef> root = x509::Certificate::FromPem(pem, "a root of the trust bundle");
    if (!root.ok()) return root.status();
    if (!(*root)->is_ca()) {
      return absl::InvalidArgumentError("a root of the trust bundle is no CA certificate: " + (*root)->subject());
    }
  }
  slot = std::move(roots);
  std::set<std::string> merged;
  for (const auto& list : by_source_) merged.insert(list.begin(), list.end());
  merged_.assign(merged.begin(), merged.end());
  if (on_changed_) on_changed_();
  return absl::OkStatus();
}

}  // namespace wavetank::security
