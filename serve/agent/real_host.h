// A Host on the real clock: one thread runs everything in the order in which it is due. There is no trace.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "core/base/host.h"

namespace wavetank::serve {

class RealHost final : public Host {
 public:
  // The calendar's time, so that real certificates are valid.
  Time Now() const override;
  TimerId RunAfter(Duration delay, Callback fn) override;
  bool Cancel(TimerId timer) override;
  void Spend(const Work& work, Callback done) override;
  CauseId cause() const override { return kNoCause; }
  void set_cause(CauseId cause) override;
  CauseId MergeCauses(CauseId a, CauseId b) override;
  void Emit(const TraceRecord& record) override;
  NameId Intern(std::string_view name) override;

  // From any thread: runs `fn` soon. False: the host has stopped, and `fn` is gone.
  bool Call(Callback fn);
  // Runs `fn` and waits until it has run. False as above. Not on the host's own thread.
  bool CallAndWait(Callback fn);

  // Runs what is due until Stop().
  void Run();
  // From any thread. What is still waiting never runs.
  void Stop();

 private:
  using Due = std::pair<int64_t, uint64_t>;  // of the steady clock, in nanoseconds; then the order
  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<Due, Callback> waiting_;
  std::map<uint64_t, Due> timers_;
  uint64_t next_ = 1;
  bool stopped_ = false;
};

}  // namespace wavetank::serve
