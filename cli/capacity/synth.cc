#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "capacity/fleet/churn.h"
#include "capacity/fleet/fleet.h"
#include "capacity/fleet/manifests.h"
#include "cli/verb.h"
#include "core/base/json_text.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"

namespace wavetank::cli {
namespace {

struct SynthArguments {
  std::string fleet, out;
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

int Run(const SynthArguments& a) {
  if (a.schema) {
    std::cout << JsonText(capacity::FleetSchema(), 1) << "\n";
    return kOk;
  }
  if (a.fleet.empty() || a.out.empty()) {
    return Complain(absl::InvalidArgumentError("name a fleet, and with -o a folder or an event log (.wtlog) to write"));
  }
  absl::StatusOr<capacity::Fleet> fleet = capacity::LoadFleet(a.fleet);
  if (!fleet.ok()) return Complain(fleet.status());
  if (a.seed) fleet->seed = *a.seed;
  const bool log = std::filesystem::path(a.out).extension() == ".wtlog";
  const absl::Status status = log ? WriteLog(*fleet, a.out) : WriteScenario(*fleet, a.out);
  if (!status.ok()) return Complain(status);
  std::cout << fmt::format("{}: {} clusters, {} services, {} endpoints, {} proxies\n", a.out, fleet->clusters,
                           fleet->clusters * fleet->services, TotalEndpoints(*fleet),
                           fleet->clusters * (fleet->proxies + fleet->gateways));
  return kOk;
}

}  // namespace

void AddSynth(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand("synth", "A fleet from a page of YAML, as a scenario's folder or an event log");
  auto a = std::make_shared<SynthArguments>();
  verb->add_option("fleet", a->fleet, "A fleet's YAML (docs/capacity.md)");
  verb->add_option("-o,--out", a->out, "Folder for scenario.yaml and manifests, or FILE.wtlog: the log of its run");
  verb->add_option("--seed", a->seed, "Instead of the fleet's seed");
  verb->add_flag("--schema", a->schema, "The JSON schema of fleets, for editors");
  verb->footer("Exit code 0: written; 2: the input is wrong.");
  verb->callback([a, &outcome] { outcome.code = Run(*a); });
}

}  // namespace wavetank::cli
