// Which pods count as available: ready for as long as their workload's minReadySeconds asks (kubernetes:
// pkg/api/v1/pod, IsPodAvailable).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/time.h"
#include "fakes/kube/control/pending.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

// A workload's spec.minReadySeconds; 0 if it has none, or one that is no number of seconds.
Duration MinReady(const kube::Object& workload);

// Since when each pod of a controller is ready.
class Availability {
 public:
  explicit Availability(Host& host) : host_(host) {}

  // To be called with every change of a pod. O(log pods).
  void Follow(const Change& pod);

  // Ready, and for at least `min_ready`. A pod that is going may still be available.
  bool Available(const kube::Object& pod, Duration min_ready) const;

  // How long until the next of `pods` that is ready becomes available, so that its controller looks again then; zero if
  // it need not.
  Duration UntilNext(const std::vector<ObjectRef>& pods, Duration min_ready) const;

 private:
  Host& host_;
  std::map<std::string, Time> ready_since_;  // by uid
};

}  // namespace wavetank::fakekube
