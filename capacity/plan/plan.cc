#include "capacity/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "capacity/fleet/scale.h"
#include "core/base/duration.h"

namespace wavetank::capacity {
namespace {

constexpr int64_t kMostReplicas = 64;

class Planner {
 public:
  Planner(const CostModel& model, const Fleet& fleet, const Slo& slo, const PlanOptions& options)
      : model_(model), asked_(fleet), slo_(slo), options_(options) {}

  absl::StatusOr<Plan> Make() {
    Plan plan;
    plan.slo = slo_;
    plan.asked_replicas = asked_.istiod.replicas;
    plan.fleet = asked_;
    Say("as it is");
    absl::StatusOr<Outcome> outcome = Evaluate(model_, asked_, options_.samples);
    if (!outcome.ok()) return outcome.status();
    plan.outcome = *outcome;
    plan.broken = plan.asked_broken = Breaks(slo_, asked_, *outcome);
    if (!options_.keep_replicas) {
      if (absl::Status status = FindReplicas(&plan); !status.ok()) return status;
    }
    Sizes(&plan);
    plan.extrapolates = Extrapolates(plan.outcome.mesh);
    Say("largest churn");
    if (absl::Status status = FindMost(plan.fleet, true, &plan.most_churn, &plan.churn_open); !status.ok())
      return status;
    Say("largest fleet");
    if (absl::Status status = FindMost(plan.fleet, false, &plan.most_fleet, &plan.fleet_open); !status.ok()) {
      return status;
    }
    return TryRemedies(&plan);
  }

 private:
  void Say(std::string_view what) const {
    if (options_.progress) options_.progress(what);
  }

  // As few as keep the SLO: doubled until they do, then bisected.
  absl::Status FindReplicas(Plan* plan) {
    Say("istiods per cluster");
    const auto holds = [&](int64_t replicas) -> absl::StatusOr<bool> {
      Fleet fleet = asked_;
      fleet.istiod.replicas = replicas;
      absl::StatusOr<Outcome> outcome = Evaluate(model_, fleet, options_.samples);
      if (!outcome.ok()) return outcome.status();
      if (!Breaks(slo_, fleet, *outcome).empty()) return false;
      plan->fleet = fleet;
      plan->outcome = *outcome;
      plan->broken.clear();
      return true;
    };
    int64_t low = 0, high = 1;  // low does not do, high does
    for (;; high *= 2) {
      if (high > kMostReplicas) {
        plan->tried_replicas = kMostReplicas;
        return absl::OkStatus();
      }
      const absl::StatusOr<bool> does = holds(high);
      if (!does.ok()) return does.status();
      if (*does) break;
      low = high;
    }
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      const absl::StatusOr<bool> does = holds(middle);
      if (!does.ok()) return does.status();
      (*does ? high : low) = middle;
    }
    return absl::OkStatus();
  }

  // Requests: what is used and a third more; limits: what full pushes, and all proxies at once, take.
  void Sizes(Plan* plan) const {
    const auto up = [](double value, double step) { return std::ceil(value / step) * step; };
    plan->request_cpus = std::max(0.1, up(plan->outcome.cpus * 1.33, 0.1));
    plan->limit_cpus = std::max(plan->request_cpus, plan->fleet.istiod.cpus);
    plan->request_mb = up(plan->outcome.after_full_mb * 1.1, 64);
    // A heap may grow to twice what lives before it is collected; the process itself and stacks do not.
    plan->limit_mb = up(plan->outcome.after_full_mb * 1.5, 64);
  }

  absl::StatusOr<bool> Holds(const Fleet& fleet, double faster) const {
    const absl::StatusOr<Outcome> outcome = Evaluate(model_, fleet, options_.samples, faster);
    if (!outcome.ok()) {
      if (absl::IsResourceExhausted(outcome.status())) return false;
      return outcome.status();
    }
    return Breaks(slo_, fleet, *outcome).empty();
  }

  absl::Status FindMost(const Fleet& fleet, bool churn, std::optional<double>* most, bool* open) const {
    const auto holds = [&](double times) { return churn ? Holds(fleet, times) : Holds(Scaled(fleet, times), 1); };
    // Upwards from what there is, if that keeps the SLO; else downwards to where something does.
    constexpr double kLeast = 1.0 / 16, kLimit = 256;
    double low = 1, high = kLimit;
    absl::StatusOr<bool> does = holds(low);
    for (; does.ok() && !*does && low > kLeast; does = holds(low)) low /= 2;
    if (!does.ok()) return does.status();
    if (!*does) return absl::OkStatus();
    for (high = 2 * low; high <= kLimit; high *= 2) {
      does = holds(high);
      if (!does.ok()) return does.status();
      if (!*does) break;
      low = high;
    }
    if (high > kLimit) *open = true;
    for (int step = 0; step < 4 && !*open; ++step) {
      const double middle = std::sqrt(low * high);
      does = holds(middle);
      if (!does.ok()) return does.status();
      (*does ? low : high) = middle;
    }
    *most = low;
    return absl::OkStatus();
  }

  absl::StatusOr<Plan> TryRemedies(Plan* plan) const {
    const Fleet& now = plan->fleet;
    const auto attempt = [&](std::string setting, std::string from, std::string to,
                             const std::function<void(Fleet&)>& change) -> absl::Status {
      Say(setting);
      Fleet fleet = now;
      change(fleet);
      const absl::StatusOr<Outcome> outcome = Evaluate(model_, fleet, options_.samples);
      if (!outcome.ok()) return outcome.status();
      plan->remedies.push_back({std::move(setting), std::move(from), std::move(to), outcome->p99,
                                outcome->istiod_recovery, outcome->cpus, outcome->after_full_mb});
      return absl::OkStatus();
    };
    const IstiodSpec& i = now.istiod;
    const auto number = [](int64_t n) { return std::to_string(n); };
    absl::Status status = attempt("PILOT_DEBOUNCE_AFTER", FormatDuration(i.debounce_after),
                                  FormatDuration(i.debounce_after * 5), [](Fleet& f) { f.istiod.debounce_after *= 5; });
    const Duration sooner = std::max(i.debounce_max / 10, i.debounce_after);  // less would end each wait at once
    status.Update(attempt("PILOT_DEBOUNCE_MAX", FormatDuration(i.debounce_max), FormatDuration(sooner),
                          [&](Fleet& f) { f.istiod.debounce_max = sooner; }));
    status.Update(attempt("PILOT_PUSH_THROTTLE", number(i.push_throttle),
                          number(std::max<int64_t>(1, i.push_throttle / 5)),
                          [](Fleet& f) { f.istiod.push_throttle = std::max<int64_t>(1, f.istiod.push_throttle / 5); }));
    status.Update(attempt("PILOT_MAX_REQUESTS_PER_SECOND", number(i.requests_per_second),
                          number(i.requests_per_second * 4), [](Fleet& f) { f.istiod.requests_per_second *= 4; }));
    status.Update(attempt("kubernetesApiQPS, its burst", number(i.api_qps), number(i.api_qps * 4), [](Fleet& f) {
      f.istiod.api_qps *= 4;
      f.istiod.api_burst *= 4;
    }));
    status.Update(attempt("CPUs of each istiod", fmt::format("{:g}", i.cpus), fmt::format("{:g}", 2 * i.cpus),
                          [](Fleet& f) { f.istiod.cpus *= 2; }));
    status.Update(attempt("istiods per cluster", number(i.replicas), number(2 * i.replicas),
                          [](Fleet& f) { f.istiod.replicas *= 2; }));
    const auto all = static_cast<int64_t>(plan->outcome.mesh.services);
    const int64_t scope = std::max<int64_t>(1, (now.scope > 0 ? now.scope : all) / 10);
    status.Update(attempt("Sidecar scope (services seen)", number(now.scope > 0 ? now.scope : all), number(scope),
                          [&](Fleet& f) { f.scope = scope; }));
    if (!status.ok()) return status;
    const auto best = std::min_element(plan->remedies.begin(), plan->remedies.end(),
                                       [](const Remedy& a, const Remedy& b) { return a.p99 < b.p99; });
    // A tenth is within what another seed gives.
    if (best->p99 * 10 < plan->outcome.p99 * 9) plan->binds = best->setting;
    return std::move(*plan);
  }

  const CostModel& model_;
  const Fleet asked_;
  const Slo slo_;
  const PlanOptions options_;
};

}  // namespace

absl::StatusOr<Plan> MakePlan(const CostModel& model, const Fleet& fleet, const Slo& slo, const PlanOptions& options) {
  return Planner(model, fleet, slo, options).Make();
}

}  // namespace wavetank::capacity
