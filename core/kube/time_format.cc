#include "core/kube/time_format.h"

#include <fmt/format.h>

namespace wavetank::kube {
namespace {

// Proleptic Gregorian calendar: days since 1970-01-01, by counting years from March.
constexpr int64_t DaysFromCivil(int64_t year, int64_t month, int64_t day) {
  year -= month <= 2 ? 1 : 0;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const int64_t year_of_era = year - era * 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}
constexpr int64_t DaysInMonth(int64_t year, int64_t month) {
  return month == 12 ? 31 : DaysFromCivil(year, month + 1, 1) - DaysFromCivil(year, month, 1);
}
static_assert(DaysFromCivil(1970, 1, 1) == 0);
static_assert(DaysFromCivil(2000, 3, 1) == 11017);

struct Cursor {
  std::string_view text;
  bool ok = true;
  int64_t Number(size_t digits) {
    int64_t value = 0;
    for (size_t i = 0; i < digits; ++i) {
      if (i >= text.size() || text[i] < '0' || text[i] > '9') {
        ok = false;
        return 0;
      }
      value = value * 10 + (text[i] - '0');
    }
    text.remove_prefix(digits);
    return value;
  }
  void Skip(char c) {
    if (text.empty() || text.front() != c) {
      ok = false;
    } else {
      text.remove_prefix(1);
    }
  }
};

}  // namespace

std::optional<int64_t> ParseRfc3339(std::string_view text) {
  Cursor c{text};
  const int64_t year = c.Number(4);
  c.Skip('-');
  const int64_t month = c.Number(2);
  c.Skip('-');
  const int64_t day = c.Number(2);
  if (!c.text.empty() && (c.text.front() == 't' || c.text.front() == ' ')) {
    c.text.remove_prefix(1);
  } else {
    c.Skip('T');
  }
  const int64_t hour = c.Number(2);
  c.Skip(':');
  const int64_t minute = c.Number(2);
  c.Skip(':');
  const int64_t second = c.Number(2);
  if (c.ok && !c.text.empty() && c.text.front() == '.') {
    c.text.remove_prefix(1);
    c.Number(1);
    while (!c.text.empty() && c.text.front() >= '0' && c.text.front() <= '9') c.text.remove_prefix(1);
  }
  int64_t offset = 0;
  if (c.ok && !c.text.empty() && (c.text.front() == '+' || c.text.front() == '-')) {
    const int64_t sign = c.text.front() == '-' ? -1 : 1;
    c.text.remove_prefix(1);
    offset = c.Number(2) * 3600;
    c.Skip(':');
    offset = sign * (offset + c.Number(2) * 60);
  } else if (c.ok && c.text == "z") {
    c.text.remove_prefix(1);
  } else {
    c.Skip('Z');
  }
  if (!c.ok || !c.text.empty() || year < 1 || month < 1 || month > 12 || day < 1 || day > DaysInMonth(year, month) ||
      hour > 23 || minute > 59 || second > 60) {
    return std::nullopt;
  }
  return DaysFromCivil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset;
}

std::string FormatRfc3339(int64_t unix_seconds) {
  int64_t days = unix_seconds / 86400, rest = unix_seconds % 86400;
  if (rest < 0) rest += 86400, --days;
  const int64_t z = days + 719468;
  const int64_t era = (z >= 0 ? z : z - 146096) / 146097;
  const int64_t day_of_era = z - era * 146097;
  const int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t shifted_month = (5 * day_of_year + 2) / 153;
  const int64_t day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
  const int64_t month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
  const int64_t year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", year, month, day, rest / 3600, rest / 60 % 60, rest % 60);
}

}  // namespace wavetank::kube
