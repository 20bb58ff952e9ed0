// What a person at a terminal sees of a run while it lasts, and how it ends when they press Ctrl-C.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "cli/verb.h"
#include "scenarios/runner/runner.h"

namespace wavetank::cli {

// "scaled to 3 (2 of 9)  19.4s virtual, 41000 events/s, 8 proxies connected, about 3 s left" on standard error; nothing
// where that is no terminal.
class RunProgress {
 public:
  // Follows the run that `options` are for; must outlive it.
  void Attach(scenario::RunOptions* options, const std::string& scenario);

 private:
  void Show(const scenario::Tick& tick);

  Progress line_;
  std::string scenario_;
  int64_t begun_ms_ = 0, looked_ms_ = 0, looked_events_ = 0;
  int64_t events_per_second_ = 0;
  int proxies_ = 0;
  size_t step_ = 0;
  int64_t steps_begun_ms_ = 0;  // when the first step began
};

// The first SIGINT or SIGTERM asks a run to end and tell what it knows; the second ends the program. One at a time.
class EndRequest {
 public:
  EndRequest();
  ~EndRequest();  // the signals do again what they did
  const std::atomic<bool>* flag() const;
};
inline constexpr int kInterrupted = 130;  // as shells have it of SIGINT

}  // namespace wavetank::cli
