// HorizontalPodAutoscalers: keep a workload's replicas between their bounds (kubernetes: pkg/controller/podautoscaler).
//
// Nothing here measures pods, as in a cluster without a metrics server: metrics decide nothing, and condition
// ScalingActive says so. A workload that was scaled to 0 is left alone.
#pragma once

#include <set>
#include <string_view>

#include "fakes/kube/control/controller.h"
#include "fakes/kube/control/pending.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

class HorizontalAutoscaler final : public Controller {
 public:
  explicit HorizontalAutoscaler(ApiServer& api);

  bool Settled() const override { return pending_.idle(); }

 private:
  ObjectRef TargetOf(const kube::Object& autoscaler) const;
  // Looks at it now, for its status, and in one period, should it be out of bounds.
  void Sync(const NamespacedName& name);
  void Rescale(const NamespacedName& name);
  void WriteStatus(const kube::Object& autoscaler, const ObjectRef& target);

  ApiServer& api_;
  PendingWork pending_;
  NameQueue queue_;
  std::set<NamespacedName> due_;  // their period runs
  Subscriptions subscriptions_;
};

}  // namespace wavetank::fakekube
