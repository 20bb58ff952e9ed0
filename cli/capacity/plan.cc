#include <CLI/CLI.hpp>
#include <iostream>

#include "capacity/page/plan_page.h"
#include "capacity/plan/plan_texts.h"
#include "cli/capacity/fleet_argument.h"
#include "cli/capacity/parameters_file.h"
#include "cli/verb.h"
#include "core/base/json_text.h"
#include "fmt/format.h"
#include "reports/page.h"

namespace wavetank::cli {
namespace {

using capacity::Plan;

struct PlanArguments {
  FleetArgument fleet;
  std::string slo = "convergence p99 <= 2s, error 0", parameters, report;
  int samples = 3;
  bool json = false, as_it_is = false;
};

void Print(const Plan& plan) {
  const capacity::PlanText text = TextOf(plan);
  std::cout << fmt::format("{}: {}\n{}\n\n", plan.fleet.name, text.fleet, text.verdict);
  PrintTable(text.figures);
  std::cout << "\n";
  PrintTable(text.kinds);
  std::cout << "\n";
  PrintTable(text.settings);
  std::cout << "\nbinds: " << text.binds << "\nassumed: " << text.assumed << "\n";
  if (!text.extrapolates.empty()) {
    std::cout << "extrapolates beyond what was measured: " << text.extrapolates << "\n";
  }
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
  std::string page;
  const absl::StatusOr<Plan> plan = [&]() -> absl::StatusOr<Plan> {
    Progress progress;
    capacity::PlanOptions options;
    options.samples = a.samples;
    options.keep_replicas = a.as_it_is;
    options.progress = [&](std::string_view what) { progress.Say(what); };
    absl::StatusOr<Plan> made = MakePlan(model, fleet->fleet, *slo, options);
    if (!made.ok() || a.report.empty()) return made;
    const absl::StatusOr<capacity::Curves> curves = DrawCurves(model, *made, options);
    if (!curves.ok()) return curves.status();
    page = capacity::PlanPage(*made, *curves, fleet->notes);
    return made;
  }();
  if (!plan.ok()) return Complain(plan.status());
  if (!a.report.empty()) {
    if (absl::Status status = report::WriteWhole(a.report, page); !status.ok()) return Complain(status);
  }
  if (a.json) {
    std::cout << JsonText(PlanJson(*plan), 1) << "\n";
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
  verb->add_option("--report", a->report, "File for the same as a page with curves, which needs no other file");
  verb->footer(
      "Exit code 0: the SLO is kept; 1: it is not, with up to 64 istiods in a cluster; 2: the input is wrong.");
  verb->callback([a, &outcome] { outcome.code = Run(*a); });
}

}  // namespace wavetank::cli
