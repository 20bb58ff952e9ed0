#include "core/base/text/go_duration.h"

#include <string_view>

#include "fmt/format.h"

namespace wavetank {
namespace {

// `value` units of `unit` nanoseconds, without zeros at the end.
std::string InUnits(int64_t value, int64_t unit, int digits, std::string_view name) {
  std::string text = fmt::format("{}", value / unit);
  if (value % unit != 0) {
    text += fmt::format(".{:0{}}", value % unit, digits);
    text.erase(text.find_last_not_of('0') + 1);
  }
  return text + std::string(name);
}

}  // namespace

std::string GoDurationText(int64_t nanoseconds) {
  if (nanoseconds < 0) return "-" + GoDurationText(-nanoseconds);
  constexpr int64_t kMicro = 1'000, kMilli = 1'000'000, kSecond = 1'000'000'000;
  if (nanoseconds == 0) return "0s";
  if (nanoseconds < kMicro) return fmt::format("{}ns", nanoseconds);
  if (nanoseconds < kMilli) return InUnits(nanoseconds, kMicro, 3, "µs");
  if (nanoseconds < kSecond) return InUnits(nanoseconds, kMilli, 6, "ms");
  const int64_t minutes = nanoseconds / kSecond / 60;
  std::string head;
  if (minutes >= 60) head = fmt::format("{}h", minutes / 60);
  if (minutes > 0) head += fmt::format("{}m", minutes % 60);
  return head + InUnits(nanoseconds % (60 * kSecond), kSecond, 9, "s");
}

}  // namespace wavetank
