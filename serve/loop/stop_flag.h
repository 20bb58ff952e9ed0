// Ends a thread that mostly waits.
#pragma once

#include <condition_variable>
#include <mutex>

#include "core/base/time.h"

namespace wavetank::serve {

class StopFlag {
 public:
  void Raise() {
    const std::lock_guard<std::mutex> lock(mutex_);
    raised_ = true;
    changed_.notify_all();
  }
  bool raised() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return raised_;
  }
  // Waits in real time; false: the flag was raised, at once or meanwhile.
  bool Wait(Duration duration) {
    std::unique_lock<std::mutex> lock(mutex_);
    return !changed_.wait_for(lock, duration, [this] { return raised_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool raised_ = false;
};

}  // namespace wavetank::serve
