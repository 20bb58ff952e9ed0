// Tokens in Secrets: fills Secrets of type kubernetes.io/service-account-token with their ServiceAccount's token, the
// cluster's CA and the namespace, and removes them with the account. kubernetes: pkg/controller/serviceaccount,
// TokensController.
#pragma once

#include "fakes/kube/control/cluster_options.h"
#include "fakes/kube/control/pending.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

class TokenController {
 public:
  TokenController(ApiServer& api, const ClusterOptions& options);
  bool Settled() const { return pending_.idle(); }

 private:
  void Sync(const NamespacedName& secret);

  ApiServer& api_;
  const ClusterOptions& options_;
  PendingWork pending_;
  NameQueue queue_;
  Subscriptions subscriptions_;
};

}  // namespace wavetank::fakekube
