// What the API server of its cluster lets istio-csr do: RBAC, by its pod's ServiceAccount. As of istiods (sim/remote/
// own_account.h) it is judged only where the cluster's objects speak of it: a binding names the account, or a role or
// binding is called as istio-csr's chart calls its own.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "core/kube/credentials/access_review.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::sim {

class OwnRights {
 public:
  // `api` outlives it. `account`: the pod's; empty: "default".
  OwnRights(const fakekube::ApiServer& api, std::string ns, const std::string& account);

  // OK, or PermissionDenied in kube-apiserver's words, which are kept until the same is allowed.
  absl::Status Ask(kube::AccessRequest request);
  // Whether it is judged at all.
  bool Known() const;
  // The first of what was refused; empty: nothing.
  std::string refusal() const { return refused_.empty() ? std::string() : refused_.begin()->second; }

 private:
  const fakekube::ApiServer& api_;
  const std::string ns_, account_;
  std::map<std::string, std::string> refused_;
};

}  // namespace wavetank::sim
