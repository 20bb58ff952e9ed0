// IstioCertificateService.CreateCertificate (istiod: security/pkg/server/ca/server.go).
#pragma once

#include <functional>
#include <memory>
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
  std::string cert_signer;            // metadata "CertSigner"
};

// What somebody else is to sign, of an istiod that has no authority of its own for workloads.
struct SigningRequest {
  std::string csr_pem;
  std::vector<std::string> sans;
  Duration ttl{};  // <= 0: the signer decides
  std::string cert_signer;
};
using SignElsewhere =
    std::function<void(SigningRequest request, absl::AnyInvocable<void(absl::StatusOr<SignedCertificate>)> done)>;

// Whether a node's proxy may ask for a certificate of another identity; OK, or what istiod logs of it.
using MayImpersonate = std::function<absl::Status(const Caller& caller, const std::string& identity)>;

class CaServer {
 public:
  // All must outlive the server and every call. `name` is istiod's in the trace.
  CaServer(Host& host, std::string_view name, const IstioCa& ca, const AuthenticationManager& authentication)
      : host_(host), name_(host.Intern(name)), ca_(&ca), authentication_(authentication) {}
  // Of an istiod that has others sign.
  CaServer(Host& host, std::string_view name, SignElsewhere sign, const AuthenticationManager& authentication)
      : host_(host), name_(host.Intern(name)), elsewhere_(std::move(sign)), authentication_(authentication) {}

  // Without it nobody may.
  void set_may_impersonate(MayImpersonate may) { may_impersonate_ = std::move(may); }

  // The chain in PEM: leaf, the CA's chain, the roots. The identity is the caller's, unless it may
  // speak for others, whatever the request asks for.
  // Unauthenticated (opaque, as in istiod), InvalidArgument (request or lifetime).
  using Done = absl::AnyInvocable<void(absl::StatusOr<std::vector<std::string>>)>;
  void CreateCertificate(PeerCredentials peer, CertificateRequestMessage request, Done done);

  int64_t signed_count() const { return signed_; }
  int64_t authentication_failures() const { return authentication_failures_; }

 private:
  absl::StatusOr<std::vector<std::string>> SansFor(const Caller& caller,
                                                   const CertificateRequestMessage& request) const;
  void Sign(const std::vector<std::string>& sans, const CertificateRequestMessage& request, Done done);
  void Answer(const std::string& identity, absl::StatusOr<SignedCertificate> made, Done& done);

  Host& host_;
  NameId name_;
  const IstioCa* ca_ = nullptr;  // one of the two
  SignElsewhere elsewhere_;
  MayImpersonate may_impersonate_;
  const AuthenticationManager& authentication_;
  int64_t signed_ = 0, authentication_failures_ = 0;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::security
