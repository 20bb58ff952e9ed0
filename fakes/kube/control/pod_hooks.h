// What a cluster asks of its surroundings about pods: admission before they are stored, and what runs in them.
#pragma once

#include <functional>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/kube/object.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

// The mutating webhook that pods pass before they are created. The answer may come any time later.
class PodAdmission {
 public:
  virtual ~PodAdmission() = default;
  // `pod` as it would be stored; `namespace_labels` as they are now. An error refuses the pod (failurePolicy Fail).
  virtual void Review(nlohmann::json pod, const kube::Labels& namespace_labels,
                      absl::AnyInvocable<void(absl::StatusOr<nlohmann::json>)> done) = 0;
  // It passed, and the API server did not store it: a quota, a LimitRange, an account that is not there.
  virtual void NotStored(const nlohmann::json&, const absl::Status&) {}
};

// What runs in pods. The kubelet asks it; without one, pods become ready by themselves after the readiness delay.
class PodRuntime {
 public:
  virtual ~PodRuntime() = default;
  // The pod's containers run, it has an address. Call `ready` once it may serve, as often as that changes.
  virtual void Start(const ObjectRef& pod, std::function<void(bool)> ready) = 0;
  // A newer version of one that runs, for whoever holds the version that was started.
  virtual void Restated(const ObjectRef&) {}
  // The pod got a deletionTimestamp.
  virtual void Terminate(const ObjectRef& pod) = 0;
  // It is gone.
  virtual void Remove(const ObjectRef& pod) = 0;
};

}  // namespace wavetank::fakekube
