// client-go's limit of requests of one client: a bucket of so many, filled at a steady rate, for which requests wait in
// order (client-go: util/flowcontrol/throttle.go). istiod raises it for its own cluster alone (--kubernetesApiQPS 80,
// --kubernetesApiBurst 160); the clients of remote clusters have the defaults, 5 a second and 10 at once (istio#48076).
#pragma once

#include <algorithm>

#include "core/base/time.h"

namespace wavetank::sim {

class ClientBucket {
 public:
  explicit ClientBucket(int per_second = 5, int burst = 10) : interval_(Duration(1s) / per_second), burst_(burst) {}

  // How long the request that comes now has to wait.
  Duration Take(Time now) {
    full_at_ = std::max(full_at_, now) + interval_;
    return std::max<Duration>(Duration::zero(), full_at_ - burst_ * interval_ - now);
  }

 private:
  const Duration interval_;
  const int burst_;
  Time full_at_{};  // when the bucket would be full again
};

}  // namespace wavetank::sim
