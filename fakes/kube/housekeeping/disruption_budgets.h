// PodDisruptionBudgets: how many of the pods that they select may go now (kubernetes: pkg/controller/disruption).
#pragma once

#include <string>

#include "fakes/kube/control/controller.h"
#include "fakes/kube/control/pending.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

class DisruptionBudgetController final : public Controller {
 public:
  explicit DisruptionBudgetController(ApiServer& api);

  bool Settled() const override { return pending_.idle(); }

 private:
  void QueueBudgetsOf(const kube::Object& pod);
  void Sync(const NamespacedName& budget);
  // Of the workloads behind the pods together: what percentages count from.
  int64_t Expected(const std::vector<ObjectRef>& pods) const;

  ApiServer& api_;
  PendingWork pending_;
  NameQueue queue_;
  Subscriptions subscriptions_;
};

}  // namespace wavetank::fakekube
