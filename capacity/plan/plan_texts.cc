#include "capacity/plan/plan_texts.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/base/duration.h"

namespace wavetank::capacity {
namespace {

std::string Memory(double mb) { return mb < 1024 ? fmt::format("{:.0f}Mi", mb) : fmt::format("{:.1f}Gi", mb / 1024); }

std::string Times(const std::optional<double>& times, bool open) {
  if (!times) return "none";
  const char* const more = open ? "more than " : "";
  // Two digits: it was bisected as far.
  return *times < 100 ? fmt::format("{}{:.2g} times", more, *times)
                      : fmt::format("{}{:.0f} times", more, std::round(*times / 10) * 10);
}

}  // namespace

PlanText TextOf(const Plan& plan) {
  const Fleet& f = plan.fleet;
  const Outcome& o = plan.outcome;
  const auto d = [](Duration t) { return FormatDuration(t); };
  PlanText out;
  out.fleet = fmt::format("{} clusters, {} services and {} endpoints in all, {} proxies each; {}", f.clusters,
                          static_cast<int64_t>(o.mesh.services), static_cast<int64_t>(o.mesh.endpoints),
                          f.proxies + f.gateways, plan.slo.Text());
  out.verdict =
      plan.broken.empty()
          ? fmt::format("kept with {} istiod{} per cluster", f.istiod.replicas, f.istiod.replicas == 1 ? "" : "s")
          : fmt::format("NOT kept with {} per cluster{}: {}", f.istiod.replicas,
                        plan.tried_replicas > 0 ? fmt::format(", nor with up to {}", plan.tried_replicas) : "",
                        plan.broken);
  if (plan.asked_replicas != f.istiod.replicas) {
    out.verdict += fmt::format(" (with the {} of the fleet: {})", plan.asked_replicas,
                               plan.asked_broken.empty() ? "kept, too" : plan.asked_broken);
  }
  out.figures = {
      {"istiods per cluster", std::to_string(f.istiod.replicas), fmt::format("{:.0f} proxies each", o.mesh.proxies)},
      {"requests", fmt::format("cpu {:.1f}, memory {}", plan.request_cpus, Memory(plan.request_mb)),
       "what is used on average and a third; the heap after full pushes and a tenth"},
      {"limits", fmt::format("cpu {:g}, memory {}", plan.limit_cpus, Memory(plan.limit_mb)),
       "pushes use all of it for as long as they last"},
      {"used", fmt::format("cpu {:.2f} (busiest sample {:.2f}), memory {}", o.cpus, o.busiest, Memory(o.after_full_mb)),
       fmt::format("headroom cpu {:.0f} %, memory {:.0f} % of the fleet's own limits (cpu {:g}, memory {})",
                   100 * (1 - o.busiest / f.istiod.cpus), 100 * (1 - o.after_full_mb / f.istiod.memory_mb),
                   f.istiod.cpus, Memory(f.istiod.memory_mb))},
      {"convergence", fmt::format("p50 {}, p90 {}, p99 {}, worst {}", d(o.p50), d(o.p90), d(o.p99), d(o.worst)),
       fmt::format("{} changes; p99 of single samples {} to {}", o.changes, d(o.p99_low), d(o.p99_high))},
      {"debounced", d(o.debounced), "mean wait of a change"},
      {"pushes", fmt::format("{:.2f}/s, {:.0f} % full", o.pushes_per_second, 100 * o.full_share),
       fmt::format("{:.0f} % merged into a waiting one; at most {} proxies in the queue", 100 * o.merged_share,
                   o.most_waiting)},
      {"bytes out", fmt::format("{:.1f} MB/s", o.kilobytes_per_second / 1000), "of each istiod"},
      {"API servers",
       fmt::format("{:.1f} requests/s of {:.0f}, {:.1f} KB/s", o.api.requests_per_second, o.api.limit,
                   o.api.kilobytes_per_second),
       fmt::format("of each istiod; at its start {:.0f} requests, {:.0f} MB (given, not measured)",
                   o.api.start_requests, o.api.start_mb)},
      {"each proxy", fmt::format("cpu {:.4f}, memory {}", o.envoy_cpus, Memory(o.envoy_mb)),
       fmt::format("an Envoy for its configuration, without traffic; {} of processor time for the first",
                   d(o.envoy_first))},
      {"all proxies connect", d(o.all_connect),
       "PILOT_MAX_REQUESTS_PER_SECOND, processors, or TokenReviews within kubernetesApiQPS"},
      {"an istiod dies", d(o.istiod_recovery), "until its proxies are served again"},
      {"a node dies", d(o.node_recovery), "340 s of it are Kubernetes' (noticed after 40 s, evicted after 300 s)"},
      {"largest churn", Times(plan.most_churn, plan.churn_open),
       plan.most_churn ? "that keeps the SLO" : "not even a sixteenth of it keeps the SLO"},
      {"largest fleet", Times(plan.most_fleet, plan.fleet_open),
       plan.most_fleet ? "services, proxies and nodes alike" : "not even a sixteenth of it keeps the SLO"},
  };
  out.kinds = {{"CHANGE", "HOW MANY", "p50", "p99", "WORST"}};
  for (const auto& [kind, k] : o.kinds) {
    out.kinds.push_back({std::string(NameOf(kind)), std::to_string(k.changes), d(k.p50), d(k.p99), d(k.worst)});
  }
  out.settings = {{"ONE SETTING ALONE", "FROM", "TO", "p99", "ISTIOD'S DEATH", "CPU", "MEMORY"}};
  for (const Remedy& r : plan.remedies) {
    out.settings.push_back({r.setting, r.from, r.to, fmt::format("{} -> {}", d(o.p99), d(r.p99)),
                            fmt::format("{} -> {}", d(o.istiod_recovery), d(r.recovery)),
                            fmt::format("{:.2f} -> {:.2f}", o.cpus, r.cpus),
                            fmt::format("{} -> {}", Memory(o.after_full_mb), Memory(r.resident_mb))});
  }
  out.binds = plan.binds.empty() ? "no setting alone makes p99 a tenth better" : plan.binds;
  out.assumed =
      "every proxy of a cluster sees the same services, its istiods share them evenly, API servers answer at once; "
      "costs by docs/cost-model.md; given, not measured: TLS handshakes, TokenReviews, what API servers send";
  std::vector<std::string> left_out;
  if (f.traffic.entries > 0) left_out.emplace_back("the traffic between services");
  if (f.churn.istiod_restarts > Duration::zero())
    left_out.emplace_back("istiodRestarts as churn (one is told as `an istiod dies`)");
  if (!left_out.empty()) out.assumed += fmt::format("; left out: {}", fmt::join(left_out, ", "));
  out.extrapolates = plan.extrapolates;
  return out;
}

nlohmann::ordered_json PlanJson(const Plan& plan) {
  const Outcome& o = plan.outcome;
  nlohmann::ordered_json kinds = nlohmann::ordered_json::array(), remedies = nlohmann::ordered_json::array();
  for (const auto& [kind, k] : o.kinds) {
    kinds.push_back({{"change", NameOf(kind)},
                     {"changes", k.changes},
                     {"p50Ns", k.p50.count()},
                     {"p99Ns", k.p99.count()},
                     {"worstNs", k.worst.count()}});
  }
  for (const Remedy& r : plan.remedies) {
    remedies.push_back({{"setting", r.setting},
                        {"from", r.from},
                        {"to", r.to},
                        {"p99Ns", r.p99.count()},
                        {"istiodRecoveryNs", r.recovery.count()},
                        {"cpus", r.cpus},
                        {"memoryMB", r.resident_mb}});
  }
  nlohmann::ordered_json out = {
      {"fleet", plan.fleet.name},
      {"slo", plan.slo.Text()},
      {"kept", plan.broken.empty()},
      {"why", plan.broken},
      {"istiodsPerCluster", plan.fleet.istiod.replicas},
      {"requests", {{"cpu", plan.request_cpus}, {"memoryMB", plan.request_mb}}},
      {"limits", {{"cpu", plan.limit_cpus}, {"memoryMB", plan.limit_mb}}},
      {"cpus", o.cpus},
      {"busiestCpus", o.busiest},
      {"memoryMB", o.after_full_mb},
      {"convergence",
       {{"p50Ns", o.p50.count()},
        {"p90Ns", o.p90.count()},
        {"p99Ns", o.p99.count()},
        {"worstNs", o.worst.count()},
        {"p99LowNs", o.p99_low.count()},
        {"p99HighNs", o.p99_high.count()}}},
      {"debouncedNs", o.debounced.count()},
      {"changes", o.changes},
      {"missing", o.missing},
      {"pushesPerSecond", o.pushes_per_second},
      {"fullShare", o.full_share},
      {"mergedShare", o.merged_share},
      {"mostWaiting", o.most_waiting},
      {"kilobytesPerSecond", o.kilobytes_per_second},
      {"apiServer",
       {{"requestsPerSecond", o.api.requests_per_second},
        {"limit", o.api.limit},
        {"kilobytesPerSecond", o.api.kilobytes_per_second},
        {"startRequests", o.api.start_requests},
        {"startMB", o.api.start_mb}}},
      {"envoy", {{"cpus", o.envoy_cpus}, {"memoryMB", o.envoy_mb}, {"firstNs", o.envoy_first.count()}}},
      {"allConnectNs", o.all_connect.count()},
      {"istiodRecoveryNs", o.istiod_recovery.count()},
      {"nodeRecoveryNs", o.node_recovery.count()},
      {"kinds", kinds},
      {"remedies", remedies},
      {"binds", plan.binds},
      {"extrapolates", plan.extrapolates}};
  if (plan.most_churn) out["mostChurn"] = *plan.most_churn;
  if (plan.most_fleet) out["mostFleet"] = *plan.most_fleet;
  return out;
}

}  // namespace wavetank::capacity
