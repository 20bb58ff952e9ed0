// Makes the pods that controllers want: each passes the mutating webhook first, and is tried again if that refuses it
// or cannot be reached.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "fakes/kube/control/pending.h"
#include "fakes/kube/control/pod_hooks.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

// Who speaks for a kind's controller in its Events: "replicaset-controller".
std::string OwnComponent(std::string_view kind);
// Tells that the owner's controller has deleted one of its pods.
void TellDeleted(ApiServer& api, const kube::Object& owner, const std::string& pod);

class PodMaker {
 public:
  // All must outlive it; `admission` may be null.
  PodMaker(ApiServer& api, PodAdmission* admission, PendingWork& pending)
      : api_(api), admission_(admission), pending_(pending) {}

  struct Order {
    nlohmann::json pod;
    std::string owner_kind;
    NamespacedName owner;
    // Whether the owner, as it is by then, still wants this pod; asked before each new attempt.
    std::function<bool(const kube::Object& owner)> wanted;
    // Once: the pod is there, or will not be made.
    std::function<void(bool made)> done;
  };
  void Make(Order order) { Attempt(std::move(order), 0); }

 private:
  void Attempt(Order order, int attempt);
  void Store(absl::StatusOr<nlohmann::json> admitted, Order order, int attempt);
  // The owner that the pod names, unless it has gone or is going.
  ObjectRef OwnerOf(const Order& order) const;

  ApiServer& api_;
  PodAdmission* admission_;
  PendingWork& pending_;
};

}  // namespace wavetank::fakekube
