// Faults of a cluster's API server. What they are is a table of the API server's own (fakes/kube/store/faults.h); the
// scenario's action offers its rows.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/base/time.h"
#include "sim/inputs/input.h"

namespace wavetank::sim::inputs {

struct FailApiServer {
  static constexpr std::string_view kKind = "apiServer";
  std::string cluster;
  std::string fault;  // a row of ApiServerFaults()
  std::optional<Duration> latency, retry_after, skew;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

// A fault's name, and the field that says how much of it there is; empty: none.
struct ApiServerFault {
  std::string_view name, detail, meaning;
};
std::vector<ApiServerFault> ApiServerFaults();

}  // namespace wavetank::sim::inputs
