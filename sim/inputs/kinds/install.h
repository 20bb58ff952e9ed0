// How a cluster of the mesh begins: what `istioctl install` leaves behind, and the CA that was plugged in before.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "sim/inputs/input.h"

namespace wavetank::sim::inputs {

// What `istioctl install` leaves behind, unless it is there.
struct Install {
  static constexpr std::string_view kKind = "install";
  std::string cluster;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

// Secret cacerts: an intermediate CA of the cluster under the root of that name.
struct PlugInCa {
  static constexpr std::string_view kKind = "cacerts";
  std::string cluster, root = "root";

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

}  // namespace wavetank::sim::inputs
