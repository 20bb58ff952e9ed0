#include "core/security/ca_server.h"

#include <algorithm>

#include "core/base/buggify/buggify.h"
#include "core/base/status.h"
#include "fmt/format.h"

namespace wavetank::security {
namespace {

// The low 63 bits of a serial number, for trace records.
int64_t ShortSerial(const x509::Certificate& certificate) {
  uint64_t value = 0;
  const std::string& hex = certificate.serial();
  for (char c : hex.substr(hex.size() > 16 ? hex.size() - 16 : 0)) {
    value = value << 4 | static_cast<uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  return static_cast<int64_t>(value & 0x7fffffffffffffffu);
}

}  // namespace

void CaServer::CreateCertificate(PeerCredentials peer, CertificateRequestMessage request, Done done) {
  authentication_.Authenticate(std::move(peer), [this, request = std::move(request),
                                                 done = std::move(done)](absl::StatusOr<Caller> caller) mutable {
    if (!caller.ok()) {
      ++authentication_failures_;
      return done(absl::UnauthenticatedError("request authenticate failure"));
    }
    // Only node agents of CA_TRUSTED_NODE_ACCOUNTS may speak for others, and by default there are none.
    if (!request.impersonated_identity.empty()) {
      ++authentication_failures_;
      return done(absl::UnauthenticatedError("request impersonation authentication failure"));
    }
    auto sign = [this, caller = *std::move(caller), request = std::move(request), done = std::move(done)]() mutable {
      Sign(caller, request, std::move(done));
    };
    const Duration late = BuggifyDelay(BuggifyPoint::kCertificateLate);
    if (late == Duration::zero()) return host_.Spend({.kind = WorkKind::kSignCertificate}, std::move(sign));
    host_.RunAfter(late, std::move(sign));
  });
}

void CaServer::Sign(const Caller& caller, const CertificateRequestMessage& request, Done done) {
  const Time now = host_.Now();
  // Seconds beyond what a Duration holds are certainly above the maximum.
  const int64_t seconds = std::min<int64_t>(request.validity_seconds, Duration::max() / 1s);
  auto signed_certificate =
      ca_.Sign(request.csr, caller.identities, seconds <= 0 ? Duration::zero() : std::chrono::seconds(seconds), now);
  if (!signed_certificate.ok()) {
    return done(absl::Status(signed_certificate.status().code(),
                             fmt::format("CSR signing error ({})", Message(signed_certificate.status()))));
  }
  ++signed_;
  const x509::Certificate& leaf = *signed_certificate->leaf;
  host_.Emit({.kind = TraceKind::kCertificateSigned,
              .subject = name_,
              .object = host_.Intern(caller.identities.front()),
              .a = ShortSerial(leaf),
              .b = (leaf.not_after() - now).count()});
  done(std::move(signed_certificate->cert_chain));
}

}  // namespace wavetank::security
