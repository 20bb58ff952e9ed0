// The Secret by which one cluster's istiod reads another cluster.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "sim/inputs/input.h"

namespace wavetank::sim::inputs {

struct SetRemoteSecret {
  static constexpr std::string_view kKind = "remoteSecret";
  std::string of, in;
  std::string state = "present";  // present, restored, deleted, rotated (another token), broken (no kubeconfig)
  std::string secret;             // its name; empty: istio-remote-secret-CLUSTER

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

}  // namespace wavetank::sim::inputs
