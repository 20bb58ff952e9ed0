#include "fakes/kube/control/availability.h"

#include "core/base/bounds.h"
#include "core/base/json_access.h"
#include "fakes/kube/control/pod_template.h"

namespace wavetank::fakekube {

Duration MinReady(const kube::Object& workload) {
  return bounds::Seconds(Number(At(workload.body, "spec"), "minReadySeconds"));
}

void Availability::Follow(const Change& pod) {
  if (pod.type == kube::WatchEventType::kDeleted || !PodReady(*pod.object)) {
    ready_since_.erase(pod.object->meta.uid);
  } else {
    ready_since_.emplace(pod.object->meta.uid, host_.Now());
  }
}

bool Availability::Available(const kube::Object& pod, Duration min_ready) const {
  if (min_ready == Duration::zero()) return PodReady(pod);
  const auto since = ready_since_.find(pod.meta.uid);
  return since != ready_since_.end() && since->second + min_ready <= host_.Now();
}

Duration Availability::UntilNext(const std::vector<ObjectRef>& pods, Duration min_ready) const {
  Duration next = Duration::zero();
  if (min_ready == Duration::zero()) return next;
  for (const ObjectRef& pod : pods) {
    const auto since = ready_since_.find(pod->meta.uid);
    if (since == ready_since_.end()) continue;
    const Duration left = since->second + min_ready - host_.Now();
    if (left > Duration::zero() && (next == Duration::zero() || left < next)) next = left;
  }
  return next;
}

}  // namespace wavetank::fakekube
