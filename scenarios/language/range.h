// A range of a quantity: "any", "0", "<= 3", ">= 10%", "40..60%", "<= 500ms".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wavetank::scenario {

struct Range {
  enum class Unit : uint8_t { kCount, kShare, kDuration };  // a number, parts per million, nanoseconds
  int64_t low = INT64_MIN, high = INT64_MAX;
  Unit unit = Unit::kCount;
  std::string text;
  bool Holds(int64_t value) const { return value >= low && value <= high; }
};

// InvalidArgument: it is no number or range, its ends have different units, the first is greater than the second, or
// nothing can be within it ("< 0", "> 100%").
absl::StatusOr<Range> ParseRange(std::string_view text);

}  // namespace wavetank::scenario
