#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>

#include "cli/verb.h"
#include "core/base/json_text.h"
#include "reports/report.h"
#include "scenarios/runner.h"
#include "scenarios/yaml_reader.h"
#include "serve/live_run.h"

namespace wavetank::cli {
namespace {

struct RunArguments {
  std::vector<std::string> paths;
  std::string report, log, access_log, profile, until, from;
  std::optional<uint64_t> seed;
  bool json = false, verbose = false;
  serve::ControlPlaneOptions control_plane;
};

// Where the files of one of several scenarios go.
std::string Place(const std::string& base, const RunArguments& a, size_t index) {
  return base.empty() || a.paths.size() <= 1 ? base : base + "-" + std::to_string(index + 1);
}

// A log alone: what each of its changes came to.
int RunLog(const RunArguments& a, const scenario::RunOptions& options) {
  absl::StatusOr<scenario::RunResult> result = scenario::RunLog(options);
  if (!result.ok()) return Complain(result.status());
  if (a.json) {
    std::cout << JsonText(report::ResultsJson(*result), 1) << "\n";
  } else {
    std::cout << report::TerminalTables(*result, {ColourWanted(), a.verbose}) << std::flush;
  }
  if (!a.report.empty()) {
    if (absl::Status status = report::WriteReports(a.report, *result); !status.ok()) return Complain(status);
    if (!a.json) std::cout << "report in " << a.report << "/report.html\n";
  }
  return kOk;
}

int RunAll(const RunArguments& a) {
  int code = kOk;
  const bool live = !a.control_plane.program.empty();
  if (live && !a.from.empty()) {
    return Complain(absl::InvalidArgumentError(
        "--control-plane: a run with a real istiod takes a scenario and no log; leave out --from"));
  }
  if (live) {
    if (absl::Status status = serve::CheckProgram(a.control_plane.program); !status.ok()) return Complain(status);
  }
  std::vector<std::string> paths = a.paths;
  if (paths.empty() && a.from.empty()) {
    const char* const usual = std::getenv("WAVETANK_SCENARIO");
    if (usual == nullptr) return Complain(absl::InvalidArgumentError("name a scenario, or a log with --from"));
    paths.emplace_back(usual);
  }
  if (paths.empty()) {
    scenario::RunOptions options;
    options.seed = a.seed;
    options.profile = a.profile;
    options.log = a.log;
    options.access_log = a.access_log;
    options.from = a.from;
    if (!a.until.empty()) {
      options.until = scenario::ParseDuration(a.until);
      if (!options.until) {
        return Complain(absl::InvalidArgumentError("--until '" + a.until + "' is no duration; write 10s or 250ms"));
      }
    }
    return RunLog(a, options);
  }
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  // Every input is read before the first one runs, so that a typo in the last costs no waiting.
  std::vector<scenario::Scenario> scenarios;
  std::vector<scenario::ClusterSpec> mesh;
  if (!a.from.empty()) {
    absl::StatusOr<std::vector<scenario::ClusterSpec>> clusters = scenario::ClustersOfLog(a.from);
    if (!clusters.ok()) return Complain(clusters.status());
    mesh = *std::move(clusters);
  }
  for (const std::string& path : paths) {
    absl::StatusOr<scenario::Scenario> scenario = scenario::LoadScenario(path, mesh);
    if (!scenario.ok()) return Complain(scenario.status());
    scenarios.push_back(*std::move(scenario));
  }
  for (size_t i = 0; i < scenarios.size(); ++i) {
    scenario::RunOptions options;
    options.seed = a.seed;
    options.profile = a.profile;
    options.log = Place(a.log, a, i);
    options.access_log = Place(a.access_log, a, i);
    options.from = a.from;
    if (!a.until.empty()) {
      options.until = scenario::ParseDuration(a.until);
      if (!options.until) {
        return Complain(absl::InvalidArgumentError("--until '" + a.until + "' is no duration; write 10s or 250ms"));
      }
    }
    absl::StatusOr<scenario::RunResult> result = [&] {
      Progress progress;
      options.progress = [&](std::string_view what) { progress.Say(what); };
      serve::LiveRun real(a.control_plane);
      options.real_istiod = live;
      if (live) real.Attach(&options);
      return scenario::Run(scenarios[i], options);
    }();
    if (!result.ok()) return Complain(result.status());
    // A real istiod tells nothing of its queues.
    for (scenario::StepResult& step : result->steps) {
      if (live) step.convergence.connected = -1;
    }
    if (a.json) {
      all.push_back(report::ResultsJson(*result));
    } else {
      std::cout << (i == 0 ? "" : "\n") << report::TerminalTables(*result, {ColourWanted(), a.verbose}) << std::flush;
    }
    if (!a.report.empty()) {
      const std::string place = Place(a.report, a, i);
      if (absl::Status status = report::WriteReports(place, *result); !status.ok()) return Complain(status);
      if (!a.json) std::cout << "report in " << place << "/report.html\n";
    }
    if (!result->Passed()) code = kNo;
  }
  if (a.json) std::cout << JsonText((all.size() == 1 ? all[0] : all), 1) << "\n";
  return code;
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
  verb->add_option("--seed", a->seed, "Instead of the scenario's seed");
  verb->add_option("--profile", a->profile, "Behaviour profile, e.g. istio-1.18+gateway-once-per-cla");
  verb->add_option("--until", a->until, "Stop at this virtual time, e.g. 30s");
  verb->add_option("--control-plane", a->control_plane.program,
                   "A real istiod (pilot-discovery 1.18) serves the proxies, in real time");
  verb->add_option("--control-plane-dir", a->control_plane.folder, "Folder for its logs, which is kept");
  verb->add_flag("--json", a->json, "Results as JSON on standard output");
  verb->add_flag("-v,--verbose", a->verbose, "One row per proxy, and what each expectation found");
  verb->footer("Exit code 0: all expectations hold; 1: one does not; 2: the input is wrong.");
  verb->callback([a, &outcome] { outcome.code = RunAll(*a); });
}

}  // namespace wavetank::cli
