// Virtual time. Every clock in Wavetank counts integer nanoseconds; no type here can read a wall clock.
#pragma once

#include <chrono>
#include <cstdint>

namespace wavetank {

using Duration = std::chrono::nanoseconds;

// The clock of a world. It has no now(): the present is asked of the Host, which is the simulator's kernel or, in
// `serve`, a real-time loop.
struct WorldClock {
  using rep = int64_t;
  using period = std::nano;
  using duration = Duration;
  using time_point = std::chrono::time_point<WorldClock, Duration>;
  static constexpr bool is_steady = true;
};

// Nanoseconds since the world began. Certificates and creationTimestamps use kWorldEpochUnixSeconds + Time.
using Time = WorldClock::time_point;

// 2023-09-01T00:00:00Z: the calendar instant of Time{0}.
inline constexpr int64_t kWorldEpochUnixSeconds = 1693526400;

using std::chrono_literals::operator""ns;
using std::chrono_literals::operator""us;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""h;

constexpr double ToMillis(Duration d) { return static_cast<double>(d.count()) / 1e6; }

}  // namespace wavetank
