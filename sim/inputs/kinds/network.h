// Lines between clusters, the addresses of load balancers, and what lies under the networks: routes and firewalls.
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

// A firewall rule, before all others; one of the same name is replaced.
struct SetFirewall {
  static constexpr std::string_view kKind = "firewall";
  std::string state = "deny";  // deny, allow, removed
  std::string name;
  std::vector<std::string> from, to, ports;
  bool reject = false, established = false;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

// What goes from one site to another, or a part of it, gets lost.
struct SetRoute {
  static constexpr std::string_view kKind = "route";
  std::string from, to;
  std::vector<std::string> ranges;
  bool lost = false;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

}  // namespace wavetank::sim::inputs
