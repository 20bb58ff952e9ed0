// istiod as a registration authority: it says who may have a certificate, and a signer of the Kubernetes API makes it
// (EXTERNAL_CA=ISTIOD_RA_KUBERNETES_API; istiod: security/pkg/pki/ra/k8s_ra.go).
//
// The signer is K8S_SIGNER's, or CERT_SIGNER_DOMAIN/NAME for a workload that names one (ISTIO_META_CERT_SIGNER). The
// request may only name the caller's own identities. Roots follow the chain: those of `external-ca-cert` if there are
// some, else for a workload that names a signer those that meshConfig.caCertificates says of it, or what the signer put
// at the end of its chain; a certificate that these do not verify is refused.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/config/mesh/ca_certificates.h"
#include "core/security/ca_server.h"
#include "core/security/signing/certificate_signing.h"

namespace wavetank::security {

class KubernetesRa {
 public:
  struct Options {
    std::string signer;         // K8S_SIGNER
    std::string signer_domain;  // CERT_SIGNER_DOMAIN
    std::string roots_pem;      // of the file that CA_CERT names; empty: none
    Duration max_ttl{};         // MAX_WORKLOAD_CERT_TTL
  };
  // The roots of the mesh config, now, with whom they are for.
  using MeshRoots = std::function<const std::vector<config::SignerRoots>&()>;
  KubernetesRa(Host& host, CertificateSigning& signing, Options options, MeshRoots mesh_roots)
      : host_(host), signing_(signing), options_(std::move(options)), mesh_roots_(std::move(mesh_roots)) {}

  using Done = absl::AnyInvocable<void(absl::StatusOr<SignedCertificate>)>;
  void Sign(SigningRequest request, Done done);

  // Roots that the mesh config says of a signer, by its whole name. NotFound: it says none.
  absl::StatusOr<std::string> RootOf(const std::string& signer) const;

 private:
  absl::Status MaySign(const SigningRequest& request) const;
  absl::StatusOr<SignedCertificate> Accept(std::string pem, const std::string& cert_signer) const;

  Host& host_;
  CertificateSigning& signing_;
  const Options options_;
  const MeshRoots mesh_roots_;
};

}  // namespace wavetank::security
