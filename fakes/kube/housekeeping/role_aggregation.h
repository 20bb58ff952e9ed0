// ClusterRoles that are made of others (kubernetes: pkg/controller/clusterroleaggregation).
#pragma once

#include "fakes/kube/control/controller.h"
#include "fakes/kube/control/pending.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

class RoleAggregator final : public Controller {
 public:
  explicit RoleAggregator(ApiServer& api);

  bool Settled() const override { return pending_.idle(); }

 private:
  void Sync(const NamespacedName& role);

  ApiServer& api_;
  PendingWork pending_;
  NameQueue queue_;
  Subscriptions subscriptions_;
};

}  // namespace wavetank::fakekube
