// A world's certificate authorities, in the layout of Istio's guide "Plug in CA Certificates".
#include <string>

#include "core/x509/x509.h"

namespace wavetank::x509 {
namespace {

CertificateSpec CaSpec(std::string_view name, Time not_before, Duration validity) {
  CertificateSpec spec;
  spec.subject = {std::string(name), {"Wavetank"}};
  spec.not_before = not_before;
  spec.not_after = not_before + validity;
  spec.is_ca = true;
  return spec;
}

}  // namespace

CertificateAuthority MakeRootCa(uint64_t seed, std::string_view name, Time not_before, Duration validity) {
  CertificateAuthority ca;
  ca.key = KeyPair::Derive(seed, "root-ca/" + std::string(name));
  ca.certificate = ca.root = Certificate::SelfSign(CaSpec(name, not_before, validity), *ca.key).value();
  return ca;
}

CertificateAuthority MakeIntermediateCa(uint64_t seed, std::string_view name, const CertificateAuthority& parent,
                                        Time not_before, Duration validity) {
  CertificateAuthority ca;
  ca.key = KeyPair::Derive(seed, "intermediate-ca/" + std::string(name));
  ca.certificate =
      Certificate::Issue(CaSpec(name, not_before, validity), ca.key->public_key(), *parent.certificate, *parent.key)
          .value();
  ca.root = parent.root;
  ca.chain = {ca.certificate};
  ca.chain.insert(ca.chain.end(), parent.chain.begin(), parent.chain.end());
  return ca;
}

std::map<std::string, std::string> CaCertsSecretData(const CertificateAuthority& ca) {
  return {{"ca-cert.pem", ca.certificate->ToPem()},
          {"ca-key.pem", ca.key->ExportPrivateKeyPem()},
          {"root-cert.pem", ca.root->ToPem()},
          // The guide's makefile appends the root, and istiod hands this chain to every workload.
          {"cert-chain.pem", ToPem(ca.chain) + ca.root->ToPem()}};
}

}  // namespace wavetank::x509
