// What happens to the machines that clusters run on.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "sim/inputs/input.h"

namespace wavetank::sim::inputs {

// A node's machine goes without a goodbye, with all that runs on it; or it is back.
struct SetNode {
  static constexpr std::string_view kKind = "node";
  std::string cluster, node;
  bool lost = true;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

}  // namespace wavetank::sim::inputs
