#include "core/base/text/go_duration.h"

#include <algorithm>
#include <iterator>

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

// Go: time/format.go, quote.
std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || byte < ' ') {
      out += fmt::format("\\x{:02x}", byte);
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
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

std::string GoDurationComplaint(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789", kInNumber = "0123456789.";
  constexpr std::string_view kGoUnits[] = {"ns", "us", "µs", "μs", "ms", "s", "m", "h"};
  std::string_view rest = text;
  if (rest.starts_with('-') || rest.starts_with('+')) rest.remove_prefix(1);
  while (!rest.empty()) {
    const size_t number = std::min(rest.find_first_not_of(kInNumber), rest.size());
    if (rest.substr(0, number).find_first_of(kDigits) == rest.npos) break;
    rest.remove_prefix(number);
    const std::string_view unit = rest.substr(0, rest.find_first_of(kInNumber));
    if (unit.empty()) return fmt::format("time: missing unit in duration {}", Quoted(text));
    if (std::find(std::begin(kGoUnits), std::end(kGoUnits), unit) == std::end(kGoUnits))
      return fmt::format("time: unknown unit {} in duration {}", Quoted(unit), Quoted(text));
    rest.remove_prefix(unit.size());
  }
  return fmt::format("time: invalid duration {}", Quoted(text));
}

}  // namespace wavetank
