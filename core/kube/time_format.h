// Dates as Kubernetes writes them (RFC 3339), without the C library: no time zone, no locale.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wavetank::kube {

// Unix seconds; fractions are cut off, offsets applied. nullopt if it is no date between years 1 and 9999.
std::optional<int64_t> ParseRfc3339(std::string_view text);
std::string FormatRfc3339(int64_t unix_seconds);  // "2023-09-01T00:00:00Z"

}  // namespace wavetank::kube
