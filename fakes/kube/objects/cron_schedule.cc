#include "fakes/kube/objects/cron_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/time/civil_time.h"
#include "core/base/duration.h"

namespace wavetank::fakekube {
namespace {

constexpr int64_t kMinute = 60, kDay = 24 * 3600;

struct Field {
  int least, most;
  std::vector<std::string_view> names;  // of `least` and what follows
};

absl::Status Bad(std::string text) { return absl::InvalidArgumentError(std::move(text)); }

absl::StatusOr<int> Value(absl::string_view text, const Field& field) {
  const std::string lower = absl::AsciiStrToLower(text);
  for (size_t i = 0; i < field.names.size(); ++i) {
    if (lower == field.names[i]) return field.least + static_cast<int>(i);
  }
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    const std::string shown(text);
    return Bad(fmt::format("failed to parse int from {0}: strconv.Atoi: parsing \"{0}\": invalid syntax", shown));
  }
  return value;
}

// One of a list's members.
absl::Status AddRange(absl::string_view text, const Field& field, std::bitset<64>* out, bool* star) {
  const std::vector<absl::string_view> range_step = absl::StrSplit(text, '/');
  const std::vector<absl::string_view> ends = absl::StrSplit(range_step[0], '-');
  const std::string shown(text);
  int first = field.least, last = field.most, step = 1;
  const bool any = ends[0] == "*" || ends[0] == "?";
  if (!any) {
    const absl::StatusOr<int> from = Value(ends[0], field);
    if (!from.ok()) return from.status();
    first = last = *from;
    if (ends.size() == 2) {
      const absl::StatusOr<int> to = Value(ends[1], field);
      if (!to.ok()) return to.status();
      last = *to;
    } else if (ends.size() > 2) {
      return Bad(fmt::format("too many hyphens: {}", shown));
    } else if (range_step.size() == 2) {
      last = field.most;  // "N/step" means "N-most/step"
    }
  }
  if (range_step.size() > 2) return Bad(fmt::format("too many slashes: {}", shown));
  if (range_step.size() == 2) {
    const absl::StatusOr<int> by = Value(range_step[1], {0, 0, {}});
    if (!by.ok()) return by.status();
    step = *by;
  }
  if (first < field.least)
    return Bad(fmt::format("beginning of range ({}) below minimum ({}): {}", first, field.least, shown));
  if (last > field.most) return Bad(fmt::format("end of range ({}) above maximum ({}): {}", last, field.most, shown));
  if (first > last) return Bad(fmt::format("beginning of range ({}) beyond end of range ({}): {}", first, last, shown));
  if (step <= 0) return Bad(fmt::format("step of range should be a positive number: {}", shown));
  *star = *star || (any && step == 1);
  for (int64_t i = first; i <= last; i += step) out->set(static_cast<size_t>(i));
  return absl::OkStatus();
}

absl::Status Read(absl::string_view text, const Field& field, std::bitset<64>* out, bool* star) {
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    if (absl::Status status = AddRange(part, field, out, star); !status.ok()) return status;
  }
  return absl::OkStatus();
}

std::string_view Descriptor(std::string_view text) {
  if (text == "@yearly" || text == "@annually") return "0 0 1 1 *";
  if (text == "@monthly") return "0 0 1 * *";
  if (text == "@weekly") return "0 0 * * 0";
  if (text == "@daily" || text == "@midnight") return "0 0 * * *";
  if (text == "@hourly") return "0 * * * *";
  return {};
}

}  // namespace

absl::StatusOr<CronSchedule> CronSchedule::Parse(std::string_view text) {
  CronSchedule out;
  if (text.empty()) return Bad("empty spec string");
  if (text.starts_with("@every ")) {
    const std::optional<Duration> every = ParseGoDuration(text.substr(7));
    // Of whole seconds, at least one (robfig: constantdelay.go, Every).
    if (every && *every > Duration::zero()) out.every_ = std::max<int64_t>(*every / 1s, 1);
    if (out.every_ == 0) return Bad(fmt::format("failed to parse duration {}: time: invalid duration", text));
    return out;
  }
  if (text.starts_with("@")) {
    const std::string_view meant = Descriptor(text);
    if (meant.empty()) return Bad(fmt::format("unrecognized descriptor: {}", text));
    text = meant;
  }
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(text.data(), text.size()), absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (fields.size() != 5) {
    std::string shown;
    for (absl::string_view field : fields) shown += fmt::format("{}{}", shown.empty() ? "" : " ", std::string(field));
    return Bad(fmt::format("expected exactly 5 fields, found {}: [{}]", fields.size(), shown));
  }
  const Field kFields[] = {
      {0, 59, {}},
      {0, 23, {}},
      {1, 31, {}},
      {1, 12, {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
      {0, 6, {"sun", "mon", "tue", "wed", "thu", "fri", "sat"}}};
  bool unused = false;
  std::bitset<64>* const sets[] = {&out.minutes_, &out.hours_, &out.days_, &out.months_, &out.weekdays_};
  bool* const stars[] = {&unused, &unused, &out.any_day_, &unused, &out.any_weekday_};
  for (size_t i = 0; i < 5; ++i) {
    if (absl::Status status = Read(fields[i], kFields[i], sets[i], stars[i]); !status.ok()) return status;
  }
  return out;
}

bool CronSchedule::DayStrikes(int64_t day_of_epoch) const {
  const absl::CivilDay day = absl::CivilDay(1970, 1, 1) + day_of_epoch;
  if (!months_.test(static_cast<size_t>(day.month()))) return false;
  // 1970-01-01 was a Thursday.
  const bool by_day = days_.test(static_cast<size_t>(day.day())),
             by_weekday = weekdays_.test(static_cast<size_t>((day_of_epoch + 4) % 7));
  // Both named: either is enough, as in every cron.
  return any_day_ || any_weekday_ ? by_day && by_weekday : by_day || by_weekday;
}

bool CronSchedule::Strikes(int64_t minute_of_epoch) const {
  return minutes_.test(static_cast<size_t>(minute_of_epoch % 60)) &&
         hours_.test(static_cast<size_t>(minute_of_epoch / 60 % 24));
}

std::optional<int64_t> CronSchedule::Last(int64_t after, int64_t until) const {
  const std::optional<int64_t> first = Next(after);
  if (!first || *first > until) return std::nullopt;
  if (every_ > 0) return *first + (until - *first) / every_ * every_;
  // Windows that end at `until` grow until one holds a strike, so that few are looked at.
  for (int64_t window = kMinute;; window *= 2) {
    std::optional<int64_t> strike = Next(std::max(until - window, after));
    if (!strike || *strike > until) continue;
    int64_t last = *strike;
    for (; strike && *strike <= until; strike = Next(*strike)) last = *strike;
    return last;
  }
}

std::optional<int64_t> CronSchedule::Next(int64_t unix_seconds) const {
  if (every_ > 0) return unix_seconds + every_;
  constexpr int64_t kDays = 5 * 366;
  int64_t minute = unix_seconds / kMinute + 1;
  const int64_t last_day = unix_seconds / kDay + kDays;
  for (int64_t day = minute * kMinute / kDay; day <= last_day; ++day) {
    if (DayStrikes(day)) {
      for (; minute * kMinute < (day + 1) * kDay; ++minute) {
        if (Strikes(minute)) return minute * kMinute;
      }
    }
    minute = (day + 1) * kDay / kMinute;
  }
  return std::nullopt;
}

}  // namespace wavetank::fakekube
