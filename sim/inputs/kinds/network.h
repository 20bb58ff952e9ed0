// Lines between sites, and the addresses of load balancers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/time.h"
#include "sim/inputs/input.h"

namespace wavetank::sim::inputs {

// The line between two clusters' sites, or inside one; what is not given stays.
struct SetLink {
  static constexpr std::string_view kKind = "link";
  std::vector<std::string> between;
  std::optional<bool> cut;
  std::optional<Duration> latency, jitter;
  std::optional<int64_t> loss_ppm;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

struct SetLoadBalancer {
  static constexpr std::string_view kKind = "loadBalancer";
  std::string cluster, ns, name;
  std::string address;  // none, new, or an address

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

}  // namespace wavetank::sim::inputs
