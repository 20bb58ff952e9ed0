// The status of ResourceQuotas: what their namespaces use (kubernetes: pkg/controller/resourcequota). What does not fit
// is refused by control/quotas.h.
#pragma once

#include <string>

#include "fakes/kube/control/controller.h"
#include "fakes/kube/control/pending.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

class ResourceQuotaController final : public Controller {
 public:
  explicit ResourceQuotaController(ApiServer& api);

  bool Settled() const override { return pending_.idle(); }

 private:
  void Sync(const NamespacedName& quota);

  ApiServer& api_;
  PendingWork pending_;
  NameQueue queue_;
  Subscriptions subscriptions_;
};

}  // namespace wavetank::fakekube
