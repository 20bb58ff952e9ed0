// A plan as curves: convergence against churn, one istiod over the fleet's time, the ramps of proxies that connect.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "capacity/plan/plan.h"

namespace wavetank::capacity {

// All churn so many times as fast.
struct ChurnPoint {
  double times = 1;
  Duration p50{}, p99{};
  Duration p99_low{}, p99_high{};  // the least and the most of the samples
  double cpus = 0;
  int64_t changes = 0, missing = 0;
  bool kept = false;  // the SLO
};

// One istiod in one span of time, in the first sample.
struct TimePoint {
  Duration at{};    // where the span begins
  double cpus = 0;  // used on average, idle included
  double resident_mb = 0;
  int64_t waiting = 0;  // most proxies in the queue
  double kilobytes_per_second = 0;
};

// So many proxies of a cluster are served, so long after.
struct RampPoint {
  Duration at{};
  double served = 0;
};

struct Curves {
  std::vector<ChurnPoint>
      churn;               // from slow to fast; the fleet's own and the largest that keeps the SLO are among them
  std::string churn_ends;  // why no faster churn was looked at, or ""
  Duration span{};         // of each TimePoint
  std::vector<TimePoint> time;
  std::vector<RampPoint> istiod_death;  // of one of a cluster's; begins at the moment of its death
  std::vector<RampPoint> all_connect;   // to istiods that have all just begun
};

// `options`: samples and progress, as of MakePlan(). Errors are those of Evaluate().
absl::StatusOr<Curves> DrawCurves(const CostModel& model, const Plan& plan, const PlanOptions& options);

// For tests: which churns are looked at: apart by doubling or fourfold, from below the fleet's own and the largest that
// keeps the SLO (if there is one) to beyond both.
std::vector<double> ChurnsToDraw(const std::optional<double>& most_churn);

}  // namespace wavetank::capacity
