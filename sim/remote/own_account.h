// What one cluster's API server says to the istiod of its own pod: RBAC, by the pod's ServiceAccount.
//
// Manifests often leave all of it out (a sketch, a dump of some kinds). So it is judged only where the cluster's
// objects speak of it: a binding names the account, or a role or binding has a name by which Istio's charts call
// istiod's.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "core/kube/credentials/access_review.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::sim {

// OK, or PermissionDenied with kube-apiserver's words. A `get` of one object that is refused is asked as the `list` of
// it, too.
absl::Status AskRbac(const fakekube::ApiServer& api, kube::AccessRequest request);

class OwnAccount {
 public:
  // Called where roles of istiod's are there and none of them is bound to the account: whether it may do all the same.
  using RoleIsGiven = std::function<bool()>;

  // `api` outlives it. What a cluster was observed to hold says nothing of its roles: nothing is judged then, which
  // `roles_known` says.
  OwnAccount(const fakekube::ApiServer& api, std::string ns, std::string account, RoleIsGiven role_is_given,
             bool roles_known = true);

  // What ISTIO_WATCH_NAMESPACE does to 1.18.2: each informer is of the namespace, that of definitions, too, of which a
  // namespace has none (istiod: pkg/kube/client.go, newClientInternal(); istio#45512).
  void LooksForDefinitionsInANamespace() { definitions_in_namespace_ = true; }

  // `request`'s user is not looked at.
  absl::Status Permit(kube::AccessRequest request) const;
  bool IsJudged() const;
  const std::string& ns() const { return ns_; }
  const std::string& account() const { return account_; }

 private:
  const fakekube::ApiServer& api_;
  const std::string ns_, account_;
  const RoleIsGiven role_is_given_;
  const bool roles_known_;
  bool definitions_in_namespace_ = false;
};

}  // namespace wavetank::sim
