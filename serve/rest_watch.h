// When real istiods have nothing left to do, as far as that can be seen from outside: for a while none of them has sent
// anything, and none has needed a processor, or waited for one, for more than a small part of that while.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <deque>

#include "core/base/time.h"

namespace wavetank::serve {

// Time on processors and time spent waiting for one, of all threads since the process began (Linux: /proc). Zero of one
// that has ended.
Duration ProcessorTime(pid_t pid);

class RestWatch {
 public:
  using RealTime = std::chrono::steady_clock::time_point;

  // `quiet`: how long nothing may happen.
  explicit RestWatch(Duration quiet) : quiet_(quiet) {}

  // Something was sent, or is under way.
  void Stirred(RealTime now) { stirred_ = now; }
  // To be called often. `worked`: ProcessorTime() of all of them together. Whether they are at rest.
  bool Look(RealTime now, Duration worked);

 private:
  struct Sample {
    RealTime at;
    Duration worked;
  };
  const Duration quiet_;
  RealTime stirred_{};
  std::deque<Sample> samples_;  // of the last `quiet_`, and one before that
};

}  // namespace wavetank::serve
