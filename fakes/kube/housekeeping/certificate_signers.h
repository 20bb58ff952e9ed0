// Who signs CertificateSigningRequests once they are approved: Kubernetes' own signers (kubernetes:
// pkg/controller/certificates/signer), as far as saying what they refuse, and cert-manager's ClusterIssuers
// (cert-manager: pkg/controller/certificatesigningrequests) with the key of a Secret in namespace cert-manager. A
// Certificate that is to be a CA of a self-signed ClusterIssuer gets its Secret, too, so that an authority can be set
// up as the guides do.
//
// cert-manager is taken to run where such an issuer is: nobody has to install its Deployments.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fakes/kube/control/controller.h"
#include "fakes/kube/control/pending.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

class CertificateSigners final : public Controller {
 public:
  // `seed` and the cluster's name: keys that it makes follow from them.
  CertificateSigners(ApiServer& api, uint64_t seed, std::string cluster);

  bool Settled() const override { return pending_.idle(); }

 private:
  void Sync(const NamespacedName& request);
  void Issue(const NamespacedName& certificate);
  absl::StatusOr<std::string> SignByIssuer(const kube::Object& request, const std::string& issuer) const;
  void Store(const kube::Object& request, const absl::StatusOr<std::string>& made);

  ApiServer& api_;
  const uint64_t seed_;
  const std::string cluster_;
  PendingWork pending_;
  NameQueue requests_, certificates_;
  Subscriptions subscriptions_;
};

}  // namespace wavetank::fakekube
