#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "capacity/metrics/run_metrics.h"
#include "cli/mesh_arguments.h"
#include "cli/run_findings.h"
#include "cli/run_progress.h"
#include "cli/verb.h"
#include "core/base/json_text.h"
#include "core/base/time.h"
#include "reports/report.h"
#include "scenarios/runner/runner.h"
#include "serve/live_run.h"
#include "sim/invariants/catalogue.h"

namespace wavetank::cli {
namespace {

struct RunArguments {
  std::vector<std::string> paths, settings;
  std::string report, log, access_log, metrics, metrics_interval = "15s", profile, until, from, invariants, mend, date;
  std::optional<uint64_t> seed;
  bool json = false, verbose = false, strict = false;
  serve::ControlPlaneOptions control_plane;
};

// Where the files of one of several scenarios go.
std::string Place(const std::string& base, const RunArguments& a, size_t index) {
  return base.empty() || a.paths.size() <= 1 ? base : base + "-" + std::to_string(index + 1);
}

absl::StatusOr<scenario::RunOptions> OptionsFor(const RunArguments& a, const scenario::Scenario* scenario,
                                                size_t index) {
  scenario::RunOptions options;
  options.seed = a.seed;
  options.profile = a.profile;
  options.log = Place(a.log, a, index);
  options.access_log = Place(a.access_log, a, index);
  options.from = a.from;
  options.partial = true;
  options.strict = a.strict;
  if (absl::Status status = TakeMending(a.mend, a.date, &options.mending, &options.date); !status.ok()) return status;
  if (!a.invariants.empty()) {
    absl::StatusOr<std::vector<std::string>> names = sim::ParseInvariants(a.invariants);
    if (!names.ok()) return names.status();
    options.invariants = *std::move(names);
  }
  if (!a.until.empty()) {
    absl::StatusOr<scenario::Moment> until = ParseMomentOf("--until", a.until, scenario);
    if (!until.ok()) return until.status();
    options.until = *std::move(until);
  }
  return options;
}

// One run's answer: tables as soon as they are there, or an entry of `all`.
class Answers {
 public:
  explicit Answers(const RunArguments& a) : a_(a) {}

  // The exit code for it.
  int Add(const scenario::RunResult& result, size_t index, const std::string& log = {}) {
    if (a_.json) {
      runs_.push_back(report::ResultsJson(result));
    } else {
      std::cout << (index == 0 ? "" : "\n") << report::TerminalTables(result, {ColourWanted(), a_.verbose})
                << std::flush;
    }
    passed_ = passed_ && result.Passed();
    if (!a_.report.empty()) {
      const std::string place = Place(a_.report, a_, index);
      if (absl::Status status = report::WriteReports(place, result, FindingsBehind(result, log)); !status.ok())
        return Complain(status);
      if (!a_.json) std::cout << "report in " << place << "/report.html\n";
    }
    if (!result.error.empty()) return Complain(absl::InvalidArgumentError(result.error));
    return result.interrupted ? kInterrupted : result.Passed() ? kOk : kNo;
  }

  // One shape however many runs there were (docs/results.schema.json).
  void Finish() {
    if (!a_.json) return;
    const nlohmann::ordered_json out = {{"version", WAVETANK_VERSION}, {"passed", passed_}, {"runs", std::move(runs_)}};
    std::cout << JsonText(out, 1) << "\n";
  }

 private:
  const RunArguments& a_;
  nlohmann::ordered_json runs_ = nlohmann::ordered_json::array();
  bool passed_ = true;
};

// A log alone: what each of its changes came to.
absl::StatusOr<scenario::RunResult> RunLogAlone(const RunArguments& a, const EndRequest& end) {
  absl::StatusOr<scenario::RunOptions> options = OptionsFor(a, nullptr, 0);
  if (!options.ok()) return options.status();
  RunProgress progress;
  progress.Attach(&*options, a.from);
  options->interrupted = end.flag();
  return scenario::RunLog(*options);
}

absl::StatusOr<scenario::RunResult> RunOne(const RunArguments& a, const scenario::Scenario& scenario,
                                           scenario::RunOptions options, const std::string& metrics_file,
                                           const EndRequest& end) {
  const bool live = !a.control_plane.program.empty();
  RunProgress progress;
  progress.Attach(&options, scenario.name);
  options.interrupted = end.flag();
  capacity::RunMetrics metrics(a.metrics_interval);
  if (!metrics_file.empty()) metrics.Attach(&options);
  serve::LiveRun real(a.control_plane);
  options.real_istiod = live;
  if (live) real.Attach(&options);
  absl::StatusOr<scenario::RunResult> result = scenario::Run(scenario, options);
  if (result.ok() && !metrics_file.empty()) {
    if (absl::Status status = metrics.Write(metrics_file); !status.ok()) return status;
  }
  if (!result.ok() || !live) return result;
  // A real istiod tells nothing of its queues.
  for (scenario::StepResult& step : result->steps) step.convergence.connected = -1;
  return result;
}

absl::Status CheckControlPlane(const RunArguments& a) {
  if (a.control_plane.program.empty()) return absl::OkStatus();
  if (!a.from.empty()) {
    return absl::InvalidArgumentError(
        "--control-plane: a run with a real istiod takes a scenario and no log; leave out --from");
  }
  return serve::CheckProgram(a.control_plane.program);
}

absl::Status CheckMetrics(const RunArguments& a) {
  if (a.metrics.empty()) return absl::OkStatus();
  if (!a.from.empty() && a.paths.empty()) {
    return absl::InvalidArgumentError("--metrics: a log alone is run without; name a scenario beside --from");
  }
  if (!a.control_plane.program.empty()) {
    return absl::InvalidArgumentError("--metrics: a real istiod serves its own at its port 15014; leave it out");
  }
  return capacity::RunMetrics::Check(a.metrics_interval);
}

// Every input is read before the first one runs, so that a typo in the last costs no waiting.
absl::StatusOr<std::vector<scenario::Scenario>> LoadAll(const RunArguments& a, const std::vector<std::string>& paths) {
  std::vector<scenario::ClusterSpec> mesh;
  if (!a.from.empty()) {
    absl::StatusOr<std::vector<scenario::ClusterSpec>> clusters = scenario::ClustersOfLog(a.from);
    if (!clusters.ok()) return clusters.status();
    mesh = *std::move(clusters);
  }
  std::vector<scenario::Scenario> scenarios;
  for (const std::string& path : paths) {
    absl::StatusOr<scenario::Scenario> scenario = LoadScenarioWith(path, mesh, a.settings);
    if (!scenario.ok()) return scenario.status();
    scenarios.push_back(*std::move(scenario));
  }
  return scenarios;
}

int RunAll(const RunArguments& a) {
  if (absl::Status status = CheckControlPlane(a); !status.ok()) return Complain(status);
  std::vector<std::string> paths = a.paths;
  if (paths.empty() && a.from.empty()) {
    const char* const usual = std::getenv("WAVETANK_SCENARIO");
    if (usual == nullptr) return Complain(absl::InvalidArgumentError("name a scenario, or a log with --from"));
    paths.emplace_back(usual);
  }
  if (absl::Status status = CheckMetrics(a); !status.ok()) return Complain(status);
  const EndRequest end;
  Answers answers(a);
  int code = kOk;
  if (paths.empty()) {
    if (!a.settings.empty()) {
      return Complain(
          absl::InvalidArgumentError("--set: a log alone has no scenario to set anything in; leave it out"));
    }
    const absl::StatusOr<scenario::RunResult> result = RunLogAlone(a, end);
    if (!result.ok()) return Complain(result.status());
    code = answers.Add(*result, 0);
  }
  const absl::StatusOr<std::vector<scenario::Scenario>> scenarios = LoadAll(a, paths);
  if (!scenarios.ok()) return Complain(scenarios.status());
  std::vector<scenario::RunOptions> options;
  for (size_t i = 0; i < scenarios->size(); ++i) {
    absl::StatusOr<scenario::RunOptions> each = OptionsFor(a, &(*scenarios)[i], i);
    if (!each.ok()) return Complain(each.status());
    options.push_back(*std::move(each));
  }
  // What serves a real istiod still holds on to the world when the run has ended.
  if (!options.empty()) options.back().last = a.control_plane.program.empty();
  for (size_t i = 0; i < scenarios->size() && code <= kNo; ++i) {
    // A real istiod's log holds inputs alone, of which no mesh is made again.
    const LogForFindings log(!a.report.empty() && a.control_plane.program.empty() && a.from.empty(), &options[i].log);
    const absl::StatusOr<scenario::RunResult> result =
        RunOne(a, (*scenarios)[i], options[i], Place(a.metrics, a, i), end);
    if (!result.ok()) return Complain(result.status());
    code = std::max(code, answers.Add(*result, i, options[i].log));
  }
  answers.Finish();
  return a.from.empty() ? code : WithWholeness(code, a.from);
}

}  // namespace

void AddRun(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand("run", "Runs scenarios and judges their expectations");
  auto a = std::make_shared<RunArguments>();
  verb->add_option("scenario", a->paths,
                   "Scenario files, or folders with a scenario.yaml; $WAVETANK_SCENARIO if none is named");
  verb->add_option("--from", a->from,
                   "Event log (of `wavetank record`, say) that the mesh is taken from, instead of the scenario's "
                   "clusters, which it may leave out; without a scenario, shows what each of its changes came to");
  verb->add_option("--report", a->report, "Folder for report.html, results.json, junit.xml and topology.dot");
  verb->add_option("-o,--log", a->log,
                   "Event log to write, for `wavetank replay`; with a real istiod, of what was done alone");
  verb->add_option("--access-log", a->access_log,
                   "File for what the proxies' access logs say (accessLogFile, Telemetry), a line each after "
                   "cluster/namespace/pod, in order of time");
  verb->add_option("--metrics", a->metrics,
                   "File for the istiods' metrics in Prometheus' text, a sample of each series every "
                   "--metrics-interval of virtual time (docs/capacity.md)");
  verb->add_option("--metrics-interval", a->metrics_interval, "15s, as Prometheus scrapes")->capture_default_str();
  verb->add_option("--seed", a->seed, "Instead of the scenario's seed");
  AddSettings(verb, &a->settings);
  AddMending(verb, &a->mend, &a->date);
  AddCharts(verb);
  verb->add_flag("--strict", a->strict, "What a manifest says without effect here is an error");
  verb->add_option("--profile", a->profile, "Behaviour profile (`wavetank profiles` lists them)");
  verb->add_option(
      "--until", a->until,
      "End at this virtual time since the world's beginning, e.g. 30s or 1m30s, or after a step: \"'scaled to 3'+2s\"");
  verb->add_option("--control-plane", a->control_plane.program,
                   "A real istiod (pilot-discovery 1.18) serves the proxies, in real time");
  verb->add_option("--control-plane-dir", a->control_plane.folder, "Folder for its logs, which is kept");
  verb->add_option("--invariants", a->invariants,
                   "Watch these, `all` or names between commas (`wavetank invariants`); one that is broken is told, "
                   "with its causes, and is exit code 1 unless the profile is known for it");
  verb->add_flag("--json", a->json, "Results as JSON on standard output (docs/results.md)");
  verb->add_flag("-v,--verbose", a->verbose, "One row per proxy, and what each expectation found");
  OnlyWith(verb, {"--metrics-interval"}, "--metrics");
  OnlyWith(verb, {"--control-plane-dir"}, "--control-plane");
  NotWith(verb, {"--mend", "--date", "--strict"}, "--from");  // a log's mesh is as it was
  verb->footer(
      "Exit code 0: all expectations hold; 1: one does not; 2: the input is wrong; 3: the log of --from is not whole; "
      "130: ended by Ctrl-C, with what was found out until then.");
  verb->callback([a, &outcome] { outcome.code = RunAll(*a); });
}

}  // namespace wavetank::cli
