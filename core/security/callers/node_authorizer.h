// Whether the proxy of a node may have a certificate of a pod that runs there, by CA_TRUSTED_NODE_ACCOUNTS (istiod:
// security/pkg/server/ca/node_auth.go). Pods of istiod's own cluster alone are known, as in 1.18.2.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "core/kube/informer.h"
#include "core/security/authenticator.h"

namespace wavetank::security {

class NodeAuthorizer {
 public:
  // `trusted`: ServiceAccounts that may ask for others. Both references outlive it.
  NodeAuthorizer(Host& host, kube::Client& client, std::set<kube::NamespacedName> trusted);

  void Start() { pods_.Start(); }
  // OK, or why not: for logs, not for the caller.
  absl::Status MayImpersonate(const Caller& caller, const std::string& identity) const;

 private:
  kube::Informer pods_;
  const std::set<kube::NamespacedName> trusted_;
};

}  // namespace wavetank::security
