// Which points of our own code may do what is lawful but rare from now on (core/base/buggify/buggify.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "sim/inputs/input.h"

namespace wavetank::sim::inputs {

// These and no others; without any, all is as usual again.
struct SwitchBuggify {
  static constexpr std::string_view kKind = "buggify";
  uint64_t seed = 0;                // of the points' streams; the first such input of a world decides
  std::vector<std::string> points;  // by name

  void Fields(FieldVisitor& visitor);
  // InvalidArgument: no point has that name.
  absl::Status Apply(InputTarget& target) const;
};

}  // namespace wavetank::sim::inputs
