// cert-manager's istio-csr: the CreateCertificate service of a mesh whose istiods have no authority (ENABLE_CA_SERVER
// is false, caAddress leads here). Each request becomes a CertificateRequest of its issuer's, whose answer is the
// agent's chain; the roots go to a ConfigMap in every namespace, from which agents know whom to believe, and istiod's
// own certificate is a Secret that istiod mounts. istio-csr: pkg/server, pkg/tls, pkg/certmanager, pkg/controller,
// pkg/istiodcert.
//
// Fault model: an issuer that is not there, or does not answer, leaves it unready, and it tries again ever more seldom;
// one that signs under other roots than its own (--root-ca-file) is refused. What it may not do at its API server it
// does not do, and says so (sim/signing/own_rights.h). Arguments that cannot be end it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/base/host.h"
#include "core/base/random.h"
#include "core/kube/client.h"
#include "core/kube/informer.h"
#include "core/security/authenticator.h"
#include "core/security/ca_server.h"
#include "core/security/istiod_ca.h"
#include "core/security/namespace_controller.h"
#include "sim/network/channel.h"
#include "sim/signing/istio_csr_settings.h"
#include "sim/signing/own_rights.h"

namespace wavetank::sim {

class IstioCsr {
 public:
  struct Parts {
    Channels& channels;
    Host& host;             // of its node
    WorkloadId workload{};  // its pod
    std::string name;       // of its pod, as traces have it
    uint64_t seed = 0;
    std::unique_ptr<kube::Client> client;
    std::unique_ptr<kube::TokenReviewer> reviewer;  // of its cluster
    std::shared_ptr<OwnRights> rights;              // whom `client` and `reviewer` ask, too
    // What --root-ca-file holds, now.
    std::function<absl::StatusOr<std::string>()> roots_file;
  };
  IstioCsr(Parts parts, IstioCsrSettings settings);
  ~IstioCsr();

  // `changed`: whether it is ready.
  void Start(std::function<void()> changed);
  bool ready() const { return serving_.key != nullptr && settings_.ends_when_serving.empty(); }
  // Why it is not, as it logs that; empty: it is.
  std::string Trouble() const;
  // Why it is not, or whom it sent away last, and why, as it logs that; OK: nobody who has not been served since.
  absl::Status complaint() const;

  // Null: nobody but its own pod reaches it.
  envoysim::Acceptor* acceptor() { return settings_.serves_itself ? nullptr : &server_; }
  uint16_t port() const { return settings_.port; }

  // A client's certificate, if it shows one, ends in its roots.
  bool Believes(const std::vector<x509::CertificateRef>& chain) const;
  // What runs here, called by what clients Send() on a channel.
  void CreateCertificate(security::PeerCredentials peer, security::CertificateRequestMessage request,
                         security::CaServer::Done done);

 private:
  // What the issuer answered: PEM.
  struct Signed {
    std::string chain, ca;
  };
  using OnSigned = absl::AnyInvocable<void(absl::StatusOr<Signed>)>;
  struct Waiting {
    OnSigned done;
    std::string words;  // of the issuer, meanwhile
  };

  std::optional<IssuerName> Issuer() const;
  void FetchServingCertificate();
  absl::Status TakeServingCertificate(const Signed& answer, x509::KeyPairRef key);
  void Retry(const absl::Status& why);
  void MakeIstiodCertificate();
  // A CertificateRequest, followed until it is answered.
  void Ask(const std::string& csr_pem, const std::string& identities, Duration lifetime, OnSigned done);
  absl::Status MayFollow(const std::string& name) const;
  std::string Forbidden() const;
  void Lead();
  bool MayLead() const;
  void Look(const kube::Object& request);
  absl::StatusOr<std::string> Roots(const std::string& ca) const;
  void Sign(const std::string& identity, const security::CertificateRequestMessage& request,
            security::CaServer::Done done);
  absl::StatusOr<std::vector<std::string>> ChainOf(const Signed& answer) const;
  std::shared_ptr<const envoysim::TlsServer> Tls();
  template <class Fn>
  auto WhileAlive(Fn fn) {
    return [fn = std::move(fn), weak = std::weak_ptr<char>(alive_)](auto&&... args) mutable {
      if (!weak.expired()) fn(std::forward<decltype(args)>(args)...);
    };
  }

  const Parts parts_;
  const IstioCsrSettings settings_;
  RandomStream names_;
  kube::Informer requests_, issuer_map_;
  std::map<std::string, Waiting> waiting_;  // by the CertificateRequest's name
  std::string fetching_;                    // the one of its own certificate
  absl::Status failed_;                     // the last try at that
  Duration retry_ = 1s;
  std::function<void()> changed_;
  security::ServingCertificate serving_;
  int64_t fetched_ = 0;
  std::string roots_;                                                                             // PEM
  absl::StatusOr<x509::TrustBundleRef> trusted_ = absl::FailedPreconditionError("no roots yet");  // the same, read
  std::shared_ptr<const envoysim::TlsServer> tls_;
  security::NamespaceController namespaces_;
  bool stands_ = false, leads_ = false;  // for election, and elected
  security::AuthenticationManager authentication_;
  std::map<std::string, std::string> refused_;  // by cluster ID or identity
  ChannelServer server_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::sim
