// "100.25ms", "1.5s", "250µs", "1h1m0s": as Go prints a time.Duration.
#pragma once

#include <cstdint>
#include <string>

namespace wavetank {

std::string GoDurationText(int64_t nanoseconds);

}  // namespace wavetank
