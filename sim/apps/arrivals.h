// Exponentially distributed draws without floating point, so that they are the same with every compiler and libm.
#pragma once

#include <cstdint>

#include "core/base/random.h"

namespace wavetank {

// A wait whose mean is `mean` (> 0, in any unit), rounded down: the time until the next of independent arrivals. Exact
// up to the 2^-32 of a uniform draw; 4.3 draws on average. By von Neumann's comparison of uniform draws: the length of
// a falling run is odd with probability e^-x for a run that begins at x.
inline int64_t ExponentialWait(RandomStream& random, int64_t mean) {
  for (int64_t whole = 0;; ++whole) {
    const uint64_t first = random.Next() >> 32;
    uint64_t last = first;
    bool odd = true;
    for (uint64_t next = random.Next() >> 32; next < last; next = random.Next() >> 32) {
      last = next;
      odd = !odd;
    }
    if (!odd) continue;
    const auto part = static_cast<int64_t>((static_cast<unsigned __int128>(first) * static_cast<uint64_t>(mean)) >> 32);
    return whole * mean + part;
  }
}

}  // namespace wavetank
