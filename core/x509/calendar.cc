#include "core/x509/calendar.h"

#include <cstdio>
#include <string>

#include "core/x509/x509.h"

namespace wavetank::x509 {
namespace {
constexpr int64_t kDay = 86400;

constexpr std::chrono::year_month_day YearMonthDay(int64_t days) {
  return std::chrono::year_month_day(std::chrono::sys_days(std::chrono::days(days)));
}
}  // namespace

CivilTime ToCivil(int64_t unix_seconds) {
  int64_t days = unix_seconds / kDay, rest = unix_seconds % kDay;
  if (rest < 0) {
    --days;
    rest += kDay;
  }
  const auto ymd = YearMonthDay(days);
  return {static_cast<int>(ymd.year()),
          static_cast<int>(static_cast<unsigned>(ymd.month())),
          static_cast<int>(static_cast<unsigned>(ymd.day())),
          static_cast<int>(rest / 3600),
          static_cast<int>(rest / 60 % 60),
          static_cast<int>(rest % 60)};
}

int64_t FromCivil(const CivilTime& t) {
  const std::chrono::sys_days days{std::chrono::year(t.year) / t.month / t.day};
  return int64_t{days.time_since_epoch().count()} * kDay + t.hour * 3600 + t.minute * 60 + t.second;
}

int64_t UnixSeconds(Time time) {
  return kWorldEpochUnixSeconds + std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
}

Time FromUnixSeconds(int64_t unix_seconds) {
  constexpr int64_t kMax = Time::max().time_since_epoch().count() / 1'000'000'000;
  const int64_t since = unix_seconds - kWorldEpochUnixSeconds;
  if (since >= kMax) return Time::max();
  if (since <= -kMax) return Time::min();
  return Time(std::chrono::seconds(since));
}

std::string Rfc3339(Time time) {
  const CivilTime t = ToCivil(UnixSeconds(time));
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02dZ", t.year, t.month, t.day, t.hour, t.minute,
                t.second);
  return text;
}

}  // namespace wavetank::x509
