// istiod's signing half where EXTERNAL_CA says that somebody else signs: the registration authority, and istiod's own
// serving certificate if PILOT_CERT_PROVIDER has that made elsewhere, too (istiod: pilot/pkg/bootstrap/istio_ca.go,
// createIstioRA; certcontroller.go, initDNSCerts).
//
// ISTIOD_RA_KUBERNETES_API is what 1.18.2 can do. It names ISTIOD_RA_ISTIO_API, an external CA's gRPC, as permitted,
// and refuses to start with it; so does this.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "core/security/istiod_ca.h"
#include "core/security/signing/kubernetes_ra.h"

namespace wavetank::security {

class ExternalCa {
 public:
  struct Options {
    std::string type;           // EXTERNAL_CA
    std::string signer;         // K8S_SIGNER
    std::string signer_domain;  // CERT_SIGNER_DOMAIN
    std::string cert_provider;  // PILOT_CERT_PROVIDER
    uint64_t seed = 0;
    std::string name;     // istiod's, unique in the world: names of its requests are drawn by it
    std::string cluster;  // of istiod; keys derive from it
    std::string system_namespace = "istio-system";
    std::vector<std::string> dns_names;
    std::string api_server_roots_pem;  // where nothing publishes kube-root-ca.crt
    Duration max_workload_ttl{}, serving_ttl{};
  };
  // `client` is the config cluster's. Both outlive it.
  ExternalCa(Host& host, kube::Client& client, Options options, KubernetesRa::MeshRoots mesh_roots);

  // Calls back once: OK when certificates may be asked for, or why istiod cannot start.
  void Start(absl::AnyInvocable<void(absl::Status)> done);
  // Null until started.
  KubernetesRa* ra() { return ra_.get(); }
  const std::string& roots_pem() const { return roots_pem_; }

  // Whether istiod makes no authority of its own (istiod: isCADisabled).
  bool replaces_istiod_ca() const;
  // Where it does not.
  const ServingCertificate& serving_certificate() const { return serving_; }
  const std::string& ca_bundle_pem() const { return ca_bundle_pem_; }
  void AddBundleHandler(Callback handler) { handlers_.push_back(std::move(handler)); }
  // The mesh config may say other roots of the signer.
  void OnMeshChanged();

 private:
  void LoadRoots(absl::AnyInvocable<void(absl::Status)> done);
  void MakeServing(absl::AnyInvocable<void(absl::Status)> done);
  absl::Status Serve(x509::KeyPairRef key, std::string pem);
  void ScheduleRenewal();
  std::string ServingSigner() const;

  Host& host_;
  kube::Client& client_;
  const Options options_;
  const KubernetesRa::MeshRoots mesh_roots_;
  CertificateSigning signing_;
  std::string roots_pem_;
  std::unique_ptr<KubernetesRa> ra_;
  ServingCertificate serving_;
  std::string ca_bundle_pem_;
  uint64_t serving_generation_ = 0;
  std::vector<Callback> handlers_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::security
