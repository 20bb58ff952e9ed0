// How applications behave from now on.
#pragma once

#include "absl/status/status.h"
#include "sim/apps/app_behaviour.h"
#include "sim/apps/retry.h"
#include "sim/inputs/input.h"

namespace wavetank::sim::inputs {

struct SetBehaviour {
  static constexpr std::string_view kKind = "behaviour";
  AppBehaviours::Rule rule;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

// A client's own retries, as a mapping "retries"; a rule that tries once is left out. Flows have it, too.
void VisitRetry(FieldVisitor& visitor, RetryRule& rule);

}  // namespace wavetank::sim::inputs
