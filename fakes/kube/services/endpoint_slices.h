// EndpointSlices and Endpoints of Services with a selector, computed from Pods; slices of Endpoints written by hand.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "core/kube/label_selector.h"
#include "fakes/kube/control/cluster_options.h"
#include "fakes/kube/control/pending.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

class EndpointSliceController {
 public:
  EndpointSliceController(ApiServer& api, const ClusterOptions& options);
  bool Settled() const { return pending_.idle(); }

 private:
  struct Selected {
    kube::LabelSelector selector;
    bool queued = false;
    std::set<std::string> pods;  // that it selects, whatever their state
  };

  void OnService(const Change& change);
  void OnPod(const Change& change);
  void OnSlice(const Change& change);
  void Forget(const NamespacedName& service);  // which pods it selects
  void Queue(const NamespacedName& service);
  void Sync(const NamespacedName& service);
  // Endpoints without a selector behind them become slices as they stand.
  void QueueMirror(const NamespacedName& service);
  void Mirror(const NamespacedName& service);
  // Those of the service's slices that `manager` made and that are not wanted any more.
  void DeleteOthers(const NamespacedName& service, const std::map<std::string, bool>& wanted, std::string_view manager);

  ApiServer& api_;
  const ClusterOptions& options_;
  PendingWork pending_;
  std::map<NamespacedName, Selected> services_;  // with a selector only, so that a pod is matched within its namespace
  std::map<NamespacedName, std::set<NamespacedName>> selected_by_;  // services by pod: `pods`, turned round
  std::set<NamespacedName> mirrors_;                                // waiting
  std::map<NamespacedName, std::set<std::string>> slices_;  // by the service that their label names, whoever made them
  Subscriptions subscriptions_;
};

}  // namespace wavetank::fakekube
