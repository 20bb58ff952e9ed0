#include "scenarios/language/date.h"

#include <optional>

#include "core/kube/time_format.h"
#include "fmt/format.h"

namespace wavetank::scenario {

absl::StatusOr<Time> ParseDate(std::string_view what, const std::string& text) {
  const std::string full = text.size() == 10 ? text + "T00:00:00Z" : text;
  const std::optional<int64_t> seconds = kube::ParseRfc3339(full);
  if (!seconds) {
    return absl::InvalidArgumentError(
        fmt::format("{} '{}' is no date; write 2026-11-23 or 2026-11-23T10:00:00Z", what, text));
  }
  // In whole seconds: nanoseconds do not hold each year of four digits.
  constexpr int64_t kLast = kLastStart / std::chrono::seconds(1);
  const int64_t since = *seconds - kWorldEpochUnixSeconds;
  if (since < 0 || since > kLast) {
    return absl::InvalidArgumentError(fmt::format("{} '{}': a world can begin from 2023-09-01 to {}", what, text,
                                                  kube::FormatRfc3339(kWorldEpochUnixSeconds + kLast).substr(0, 10)));
  }
  return Time{} + std::chrono::seconds(since);
}

}  // namespace wavetank::scenario
