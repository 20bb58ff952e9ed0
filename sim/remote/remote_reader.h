// What one cluster's API server says to an istiod of another that shows a kubeconfig: TLS, the token, RBAC.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "core/base/time.h"
#include "core/kube/credentials/access_review.h"
#include "core/kube/credentials/kubeconfig.h"
#include "core/kube/credentials/service_account_token.h"
#include "core/x509/x509.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::sim {

class RemoteReader {
 public:
  struct Server {
    const fakekube::ApiServer* api = nullptr;
    const kube::TokenAuthority* tokens = nullptr;
    x509::CertificateRef ca;
    std::string url;
  };
  // Called with each request: whether the account may read as if the installation's role were bound to it. `bound`:
  // some role is; `known`: that, or the cluster's objects speak of readers' roles, so that this one was not left out.
  using RoleIsGiven = std::function<bool(bool bound, bool known)>;

  RemoteReader(Server server, kube::KubeConfig config, RoleIsGiven role_is_given);

  // OK, or what client-go reports of the request: Unavailable (TLS), Unauthenticated, PermissionDenied. The request's
  // user is not looked at.
  absl::Status Permit(Time now, kube::AccessRequest request) const;

 private:
  absl::Status Trusts() const;

  const Server server_;
  const kube::KubeConfig config_;
  const RoleIsGiven role_is_given_;
  const absl::Status tls_;
};

// The cluster has a role or a binding of the names that Istio's charts give those of readers: who installed it so did
// not leave roles out.
bool SpeaksOfReaders(const fakekube::ApiServer& api);

// Whether any binding of the cluster is for that ServiceAccount by name.
bool HasRole(const fakekube::ApiServer& api, std::string_view ns, std::string_view account);

}  // namespace wavetank::sim
