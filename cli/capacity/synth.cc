#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "capacity/fleet/fleet.h"
#include "capacity/fleet/fleet_text.h"
#include "capacity/fleet/manifests.h"
#include "cli/capacity/fleet_argument.h"
#include "cli/verb.h"
#include "core/base/json_text.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "replay/world_target.h"
#include "reports/page.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"

namespace wavetank::cli {
namespace {

struct SynthArguments {
  FleetArgument fleet;
  std::string like, out;
  std::optional<uint64_t> seed;
  bool schema = false;
};

// The folder, and beside it the log of its run.
absl::Status WriteLog(const capacity::Fleet& fleet, const std::string& path) {
  const std::string folder = path + ".d";
  if (absl::Status status = WriteScenario(fleet, folder); !status.ok()) return status;
  const absl::StatusOr<scenario::Scenario> scenario = scenario::LoadScenario(folder);
  if (!scenario.ok()) return scenario.status();
  Progress progress;
  scenario::RunOptions options;
  options.log = path;
  options.progress = [&](std::string_view what) { progress.Say(what); };
  const absl::StatusOr<scenario::RunResult> result = Run(*scenario, options);
  return result.status();
}

int Run(SynthArguments a) {
  if (a.schema) {
    std::cout << JsonText(capacity::FleetSchema(), 1) << "\n";
    return kOk;
  }
  if (a.fleet.path.empty() == a.like.empty() || a.out.empty()) {
    return Complain(absl::InvalidArgumentError(
        "name a fleet or --like LOG, and with -o a folder, an event log (.wtlog) or a page (.yaml) to write"));
  }
  if (!a.like.empty() && !replay::LooksLikeLog(a.like)) {
    return Complain(absl::InvalidArgumentError(
        fmt::format("--like {}: no event log; `run -o`, `record` and `import` write one", a.like)));
  }
  if (!a.like.empty()) a.fleet.path = a.like;
  absl::StatusOr<capacity::RecordedFleet> read = ReadFleet(a.fleet);
  if (!read.ok()) return Complain(read.status());
  capacity::Fleet& fleet = read->fleet;
  if (a.seed) fleet.seed = *a.seed;
  const std::string extension = std::filesystem::path(a.out).extension();
  absl::Status status;
  if (extension == ".yaml" || extension == ".yml") {
    status = report::WriteWhole(a.out, capacity::FleetText(fleet, read->notes));
  } else {
    status = extension == ".wtlog" ? WriteLog(fleet, a.out) : WriteScenario(fleet, a.out);
    const std::vector<std::string> left_out = LeftOut(fleet);
    for (const std::string& what : left_out) read->notes.push_back("left out: " + what);
  }
  if (!status.ok()) return Complain(status);
  // As `plan` counts them: one that several clusters share is one.
  std::cout << fmt::format("{}: {} clusters, {} services, {} endpoints, {} proxies\n", a.out, fleet.clusters,
                           static_cast<int64_t>(SizeOf(fleet).services), TotalEndpoints(fleet),
                           fleet.clusters * (fleet.proxies + fleet.gateways));
  SayNotes(read->notes);
  return kOk;
}

}  // namespace

void AddSynth(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand(
      "synth", "A fleet from a page of YAML, or like a log's mesh, as a scenario's folder, an event log or a page");
  auto a = std::make_shared<SynthArguments>();
  verb->add_option("fleet", a->fleet.path, "A fleet's YAML (docs/capacity.md)");
  verb->add_option("--like", a->like, "Event log whose mesh and churn it takes instead");
  verb->add_option("--scale", a->fleet.scale, "So many times the services, proxies, nodes and their churn, as 10x");
  verb->add_option(
      "-o,--out", a->out,
      "Folder for scenario.yaml and manifests; FILE.wtlog: the log of its run; FILE.yaml: the fleet's page");
  verb->add_option("--seed", a->seed, "Instead of the fleet's seed");
  verb->add_option("--secrets", a->fleet.secrets, "Manifests with the keys that a log only has digests of");
  verb->add_flag("--schema", a->schema, "The JSON schema of fleets, for editors");
  NotWith(verb, {"fleet", "--like", "--scale", "--out", "--seed", "--secrets"}, "--schema");
  verb->footer("Exit code 0: written; 2: the input is wrong.");
  verb->callback([a, &outcome] { outcome.code = Run(*a); });
}

}  // namespace wavetank::cli
