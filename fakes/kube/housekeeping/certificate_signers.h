// Who signs CertificateSigningRequests once they are approved: Kubernetes' own signers (kubernetes:
// pkg/controller/certificates/signer), as far as saying what they refuse, and cert-manager's ClusterIssuers
// (cert-manager: pkg/controller/certificatesigningrequests) with the key of a Secret in namespace cert-manager.
// Certificates get their Secrets, too (cert-manager: pkg/controller/certificates/issuing): of issuers that are
// self-signed or have a CA's Secret from these, of others (ACME, Vault) from an authority that stands for whoever is
// outside. What nobody's issuer is for waits. They are renewed by renewBefore, else when two thirds of their life are
// over (pkg/controller/certificates/trigger). CertificateRequests (pkg/controller/certificaterequests) are signed by
// the same issuers, of which an ACME server signs no names but DNS ones and tells no CA.
//
// cert-manager is taken to run where such an issuer is: nobody has to install its Deployments.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/host.h"
#include "fakes/kube/control/controller.h"
#include "fakes/kube/control/pending.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

class CertificateSigners final : public Controller {
 public:
  // `seed` and the cluster's name: keys that it makes follow from them.
  CertificateSigners(ApiServer& api, uint64_t seed, std::string cluster);

  ~CertificateSigners() override;

  bool Settled() const override { return pending_.idle(); }

 private:
  void Sync(const NamespacedName& request);
  void Issue(const NamespacedName& certificate);
  void IssueInto(const std::string& secret, const kube::Object& certificate);
  void RenewLater(const NamespacedName& certificate, const std::string& secret, Duration after);
  void Grant(const NamespacedName& request);
  void RetryWaiting();
  absl::StatusOr<std::string> SignByIssuer(const kube::Object& request, const std::string& issuer) const;
  void Store(const kube::Object& request, const absl::StatusOr<std::string>& made);

  ApiServer& api_;
  const uint64_t seed_;
  const std::string cluster_;
  PendingWork pending_;
  NameQueue requests_, certificates_, granted_;
  std::set<NamespacedName> waiting_;           // Certificates whose issuer is not there, or has no key yet
  std::set<NamespacedName> waiting_to_grant_;  // CertificateRequests of that kind
  struct Renewals {
    int made = 0;
    TimerId next = kNoTimer;  // one at a time, however often its Secret is made anew meanwhile
  };
  std::map<NamespacedName, Renewals> renewals_;  // by Certificate
  Subscriptions subscriptions_;
};

}  // namespace wavetank::fakekube
