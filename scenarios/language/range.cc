#include "scenarios/language/range.h"

#include <fmt/format.h>

#include <optional>
#include <tuple>

#include "core/base/duration.h"

namespace wavetank::scenario {

namespace {

absl::StatusOr<Range> ReadRange(std::string_view text) {
  Range range;
  range.text = std::string(text);
  if (text == "any") return range;
  const auto number = [&range](std::string_view s) -> std::optional<int64_t> {
    while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
    while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
    if (std::optional<Duration> duration = ParseDuration(s)) {
      range.unit = Range::Unit::kDuration;
      return duration->count();
    }
    const bool percent = !s.empty() && s.back() == '%';
    range.unit = percent ? Range::Unit::kShare : Range::Unit::kCount;
    if (percent) s.remove_suffix(1);
    int64_t whole = 0, fraction = 0, scale = percent ? 10'000 : 1;
    size_t i = 0;
    for (; i < s.size() && s[i] >= '0' && s[i] <= '9' && whole < (int64_t{1} << 40); ++i)
      whole = whole * 10 + (s[i] - '0');
    if (i == 0) return std::nullopt;
    if (percent && i < s.size() && s[i] == '.') {
      int64_t weight = 1000;
      for (++i; i < s.size() && s[i] >= '0' && s[i] <= '9'; ++i, weight /= 10) fraction += (s[i] - '0') * weight;
    }
    if (i != s.size()) return std::nullopt;
    return whole * scale + fraction;
  };
  const auto bad = [&] { return absl::InvalidArgumentError(fmt::format("'{}' is no number or range", text)); };
  const size_t dots = text.find("..");
  if (dots != std::string_view::npos) {
    // "40..60%": the unit of the end counts for both.
    std::string_view tail = text.substr(dots + 2);
    std::string low(text.substr(0, dots));
    if (low.find_first_not_of("0123456789. ") == std::string::npos) {
      const size_t unit = tail.find_first_not_of("0123456789. ");
      if (unit != std::string_view::npos) low += std::string(tail.substr(unit));
    }
    const std::optional<int64_t> a = number(low);
    const Range::Unit unit = range.unit;
    const std::optional<int64_t> b = number(tail);
    if (!a || !b || *a > *b || unit != range.unit) return bad();
    range.low = *a, range.high = *b;
    return range;
  }
  for (const auto& [sign, low_side, strict] :
       {std::tuple{"<=", false, false}, {">=", true, false}, {"<", false, true}, {">", true, true}}) {
    if (text.substr(0, std::string_view(sign).size()) != sign) continue;
    const std::optional<int64_t> value = number(text.substr(std::string_view(sign).size()));
    if (!value) return bad();
    if (low_side) {
      range.low = *value + (strict ? 1 : 0);
    } else {
      range.high = *value - (strict ? 1 : 0);
    }
    return range;
  }
  const std::optional<int64_t> value = number(text);
  if (!value) return bad();
  range.low = range.high = *value;
  return range;
}

}  // namespace

absl::StatusOr<Range> ParseRange(std::string_view text) {
  absl::StatusOr<Range> range = ReadRange(text);
  if (!range.ok()) return range;
  // A step that can only fail would be taken for a finding.
  if (range->high < 0)
    return absl::InvalidArgumentError(fmt::format("'{}' holds of nothing: nothing is less than 0", text));
  if (range->unit == Range::Unit::kShare && range->low > 1'000'000)
    return absl::InvalidArgumentError(fmt::format("'{}' holds of nothing: no share is more than 100%", text));
  return range;
}

}  // namespace wavetank::scenario
