// A token bucket of size one, with golang.org/x/time/rate's way of waiting: a client that would have to wait longer
// than it is ready to takes no token.
#pragma once

#include <algorithm>
#include <optional>

#include "core/base/time.h"

namespace wavetank::pilot {

class RateLimiter {
 public:
  explicit RateLimiter(int64_t per_second) : interval_(per_second > 0 ? Duration(1s) / per_second : Duration(0)) {}

  // How long to wait for a token, or nullopt if that is more than `patience`. Without a limit always 0.
  std::optional<Duration> Reserve(Time now, Duration patience) {
    if (interval_ == Duration(0)) return Duration(0);
    const Time at = std::max(now, next_);
    if (at - now > patience) return std::nullopt;
    next_ = at + interval_;
    return at - now;
  }

 private:
  Duration interval_;
  Time next_{};
};

}  // namespace wavetank::pilot
