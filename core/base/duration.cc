#include "core/base/duration.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <utility>

namespace wavetank {
namespace {

struct Unit {
  std::string_view name;
  int64_t ns;
};
// Longer names before those that they begin with.
constexpr Unit kUnits[] = {
    {"ns", 1},         {"us", 1'000},           {"µs", 1'000},  // U+00B5
    {"μs", 1'000},                                              // U+03BC
    {"ms", 1'000'000}, {"min", 60'000'000'000}, {"s", 1'000'000'000}, {"m", 60'000'000'000}, {"h", 3'600'000'000'000}};

bool Digit(std::string_view text) { return !text.empty() && text.front() >= '0' && text.front() <= '9'; }

enum class Form : uint8_t {
  kGo,
  kPeople,  // also "min", and blanks before the first unit
};

// Takes one number with its unit off the front of `text`.
std::optional<int64_t> TakePart(std::string_view* text, Form form, bool first) {
  constexpr uint64_t kMost = INT64_MAX;
  uint64_t whole = 0;
  std::string_view fraction;
  bool digits = false;
  for (; Digit(*text); text->remove_prefix(1), digits = true) {
    if (whole > kMost / 10) return std::nullopt;
    whole = whole * 10 + static_cast<uint64_t>(text->front() - '0');
  }
  if (!text->empty() && text->front() == '.') {
    text->remove_prefix(1);
    const char* const begin = text->data();
    for (; Digit(*text); text->remove_prefix(1), digits = true) {
    }
    fraction = {begin, static_cast<size_t>(text->data() - begin)};
  }
  if (!digits) return std::nullopt;
  while (form == Form::kPeople && first && !text->empty() && text->front() == ' ') text->remove_prefix(1);
  for (const Unit& unit : kUnits) {
    if (!text->starts_with(unit.name) || (form == Form::kGo && unit.name == "min")) continue;
    text->remove_prefix(unit.name.size());
    const auto scale = static_cast<uint64_t>(unit.ns);
    if (whole > kMost / scale) return std::nullopt;
    uint64_t ns = whole * scale;
    for (uint64_t weight = scale / 10; !fraction.empty() && weight > 0; fraction.remove_prefix(1), weight /= 10) {
      ns += static_cast<uint64_t>(fraction.front() - '0') * weight;
    }
    return ns > kMost ? std::nullopt : std::optional(static_cast<int64_t>(ns));
  }
  return std::nullopt;
}

std::optional<Duration> Parse(std::string_view text, Form form) {
  int64_t sum = 0;
  bool first = true;
  do {
    const std::optional<int64_t> part = TakePart(&text, form, first);
    if (!part || sum > INT64_MAX - *part) return std::nullopt;
    sum += *part;
    first = false;
  } while (!text.empty());
  return Duration(sum);
}

bool TakeSign(std::string_view* text) {
  const bool negative = text->starts_with('-');
  if (negative || text->starts_with('+')) text->remove_prefix(1);
  return negative;
}

}  // namespace

std::optional<Duration> ParseDuration(std::string_view text) { return Parse(text, Form::kPeople); }

std::optional<Duration> ParseSignedDuration(std::string_view text) {
  const bool negative = TakeSign(&text);
  const std::optional<Duration> out = ParseDuration(text);
  return negative && out ? std::optional(-*out) : out;
}

std::optional<Duration> ParseGoDuration(std::string_view text) {
  const bool negative = TakeSign(&text);
  const std::optional<Duration> out = text == "0" ? Duration::zero() : Parse(text, Form::kGo);
  return negative && out ? std::optional(-*out) : out;
}

std::string FormatDuration(Duration d) {
  const int64_t ns = std::abs(d.count());
  if (ns == 0) return "0 ms";
  const char* const sign = d.count() < 0 ? "-" : "";
  if (ns >= 59'950'000'000) {  // what rounds to a minute is one
    const int64_t seconds = ns / 1'000'000'000 + (ns % 1'000'000'000 >= 500'000'000 ? 1 : 0);
    std::string out = sign;
    if (seconds >= 3600) out += fmt::format("{}h", seconds / 3600);
    if (seconds % 3600 >= 60) out += fmt::format("{}m", seconds % 3600 / 60);
    if (seconds % 60 != 0) out += fmt::format("{}s", seconds % 60);
    return out;
  }
  for (const auto& [size, name] :
       {std::pair<int64_t, const char*>{1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}}) {
    if (ns < size) continue;
    const int decimals = ns / size >= 100 ? 0 : ns / size >= 10 ? 1 : 2;
    const int64_t parts = decimals == 0 ? 1 : decimals == 1 ? 10 : 100;
    const int64_t rounded = (ns / (size / 1000) * parts + 500) / 1000;
    if (decimals == 0) return fmt::format("{}{} {}", sign, rounded, name);
    return fmt::format("{}{}.{:0{}} {}", sign, rounded / parts, rounded % parts, decimals, name);
  }
  return fmt::format("{}{} ns", sign, ns);
}

}  // namespace wavetank
