// What a source of evidence says of the real mesh at this instant. It changes nothing: a replay passes it by and judges
// what its own mesh did (import/judge/).
#pragma once

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "sim/inputs/input.h"

namespace wavetank::sim::inputs {

struct Claim {
  static constexpr std::string_view kKind = "claim";
  nlohmann::json claim;  // docs/import.md says what it may hold

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

}  // namespace wavetank::sim::inputs
