#include <CLI/CLI.hpp>
#include <iostream>

#include "check/cause/instant.h"
#include "cli/questions/questions.h"
#include "cli/verb.h"
#include "core/base/json_text.h"
#include "reports/report.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"

namespace wavetank::cli {
namespace {

struct ForkArguments {
  std::string log, at, steps, out, report;
  bool json = false, verbose = false;
};

int ForkLog(const ForkArguments& a) {
  const absl::StatusOr<check::Story> story = check::LoadStory(a.log);
  if (!story.ok()) return Complain(story.status());
  const absl::StatusOr<Time> at = check::FindInstant("--at", a.at, *story);
  if (!at.ok()) return Complain(at.status());
  const absl::StatusOr<std::vector<scenario::ClusterSpec>> mesh = scenario::ClustersOfLog(a.log);
  if (!mesh.ok()) return Complain(mesh.status());
  const absl::StatusOr<scenario::Scenario> steps = scenario::LoadScenario(a.steps, *mesh);
  if (!steps.ok()) return Complain(steps.status());
  scenario::RunOptions options;
  options.from = a.log;
  options.from_until = *at - story->header.Beginning();
  options.log = a.out;
  options.partial = true;
  const absl::StatusOr<scenario::RunResult> result = [&] {
    Progress progress;
    options.progress = [&](std::string_view what) { progress.Say(what); };
    return scenario::Run(*steps, options);
  }();
  if (!result.ok()) return Complain(result.status());
  if (a.json) {
    std::cout << JsonText(report::ResultsJson(*result), 1) << "\n";
  } else {
    std::cout << report::TerminalTables(*result, {ColourWanted(), a.verbose});
  }
  if (!a.report.empty()) {
    if (absl::Status status = report::WriteReports(a.report, *result); !status.ok()) return Complain(status);
  }
  if (!result->error.empty()) return Complain(absl::InvalidArgumentError(result->error));
  return result->Passed() ? kOk : kNo;
}

}  // namespace

void AddFork(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand("fork", "Goes on differently from an instant of a log");
  auto a = std::make_shared<ForkArguments>();
  verb->add_option("log", a->log, "Event log")->required();
  verb->add_option("steps", a->steps, "Scenario whose steps begin then; it may leave out its clusters")->required();
  verb->add_option("--at", a->at,
                   "30s since the log's beginning, 'input 41', 'input 41+2s', a step of its scenario, or, of an "
                   "imported log, 2024-05-06T07:08:09Z")
      ->required();
  verb->add_option("-o,--out", a->out, "Event log of it all, from the beginning on");
  verb->add_option("--report", a->report, "Folder for report.html, results.json, junit.xml and topology.dot");
  verb->add_flag("--json", a->json, "Results as JSON on standard output (docs/results.md)");
  verb->add_flag("-v,--verbose", a->verbose, "One row per proxy, and what each expectation found");
  verb->footer("Exit code 0: all expectations hold; 1: one does not.");
  verb->callback([a, &outcome] { outcome.code = ForkLog(*a); });
}

}  // namespace wavetank::cli
