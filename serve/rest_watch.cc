#include "serve/rest_watch.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "fmt/format.h"

namespace wavetank::serve {
namespace {

// Leases are renewed and timers run also where nothing is to be done.
constexpr int kIdleShare = 4;  // a quarter

}  // namespace

Duration ProcessorTime(pid_t pid) {
  // schedstat: nanoseconds on a processor, nanoseconds in a run queue (Linux: Documentation/scheduler/sched-stats).
  Duration out{};
  std::error_code error;
  const std::filesystem::directory_iterator threads(fmt::format("/proc/{}/task", pid), error), end;
  for (auto it = threads; !error && it != end; it.increment(error)) {
    std::ifstream in(it->path() / "schedstat");
    int64_t on = 0, waiting = 0;
    if (in >> on >> waiting) out += Duration(on + waiting);
  }
  return out;
}

bool RestWatch::Look(RealTime now, Duration worked) {
  samples_.push_back({now, worked});
  while (samples_.size() > 1 && samples_[1].at + quiet_ <= now) samples_.pop_front();
  if (samples_.front().at + quiet_ > now || stirred_ + quiet_ > now) return false;
  return (worked - samples_.front().worked) * kIdleShare <= now - samples_.front().at;
}

}  // namespace wavetank::serve
