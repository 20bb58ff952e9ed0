// Durations as text. Go's form ("1m30s", "38h1m", "250us", ".5s", "-2s"), and one number with a unit that may stand
// apart
// ("10 min"), as people write it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/time.h"

namespace wavetank {

// Nullopt: it is no duration, is negative, or does not fit 64 bits of nanoseconds. Digits below a nanosecond are cut
// off.
std::optional<Duration> ParseDuration(std::string_view text);
// The same with a sign allowed.
std::optional<Duration> ParseSignedDuration(std::string_view text);

// As time.ParseDuration of Go: signed, "0" without a unit, no blanks, no "min".
std::optional<Duration> ParseGoDuration(std::string_view text);

// For people: three significant digits below a minute ("12.3 ms"), from there on Go's form to the second ("1m30s",
// "38h1m").
std::string FormatDuration(Duration d);

}  // namespace wavetank
