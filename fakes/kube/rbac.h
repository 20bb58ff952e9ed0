// Authorization by the Roles and bindings that an API server holds, as kube-apiserver's RBAC authorizer decides.
// Aggregated ClusterRoles (aggregationRule) are taken by their own rules only.
#pragma once

#include "core/kube/access_review.h"
#include "fakes/kube/api_server.h"

namespace wavetank::fakekube {

class RbacAuthorizer final : public kube::AccessReviewer {
 public:
  explicit RbacAuthorizer(const ApiServer& server) : server_(server) {}
  // O(bindings of the namespace and of the cluster).
  bool Allowed(const kube::AccessRequest& request) const override;

 private:
  const ApiServer& server_;
};

}  // namespace wavetank::fakekube
