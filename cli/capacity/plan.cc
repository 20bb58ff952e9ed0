#include <CLI/CLI.hpp>
#include <cmath>
#include <fstream>
#include <iostream>

#include "capacity/plan/plan.h"
#include "cli/capacity/fleet_argument.h"
#include "cli/capacity/parameters_file.h"
#include "cli/verb.h"
#include "core/base/duration.h"
#include "core/base/json_text.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace wavetank::cli {
namespace {

using capacity::Plan;

struct PlanArguments {
  FleetArgument fleet;
  std::string slo = "convergence p99 <= 2s, error 0", parameters;
  int samples = 3;
  bool json = false, as_it_is = false;
};

std::string Memory(double mb) { return mb < 1024 ? fmt::format("{:.0f}Mi", mb) : fmt::format("{:.1f}Gi", mb / 1024); }

std::string Times(const std::optional<double>& times, bool open) {
  if (!times) return "not even a sixteenth of it keeps the SLO";
  return fmt::format("{}{:.2g} times", open ? "more than " : "", *times);
}

void Print(const Plan& plan) {
  const capacity::Fleet& f = plan.fleet;
  const capacity::Outcome& o = plan.outcome;
  const auto d = [](Duration t) { return FormatDuration(t); };
  std::cout << fmt::format("{}: {} clusters, {} services and {} endpoints in all, {} proxies each; {}\n", f.name,
                           f.clusters, static_cast<int64_t>(o.mesh.services), static_cast<int64_t>(o.mesh.endpoints),
                           f.proxies + f.gateways, plan.slo.Text());
  std::cout << (plan.broken.empty() ? fmt::format("kept with {} istiod{} per cluster", f.istiod.replicas,
                                                  f.istiod.replicas == 1 ? "" : "s")
                                    : fmt::format("NOT kept with {} per cluster: {}", f.istiod.replicas, plan.broken));
  if (plan.asked_replicas != f.istiod.replicas) {
    std::cout << fmt::format(" (with the {} of the fleet: {})", plan.asked_replicas,
                             plan.asked_broken.empty() ? "kept, too" : plan.asked_broken);
  }
  std::cout << "\n\n";
  PrintTable({
      {"istiods per cluster", std::to_string(f.istiod.replicas), fmt::format("{:.0f} proxies each", o.mesh.proxies)},
      {"requests", fmt::format("cpu {:.1f}, memory {}", plan.request_cpus, Memory(plan.request_mb)),
       "what is used on average and a third; the heap after full pushes and a tenth"},
      {"limits", fmt::format("cpu {:g}, memory {}", plan.limit_cpus, Memory(plan.limit_mb)),
       "pushes use all of it for as long as they last"},
      {"used", fmt::format("cpu {:.2f} (busiest sample {:.2f}), memory {}", o.cpus, o.busiest, Memory(o.after_full_mb)),
       fmt::format("headroom cpu {:.0f} %, memory {:.0f} %", 100 * (1 - o.busiest / f.istiod.cpus),
                   100 * (1 - o.after_full_mb / f.istiod.memory_mb))},
      {"convergence", fmt::format("p50 {}, p90 {}, p99 {}, worst {}", d(o.p50), d(o.p90), d(o.p99), d(o.worst)),
       fmt::format("{} changes; p99 of single samples {} to {}", o.changes, d(o.p99_low), d(o.p99_high))},
      {"debounced", d(o.debounced), "mean wait of a change"},
      {"pushes", fmt::format("{:.2f}/s, {:.0f} % full", o.pushes_per_second, 100 * o.full_share),
       fmt::format("{:.0f} % merged into a waiting one; at most {} proxies in the queue", 100 * o.merged_share,
                   o.most_waiting)},
      {"bytes out", fmt::format("{:.1f} MB/s", o.kilobytes_per_second / 1000), "of each istiod"},
      {"all proxies connect", d(o.all_connect), "PILOT_MAX_REQUESTS_PER_SECOND, or processors"},
      {"an istiod dies", d(o.istiod_recovery), "until its proxies are served again"},
      {"a node dies", d(o.node_recovery), "340 s of it are Kubernetes' (noticed after 40 s, evicted after 300 s)"},
      {"largest churn", Times(plan.most_churn, plan.churn_open), "that keeps the SLO"},
      {"largest fleet", Times(plan.most_fleet, plan.fleet_open), "services, proxies and nodes alike"},
  });
  Rows kinds = {{"CHANGE", "HOW MANY", "p50", "p99", "WORST"}};
  for (const auto& [kind, k] : o.kinds) {
    kinds.push_back({std::string(NameOf(kind)), std::to_string(k.changes), d(k.p50), d(k.p99), d(k.worst)});
  }
  std::cout << "\n";
  PrintTable(kinds);
  std::cout << "\n";
  Rows settings = {{"ONE SETTING ALONE", "FROM", "TO", "p99", "ISTIOD'S DEATH", "CPU", "MEMORY"}};
  for (const capacity::Remedy& r : plan.remedies) {
    settings.push_back({r.setting, r.from, r.to, fmt::format("{} -> {}", d(o.p99), d(r.p99)),
                        fmt::format("{} -> {}", d(o.istiod_recovery), d(r.recovery)),
                        fmt::format("{:.2f} -> {:.2f}", o.cpus, r.cpus),
                        fmt::format("{} -> {}", Memory(o.after_full_mb), Memory(r.resident_mb))});
  }
  PrintTable(settings);
  std::cout << "\nbinds: " << (plan.binds.empty() ? "no setting alone makes p99 a tenth better" : plan.binds) << "\n";
  std::cout
      << "assumed: every proxy of a cluster sees the same services, its istiods share them evenly, API servers answer "
         "at once; costs by docs/cost-model.md\n";
  if (!plan.extrapolates.empty()) std::cout << "extrapolates beyond what was measured: " << plan.extrapolates << "\n";
}

nlohmann::ordered_json Json(const Plan& plan) {
  const capacity::Outcome& o = plan.outcome;
  nlohmann::ordered_json kinds = nlohmann::ordered_json::array(), remedies = nlohmann::ordered_json::array();
  for (const auto& [kind, k] : o.kinds) {
    kinds.push_back({{"change", NameOf(kind)},
                     {"changes", k.changes},
                     {"p50Ns", k.p50.count()},
                     {"p99Ns", k.p99.count()},
                     {"worstNs", k.worst.count()}});
  }
  for (const capacity::Remedy& r : plan.remedies) {
    remedies.push_back({{"setting", r.setting},
                        {"from", r.from},
                        {"to", r.to},
                        {"p99Ns", r.p99.count()},
                        {"istiodRecoveryNs", r.recovery.count()},
                        {"cpus", r.cpus},
                        {"memoryMB", r.resident_mb}});
  }
  nlohmann::ordered_json out = {{"fleet", plan.fleet.name},
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

int Run(const PlanArguments& a) {
  const absl::StatusOr<capacity::Parameters> parameters = ReadParameters(a.parameters);
  if (!parameters.ok()) return Complain(parameters.status());
  const absl::StatusOr<capacity::Slo> slo = capacity::ParseSlo(a.slo);
  if (!slo.ok()) return Complain(slo.status());
  const absl::StatusOr<capacity::RecordedFleet> fleet = ReadFleet(a.fleet);
  if (!fleet.ok()) return Complain(fleet.status());
  SayNotes(fleet->notes);
  const capacity::CostModel model(*parameters);
  const absl::StatusOr<Plan> plan = [&] {
    Progress progress;
    capacity::PlanOptions options;
    options.samples = a.samples;
    options.keep_replicas = a.as_it_is;
    options.progress = [&](std::string_view what) { progress.Say(what); };
    return MakePlan(model, fleet->fleet, *slo, options);
  }();
  if (!plan.ok()) return Complain(plan.status());
  if (a.json) {
    std::cout << JsonText(Json(*plan), 1) << "\n";
  } else {
    Print(*plan);
  }
  return plan->broken.empty() ? kOk : kNo;
}

}  // namespace

void AddPlan(CLI::App& app, cli::Outcome& outcome) {
  CLI::App* verb = app.add_subcommand("plan", "How many istiods a fleet needs, how large, what binds and what helps");
  auto a = std::make_shared<PlanArguments>();
  verb->add_option("fleet", a->fleet.path, "A fleet's YAML (docs/capacity.md), or an event log")->required();
  verb->add_option("--scale", a->fleet.scale, "So many times the services, proxies, nodes and their churn, as 10x");
  verb->add_option("--secrets", a->fleet.secrets, "Manifests with the keys that a log only has digests of");
  verb->add_option("--slo", a->slo, "What it must keep")->capture_default_str();
  verb->add_option("--samples", a->samples, "Seeds that are tried")->check(CLI::Range(1, 1000))->capture_default_str();
  verb->add_flag("--as-it-is", a->as_it_is, "With the fleet's own istiods, not as few as will do");
  verb->add_option("--parameters", a->parameters, "Table of the cost model's parameters (of `wavetank calibrate`)");
  verb->add_flag("--json", a->json, "As JSON");
  verb->footer(
      "Exit code 0: the SLO is kept; 1: it is not, with up to 64 istiods in a cluster; 2: the input is wrong.");
  verb->callback([a, &outcome] { outcome.code = Run(*a); });
}

}  // namespace wavetank::cli
