// Counts what a controller still has to do, so that a cluster can say whether it is settled. Work is scheduled through
// it, never behind its back.
#pragma once

#include <memory>
#include <utility>

#include "core/base/host.h"

namespace wavetank::fakekube {

class PendingWork {
 public:
  explicit PendingWork(Host& host) : host_(host), count_(std::make_shared<int64_t>(0)) {}
  // Callbacks do not run after its end.
  ~PendingWork() { *count_ = -1; }

  bool idle() const { return *count_ == 0; }

  template <class Fn>
  void After(Duration delay, Fn fn) {
    ++*count_;
    host_.RunAfter(delay, [count = count_, fn = std::move(fn)]() mutable {
      if (*count < 0) return;
      --*count;
      fn();
    });
  }

 private:
  Host& host_;
  std::shared_ptr<int64_t> count_;
};

}  // namespace wavetank::fakekube
