// An istiod's side of trust: who signs certificates (its own CA, an external one, or nobody), the certificate that it
// shows and the roots that it spreads, and who its callers are.
// istiod: pilot/pkg/bootstrap/istio_ca.go, certcontroller.go, server.go.
//
// The calls that it has not answered yet share it, as a TokenReview takes its time: after Stop() they stay unanswered,
// and nothing of the istiod is touched any more.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "core/base/host.h"
#include "core/config/mesh/mesh_watcher.h"
#include "core/istiod/files/serving_files.h"
#include "core/istiod/peer_cert_verifier.h"
#include "core/istiod/start_lines.h"
#include "core/model/ids.h"
#include "core/security/authenticator.h"
#include "core/security/ca_server.h"
#include "core/security/callers/node_authorizer.h"
#include "core/security/signing/external_ca.h"
#include "core/security/trust_bundle.h"

namespace wavetank::pilot {

struct IstiodSurroundings;

// The host by which proxies of a mesh know istiod, as its certificate names it (istiod: GetDiscoveryAddress).
std::string DiscoveryHost(const config::MeshConfig& mesh);

class SecurityServer : public std::enable_shared_from_this<SecurityServer> {
 public:
  // What it stands on, until Stop().
  struct Parts {
    Host& host;
    kube::Client& client;  // of the config cluster
    const IstiodOptions& options;
    const IstiodSurroundings& surroundings;
    LocalFiles& files;
    const StartLines& lines;
  };
  explicit SecurityServer(const Parts& parts);

  // The roots or the certificate have changed.
  std::function<void()> on_bundle_changed = [] {};

  // istiod: initIstiodCerts. A file that is missing ends nothing: istiod then has no certificate.
  void FindServingFiles();
  // Its CA, then the roots of peers. `ready` hears once how that went.
  void Start(config::MeshWatcher& mesh, absl::AnyInvocable<void(absl::Status)> ready);
  // NotFound: PILOT_CERT_PROVIDER names somebody who cannot make the certificate (istiod: initDNSCerts). Any other word
  // than those that it knows is fine with 1.18.2, which then shows no certificate at all.
  absl::Status CheckCertProvider() const;
  // In the order in which they are asked (istiod: NewServer). `reads`: whether a registry of that cluster runs.
  absl::Status AddAuthenticators(std::function<bool(const ClusterId&)> reads);
  // From here on CreateCertificate() answers, if anybody signs.
  void ServeCertificates();
  void Stop();

  bool HasCertificates() const { return ca_ != nullptr || external_ != nullptr; }
  StartLines::Signer signer() const;
  const security::ServingCertificate* serving() const;  // null: none (yet)
  const std::string& bundle_pem() const;
  // The signer's roots, to those that agents shall trust. Later ones are not added (istiod: initWorkloadTrustBundle).
  // InvalidArgument: one of them is no CA certificate.
  absl::Status AddRoots(security::TrustBundleSources& to) const;

  // As Istiod::VerifyClient().
  absl::Status VerifyClient(const std::vector<x509::CertificateRef>& chain) const;
  void Authenticate(security::PeerCredentials peer, security::AuthenticateCallback done);
  void CreateCertificate(security::PeerCredentials peer, security::CertificateRequestMessage request,
                         security::CaServer::Done done);

 private:
  // Whether istiod's certificate is its own CA's (istiod: initIstiodCerts).
  bool SignsForItself() const;
  std::string TrustDomain() const { return mesh_ == nullptr ? "" : mesh_->mesh()->trust_domain; }
  security::IstiodCaOptions CaOptions() const;
  void StartExternalCa();
  void StartOwnCa();
  void FetchPeerRoots();
  template <class Fn>
  auto UntilStopped(Fn fn) {
    return [fn = std::move(fn), weak = weak_from_this()](auto&&... args) mutable {
      const auto self = weak.lock();
      if (self != nullptr && !self->stopped_) fn(std::forward<decltype(args)>(args)...);
    };
  }

  const Parts parts_;
  config::MeshWatcher* mesh_ = nullptr;  // from Start() on
  absl::AnyInvocable<void(absl::Status)> ready_;
  std::optional<ServingFiles> serving_files_;  // instead of a certificate of its CA
  std::unique_ptr<security::ExternalCa> external_;
  std::unique_ptr<security::IstiodCa> ca_;
  std::unique_ptr<security::NodeAuthorizer> nodes_;
  security::AuthenticationManager authentication_;
  std::unique_ptr<security::CaServer> ca_server_;
  std::unique_ptr<PeerCertVerifier> peers_;
  const std::string no_bundle_;
  bool stopped_ = false;
};

}  // namespace wavetank::pilot
