// The pods of a recorded cluster: what runs in them starts when the record first shows them running with an address,
// and ends when it shows them ended, or no longer shows them.
//
// Their status is what was recorded; whether they become ready here changes nothing in it.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "fakes/kube/control/pod_hooks.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

class ObservedPods {
 public:
  // Both must outlive it; `runtime` may be null.
  ObservedPods(ApiServer& api, PodRuntime* runtime);

  // Every pod that runs has been ready once.
  bool Settled() const { return starting_.empty(); }

  // The record goes on as a live cluster: nothing is followed any more, and what runs tells `ready` of its readiness.
  using Ready = std::function<void(const NamespacedName& pod, const std::string& uid, bool ready)>;
  void HandOver(Ready ready);

 private:
  // What a pod's life is told by: a new address is another life.
  struct Life {
    std::string uid, ip;
    bool terminating = false;
    friend bool operator==(const Life&, const Life&) = default;
  };

  void Follow(const ObjectRef& pod);
  void End(const ObjectRef& pod);

  PodRuntime* runtime_;
  std::map<NamespacedName, Life> running_;
  std::set<NamespacedName> starting_;
  Ready ready_;
  Subscriptions subscriptions_;
};

}  // namespace wavetank::fakekube
