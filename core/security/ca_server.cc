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
    absl::StatusOr<std::vector<std::string>> sans = SansFor(*caller, request);
    if (!sans.ok()) {
      ++authentication_failures_;
      return done(sans.status());
    }
    auto sign = [this, sans = *std::move(sans), request = std::move(request), done = std::move(done)]() mutable {
      Sign(sans, request, std::move(done));
    };
    const Duration late = BuggifyDelay(BuggifyPoint::kCertificateLate);
    if (late == Duration::zero()) return host_.Spend({.kind = WorkKind::kSignCertificate}, std::move(sign));
    host_.RunAfter(late, std::move(sign));
  });
}

// The caller's own names, or the one that it asks for on behalf of a pod on its node.
absl::StatusOr<std::vector<std::string>> CaServer::SansFor(const Caller& caller,
                                                           const CertificateRequestMessage& request) const {
  if (request.impersonated_identity.empty()) return caller.identities;
  const bool may = may_impersonate_ != nullptr && may_impersonate_(caller, request.impersonated_identity).ok();
  // Opaque, as in istiod.
  if (!may) return absl::UnauthenticatedError("request impersonation authentication failure");
  return std::vector{request.impersonated_identity};
}

void CaServer::Sign(const std::vector<std::string>& sans, const CertificateRequestMessage& request, Done done) {
  // Seconds beyond what a Duration holds are certainly above the maximum.
  const int64_t seconds = std::min<int64_t>(request.validity_seconds, Duration::max() / 1s);
  const Duration ttl = seconds <= 0 ? Duration::zero() : std::chrono::seconds(seconds);
  if (ca_ != nullptr) return Answer(sans.front(), ca_->Sign(request.csr, sans, ttl, host_.WallClock()), done);
  elsewhere_({request.csr, sans, ttl, request.cert_signer},
             [this, alive = std::weak_ptr(alive_), identity = sans.front(),
              done = std::move(done)](absl::StatusOr<SignedCertificate> made) mutable {
               if (!alive.expired()) Answer(identity, std::move(made), done);
             });
}

void CaServer::Answer(const std::string& identity, absl::StatusOr<SignedCertificate> made, Done& done) {
  if (!made.ok()) {
    return done(absl::Status(made.status().code(), fmt::format("CSR signing error ({})", Message(made.status()))));
  }
  ++signed_;
  const x509::Certificate& leaf = *made->leaf;
  host_.Emit({.kind = TraceKind::kCertificateSigned,
              .subject = name_,
              .object = host_.Intern(identity),
              .a = ShortSerial(leaf),
              .b = (leaf.not_after() - host_.WallClock()).count()});
  done(std::move(made->cert_chain));
}

}  // namespace wavetank::security
