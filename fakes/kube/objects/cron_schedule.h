// When a CronJob's schedule strikes: five fields (minute, hour, day of the month, month, day of the week) with lists,
// ranges and steps, or @hourly and its like (github.com/robfig/cron, the standard parser that Kubernetes uses). In UTC.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"

namespace wavetank::fakekube {

class CronSchedule {
 public:
  // InvalidArgument in the parser's words.
  static absl::StatusOr<CronSchedule> Parse(std::string_view text);

  // The first strike after `unix_seconds`; nullopt if there is none within five years.
  std::optional<int64_t> Next(int64_t unix_seconds) const;
  // The last strike after `after` that is not after `until`; nullopt if there is none. Neither is before 1970. O(log of
  // the time between them, and strikes within twice the last gap).
  std::optional<int64_t> Last(int64_t after, int64_t until) const;

 private:
  bool Strikes(int64_t minute_of_epoch) const;
  bool DayStrikes(int64_t day_of_epoch) const;

  std::bitset<64> minutes_, hours_, days_, months_, weekdays_;
  bool any_day_ = false, any_weekday_ = false;  // a star: then the other field alone decides
  int64_t every_ = 0;                           // seconds, of "@every 5m"
};

}  // namespace wavetank::fakekube
