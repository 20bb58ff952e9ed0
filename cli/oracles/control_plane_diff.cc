#include "oracles/control_plane/control_plane_diff.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/mesh_arguments.h"
#include "cli/verb.h"
#include "core/base/duration.h"
#include "core/base/json_text.h"
#include "fmt/format.h"
#include "scenarios/reader/read_scenario.h"

namespace wavetank::cli {
namespace {

struct ControlPlaneDiffArguments {
  std::string path;
  std::vector<std::string> environment;
  serve::DiffOptions options;
  std::string patience = "5s", quiet = "1500ms", limit = "60s", longest_wait;
  bool json = false;
};

int RunDiff(ControlPlaneDiffArguments a) {
  absl::StatusOr<scenario::Scenario> scenario = scenario::LoadScenario(a.path);
  if (!scenario.ok()) return Complain(scenario.status());
  const std::optional<Duration> patience = ParseDuration(a.patience);
  if (!patience || *patience < 0s) {
    return Complain(absl::InvalidArgumentError("--patience '" + a.patience + "' is no duration; write 5s or 500ms"));
  }
  a.options.patience = *patience;
  const std::optional<Duration> quiet = ParseDuration(a.quiet);
  if (!quiet || *quiet <= 0s) {
    return Complain(absl::InvalidArgumentError("--quiet '" + a.quiet + "' is no duration above 0; write 1500ms or 3s"));
  }
  a.options.real_quiet = *quiet;
  const std::optional<Duration> limit = ParseDuration(a.limit);
  if (!limit || *limit <= 0s) {
    return Complain(
        absl::InvalidArgumentError("--rest-limit '" + a.limit + "' is no duration above 0; write 60s or 6m"));
  }
  a.options.rest_limit = *limit;
  if (!a.longest_wait.empty()) {
    const std::optional<Duration> wait = ParseDuration(a.longest_wait);
    if (!wait || *wait <= 0s) {
      return Complain(
          absl::InvalidArgumentError("--longest-wait '" + a.longest_wait + "' is no duration above 0; write 45s"));
    }
    a.options.longest_wait = *wait;
  }
  for (const std::string& text : a.environment) {
    const auto pair = SplitPair(text, "--control-plane-env");
    if (!pair.ok()) return Complain(pair.status());
    a.options.control_plane.environment[pair->first] = pair->second;
  }
  absl::StatusOr<serve::DiffResult> result = [&] {
    Progress progress;
    a.options.progress = [&](std::string_view what) { progress.Say(what); };
    return serve::DiffControlPlanes(*scenario, a.options);
  }();
  if (!result.ok()) return Complain(result.status());
  if (a.json) {
    std::cout << JsonText(serve::ToJson(*result), 1) << "\n";
  } else {
    std::cout << serve::DifferencesText(*result);
    Rows rows = {{"AFTER", "PROXIES", "RESOURCES", "DIFFERENCES"}};
    for (const serve::StepDifferences& step : result->steps) {
      size_t count = 0;
      for (const serve::ProxyDifferences& proxy : step.differences) count += proxy.differences.size();
      rows.push_back({step.name, std::to_string(step.proxies), std::to_string(step.resources),
                      step.not_judged.empty() ? std::to_string(count) : "not judged"});
    }
    PrintTable(rows);
  }
  if (!result->Equal()) return kNo;
  return result->Judged() ? kOk : kNotWhole;
}

}  // namespace

void AddControlPlaneDiff(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand(
      "control-plane-diff",
      "Runs a scenario with our control plane and with a real istiod, and compares what proxies hold");
  auto a = std::make_shared<ControlPlaneDiffArguments>();
  verb->add_option("scenario", a->path, "A scenario file, or a folder with a scenario.yaml")->required();
  verb->add_option("--control-plane", a->options.control_plane.program, "The real one: pilot-discovery 1.18")
      ->required();
  verb->add_option("--control-plane-dir", a->options.control_plane.folder,
                   "Folder for its logs and working folders, which is kept (default: a temporary one)");
  verb->add_option("--control-plane-env", a->environment, "NAME=VALUE for its environment, any number of times");
  verb->add_option("--control-plane-dns", a->options.control_plane.dns,
                   "Address of loopback at which the world's DNS answers the first real istiod, each further one an "
                   "address above (127.0.0.53; as root; without it they ask this machine's resolver)");
  verb->add_option("--profile", a->options.profile, "Behaviour profile of ours");
  verb->add_option("--quiet", a->quiet,
                   "How long real istiods must have nothing to do before what they sent is compared")
      ->capture_default_str();
  verb->add_option("--patience", a->patience, "How long a difference must last then: what is merely late is none")
      ->capture_default_str();
  verb->add_option("--rest-limit", a->limit,
                   "How long after a step to wait until real istiods have nothing to do, before the step is not judged")
      ->capture_default_str();
  verb->add_option("--longest-wait", a->longest_wait,
                   "Waits of steps are cut to that on both sides, since the real one waits in real time: 45s");
  verb->add_flag("--json", a->json, "Differences as JSON on standard output");
  verb->add_flag("--diff", a->options.unified_diff, "Unified diffs too");
  verb->footer(
      "Exit code 0: all proxies hold the same after every step; 1: something differs; 2: the scenario cannot be read, "
      "or the real control plane cannot be run; 3: nothing differs, but after some step a side never came to rest. The "
      "real one takes real time: as long as the scenario's waits.");
  verb->callback([a, &outcome] { outcome.code = RunDiff(*a); });
}

}  // namespace wavetank::cli
