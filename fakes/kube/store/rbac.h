// Authorization by the Roles and bindings that an API server holds, as kube-apiserver's RBAC authorizer decides.
// Aggregated ClusterRoles (aggregationRule) are taken by their own rules only.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/kube/credentials/access_review.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

class RbacAuthorizer final : public kube::AccessReviewer {
 public:
  // `groups`: of the user who asks, besides those that the name says.
  explicit RbacAuthorizer(const ApiServer& server, std::vector<std::string> groups = {})
      : server_(server), groups_(std::move(groups)) {}
  // O(bindings of the namespace and of the cluster).
  bool Allowed(const kube::AccessRequest& request) const override;

 private:
  const ApiServer& server_;
  const std::vector<std::string> groups_;
};

// kube-apiserver's words for a request that is not allowed, of `request.user`.
std::string ForbiddenWords(const kube::AccessRequest& request);

}  // namespace wavetank::fakekube
