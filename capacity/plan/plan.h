// How many istiods, how large, what binds, what helps: `wavetank plan`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "capacity/plan/evaluate.h"

namespace wavetank::capacity {

// One setting, changed alone.
struct Remedy {
  std::string setting, from, to;
  Duration p99{};       // then
  Duration recovery{};  // of an istiod's death, then
  double cpus = 0, resident_mb = 0;
};

struct Plan {
  Fleet fleet;  // with the istiods that the plan asks for
  Slo slo;
  Outcome outcome;
  std::string broken;        // why the SLO is not kept with them, or ""
  std::string asked_broken;  // with the fleet's own istiods
  int64_t asked_replicas = 1;
  int64_t tried_replicas =
      0;  // up to so many were tried, and none keeps it; 0: one does, or none but its own was tried
  double request_cpus = 0, limit_cpus = 0, request_mb = 0, limit_mb = 0;
  std::optional<double> most_churn;  // times the fleet's that still keeps the SLO; nothing: not even a sixteenth
  std::optional<double> most_fleet;  // times its services and proxies
  bool churn_open = false, fleet_open = false;  // more than was tried
  std::string binds;                            // the setting that gives most
  std::vector<Remedy> remedies;
  std::string extrapolates;
};

struct PlanOptions {
  int samples = 3;
  bool keep_replicas = false;  // as the fleet says, not as few as will do
  std::function<void(std::string_view)> progress;
};

// Errors are those of Evaluate().
absl::StatusOr<Plan> MakePlan(const CostModel& model, const Fleet& fleet, const Slo& slo, const PlanOptions& options);

}  // namespace wavetank::capacity
