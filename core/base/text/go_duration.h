// Durations in Go's words. They are read by ParseGoDuration (core/base/duration.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace wavetank {

// "100.25ms", "1.5s", "250µs", "1h1m0s": as Go prints a time.Duration.
std::string GoDurationText(int64_t nanoseconds);
// What time.ParseDuration says of a text that is none: "time: unknown unit \"d\" in duration \"1d\"".
std::string GoDurationComplaint(std::string_view text);

}  // namespace wavetank
