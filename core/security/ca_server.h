// IstioCertificateService.CreateCertificate (istiod: security/pkg/server/ca/server.go).
#pragma once

#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/base/host.h"
#include "core/security/authenticator.h"
#include "core/security/istio_ca.h"

namespace wavetank::security {

struct CertificateRequestMessage {
  std::string csr;                    // PEM
  int64_t validity_seconds = 0;       // <= 0: the CA's default
  std::string impersonated_identity;  // metadata "ImpersonatedIdentity"
};

class CaServer {
 public:
  // All must outlive the server and every call. `name` is istiod's in the trace.
  CaServer(Host& host, std::string_view name, const IstioCa& ca, const AuthenticationManager& authentication)
      : host_(host), name_(host.Intern(name)), ca_(ca), authentication_(authentication) {}

  // The chain in PEM: leaf, the CA's chain, the roots. The identity is the caller's, whatever the request asks for.
  // Unauthenticated (opaque, as in istiod), InvalidArgument (request or lifetime).
  using Done = absl::AnyInvocable<void(absl::StatusOr<std::vector<std::string>>)>;
  void CreateCertificate(PeerCredentials peer, CertificateRequestMessage request, Done done);

  int64_t signed_count() const { return signed_; }
  int64_t authentication_failures() const { return authentication_failures_; }

 private:
  void Sign(const Caller& caller, const CertificateRequestMessage& request, Done done);

  Host& host_;
  NameId name_;
  const IstioCa& ca_;
  const AuthenticationManager& authentication_;
  int64_t signed_ = 0, authentication_failures_ = 0;
};

}  // namespace wavetank::security
