// What happens to pods from outside of Kubernetes.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "sim/inputs/input.h"

namespace wavetank::sim::inputs {

// An app's pods are gone at once, without a goodbye. No namespace: those of all.
struct KillPods {
  static constexpr std::string_view kKind = "kill";
  std::string cluster, ns, app;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

}  // namespace wavetank::sim::inputs
