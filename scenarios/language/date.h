// Dates at which a world can begin.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/base/time.h"

namespace wavetank::scenario {

// The worlds' own authorities hold for ten years from 2023-09-01.
inline constexpr Duration kLastStart = 24h * 3600;

// "2026-11-23" or "2026-11-23T10:00:00Z". InvalidArgument, which begins with `what`: it is neither, or lies where no
// world can be: before 2023-09-01, whose certificates begin then, or so late that they have ended.
absl::StatusOr<Time> ParseDate(std::string_view what, const std::string& text);

}  // namespace wavetank::scenario
