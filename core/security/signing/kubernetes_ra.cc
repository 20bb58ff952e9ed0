#include "core/security/signing/kubernetes_ra.h"

#include <algorithm>
#include <utility>

#include "core/base/status.h"
#include "core/base/text/go_duration.h"
#include "core/x509/x509.h"
#include "fmt/format.h"

namespace wavetank::security {

absl::Status KubernetesRa::MaySign(const SigningRequest& request) const {
  const absl::StatusOr<x509::CertificateRequest> csr = x509::ParseCsr(request.csr_pem, "the request");
  bool own = csr.ok();
  if (own) {
    for (const auto* names : {&csr->sans.uris, &csr->sans.dns_names, &csr->sans.ip_addresses}) {
      own = own && std::all_of(names->begin(), names->end(), [&](const std::string& name) {
              return std::find(request.sans.begin(), request.sans.end(), name) != request.sans.end();
            });
    }
  }
  if (!own) return absl::InvalidArgumentError("unable to validate SAN Identities in CSR");
  if (request.ttl > options_.max_ttl) {
    return absl::InvalidArgumentError(fmt::format("requested TTL {} is greater than the max allowed TTL {}",
                                                  GoDurationText(request.ttl.count()),
                                                  GoDurationText(options_.max_ttl.count())));
  }
  if (options_.signer_domain.empty() && !request.cert_signer.empty()) {
    return absl::InternalError(fmt::format("certSignerDomain is requiered for signer {}", request.cert_signer));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> KubernetesRa::RootOf(const std::string& signer) const {
  const std::vector<config::SignerRoots>& all = mesh_roots_();
  for (const config::SignerRoots& roots : all) {
    if (std::find(roots.signers.begin(), roots.signers.end(), signer) != roots.signers.end()) return roots.pem;
  }
  if (all.empty()) return absl::NotFoundError("no caCertificates defined in mesh config");
  return absl::NotFoundError(fmt::format("failed to find root cert for signer: {} in mesh config", signer));
}

void KubernetesRa::Sign(SigningRequest request, Done done) {
  if (absl::Status may = MaySign(request); !may.ok()) return done(may);
  CertificateSigning::Request asked;
  asked.csr_pem = std::move(request.csr_pem);
  asked.signer =
      request.cert_signer.empty() ? options_.signer : fmt::format("{}/{}", options_.signer_domain, request.cert_signer);
  asked.lifetime = std::max(request.ttl, Duration::zero());
  signing_.Sign(std::move(asked), [this, cert_signer = std::move(request.cert_signer),
                                   done = std::move(done)](absl::StatusOr<std::string> pem) mutable {
    // istiod: security/pkg/pki/error, CertGenError is Internal.
    if (!pem.ok()) return done(absl::InternalError(std::string(Message(pem.status()))));
    done(Accept(*std::move(pem), cert_signer));
  });
}

absl::StatusOr<SignedCertificate> KubernetesRa::Accept(std::string pem, const std::string& cert_signer) const {
  const auto chain = x509::ParseCertificates(pem, "the signer's answer");
  if (!chain.ok()) return absl::InternalError("decoding certificate failed");
  SignedCertificate out{chain->front(), {pem}};
  if (!options_.roots_pem.empty()) {
    out.cert_chain.push_back(options_.roots_pem);
    return out;
  }
  if (cert_signer.empty()) return out;
  const absl::StatusOr<std::string> said = RootOf(fmt::format("{}/{}", options_.signer_domain, cert_signer));
  const x509::CertificateRef& last = chain->back();
  std::string root;
  if (said.ok()) {
    root = *said;
  } else if (last->is_ca()) {
    root = last->ToPem();
  } else {
    return absl::InvalidArgumentError("failed to find root cert from either signed cert-chain or mesh config");
  }
  const auto roots = x509::TrustBundle::FromPem(root, "the signer's root");
  if (!roots.ok()) return absl::InvalidArgumentError("root cert from signed cert-chain is invalid (it cannot be read)");
  if (const x509::VerifyResult verified = x509::Verify(*chain, **roots, host_.WallClock()); !verified.ok()) {
    return absl::InvalidArgumentError(fmt::format("root cert from signed cert-chain is invalid ({})", verified.reason));
  }
  if (root != last->ToPem()) out.cert_chain.push_back(root);
  return out;
}

}  // namespace wavetank::security
