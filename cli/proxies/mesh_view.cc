#include "cli/proxies/mesh_view.h"

#include <CLI/CLI.hpp>

#include "cli/mesh_arguments.h"
#include "cli/verb.h"
#include "core/base/time.h"
#include "fmt/format.h"
#include "replay/world_target.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"
#include "sim/world.h"

namespace wavetank::cli {

void MeshViewArguments::AddTo(CLI::App* verb) {
  verb->add_option("--at", at,
                   "As it is at this virtual time since the world's beginning (30s), or after a step of a scenario "
                   "(\"'scaled to 3'+2s\")");
  verb->add_option("--step", step, "Run this many steps of a scenario (default: all); 0 only brings the mesh up");
  verb->add_option("--profile", profile, "Behaviour profile, instead of the scenario's");
}

absl::Status LookAtMesh(const MeshViewArguments& a, const Look& look) {
  serve::HeldConfig held;
  absl::Status looked;
  Progress progress;
  scenario::RunOptions options;
  options.profile = a.profile;
  options.until_step = a.step;
  options.progress = [&](std::string_view what) { progress.Say(what); };
  options.on_world = [&](sim::World& world) { held.Watch(world); };
  options.on_end = [&](sim::World& world) { looked = look(world, held); };
  absl::StatusOr<scenario::RunResult> result;
  if (replay::LooksLikeLog(a.source)) {
    if (a.step) return absl::InvalidArgumentError("--step is of scenarios; a log has no steps: take --at");
    options.from = a.source;
    if (!a.at.empty()) {
      absl::StatusOr<scenario::Moment> at = ParseMomentOf("--at", a.at, nullptr);
      if (!at.ok()) return at.status();
      options.until = *std::move(at);
    }
    result = scenario::RunLog(options);
  } else {
    absl::StatusOr<scenario::Scenario> scenario = scenario::LoadScenario(a.source);
    if (!scenario.ok()) return scenario.status();
    if (!a.at.empty()) {
      absl::StatusOr<scenario::Moment> at = ParseMomentOf("--at", a.at, &*scenario);
      if (!at.ok()) return at.status();
      options.until = *std::move(at);
    }
    result = scenario::Run(*scenario, options);
  }
  return result.ok() ? looked : result.status();
}

}  // namespace wavetank::cli
