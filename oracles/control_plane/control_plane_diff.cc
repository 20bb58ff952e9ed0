#include "oracles/control_plane/control_plane_diff.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/istiod/istiod.h"
#include "core/kube/time_format.h"
#include "core/xds/connection.h"
#include "core/xds/discovery_server.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "oracles/control_plane/asked_besides.h"
#include "oracles/control_plane/held_mesh.h"
#include "oracles/control_plane/mesh_comparison.h"
#include "scenarios/actions/action.h"
#include "scenarios/runner/runner.h"
#include "serve/live_run.h"

namespace wavetank::serve {
namespace {

constexpr const char* kUp = "the mesh is up";
// So long answers to what is asked besides may take; virtual time of ours.
constexpr Duration kAnswerLimit = 10s;
// Ours: what has not come to rest by then never will.
constexpr Duration kOursLimit = 10min;

// So often a comparison may be disturbed by what is sent meanwhile.
constexpr int kDisturbances = 10;

// So long all pods may take to become ready before the mesh is held to be at rest without some of them; virtual time.
constexpr Duration kPodsLimit = 1min;
// While pods are not ready nothing tells whether they are about to be: longer than a start takes.
constexpr Duration kQuietWithoutPods = 5s;

struct OursAfterStep {
  HeldMesh mesh;
  std::string not_judged;
  bool unready = false;                          // it is at rest, but for pods that do not become ready
  int64_t unconnected = 0;                       // proxies without an istiod
  std::map<std::string, std::string> connected;  // proxy -> the istiod that it is connected with
};

// As World::RunUntilSettled, or at rest but for pods that do not become ready: nothing was sent meanwhile.
bool RunUntilAtRest(sim::World& world, const HeldCollector& held, Duration quiet, bool* unready) {
  const Time begin = world.Now(), deadline = begin + kOursLimit;
  while (world.Now() < deadline) {
    if (world.RunUntilSettled(std::min(deadline, world.Now() + 1s), quiet)) return true;
    *unready = world.Now() - begin >= kPodsLimit && world.SettledButForPods() &&
               world.Now() - held.last() >= std::max(quiet, kQuietWithoutPods);
    if (*unready) return true;
  }
  return false;
}

// Proxies by their names in traces, with the istiods that serve them.
std::map<std::string, std::string> Connected(sim::World& world) {
  std::map<std::string, std::string> out;
  for (const sim::IstiodProcess* istiod : world.Istiods()) {
    for (const pilot::Connection* connection : istiod->istiod().discovery().Clients()) {
      out[world.kernel().names().Text(connection->trace_name())] = istiod->istiod().options().name;
    }
  }
  return out;
}

// Our control plane, as it is after an istiod's restart: the real one begins there, and what a cache kept from before
// would show as a difference that is none.
void Restart(sim::World& world, HeldCollector& held) {
  for (const sim::WorldCluster& cluster : world.options().clusters) {
    sim::IstiodProcess* istiod = cluster.primary() ? world.IstiodOf(cluster.name) : nullptr;
    if (istiod == nullptr) continue;
    pilot::DiscoveryServer& discovery = istiod->istiod().discovery();
    discovery.cache().ClearAll(world.Now());
    // What one push context leaves to the next (access logs of a provider whose Service came later, say) goes with a
    // push that names nothing.
    pilot::PushRequest everything;
    everything.full = true;
    everything.reasons = pilot::Reason(pilot::TriggerReason::kGlobal);
    discovery.ConfigUpdate(std::move(everything));
  }
  held.Forget();
  world.MoveAds(nullptr);
}

OursAfterStep LookAtOurs(sim::World& world, HeldCollector& held, const DiffOptions& options) {
  OursAfterStep out;
  if (!RunUntilAtRest(world, held, options.ours_quiet, &out.unready)) {
    const std::vector<std::string> busy = world.AtWork();
    out.not_judged = fmt::format("ours did not come to rest within {} virtual minutes{}{}", kOursLimit / 1min,
                                 busy.empty() ? "" : ": ", fmt::join(busy, "; "));
  }
  AskBesides(world, held, kAnswerLimit);
  out.mesh = held.Look(world);
  out.unconnected = LiveRun::Unconnected(world);
  out.connected = Connected(world);
  return out;
}

absl::StatusOr<std::vector<OursAfterStep>> RunOurs(const scenario::Scenario& scenario, scenario::RunOptions run,
                                                   const DiffOptions& options) {
  std::vector<OursAfterStep> out;
  HeldCollector held;
  run.on_world = [&](sim::World& world) { held.Listen(world); };
  run.on_up = [&](sim::World& world) {
    Restart(world, held);
    out.push_back(LookAtOurs(world, held, options));
    return absl::OkStatus();
  };
  run.on_step = [&](sim::World& world, const scenario::Step&) {
    out.push_back(LookAtOurs(world, held, options));
    return absl::OkStatus();
  };
  if (auto result = scenario::Run(scenario, run); !result.ok()) return result.status();
  return out;
}

// The real side of one run.
class RealSide {
 public:
  RealSide(const DiffOptions& options, const std::vector<OursAfterStep>& ours)
      : options_(options), ours_(ours), live_(options.control_plane), comparison_(options) {}

  absl::Status Run(const scenario::Scenario& scenario, scenario::RunOptions run) {
    // An istiod that waits for a slow API server looks as if it had nothing to do.
    for (const scenario::Step& step : scenario.steps) {
      for (const scenario::Action& action : step.actions) {
        if (action.kind == "apiServer")
          slowest_ = std::max(slowest_, scenario::Arguments(action).Time("latency").value_or(Duration::zero()));
      }
    }
    run.on_world = [this](sim::World& world) { held_.Listen(world); };
    run.on_up = [this](sim::World& world) { return Judge(world, kUp); };
    run.on_step = [this](sim::World& world, const scenario::Step& step) { return Judge(world, step.name); };
    live_.on_moved = [this] { held_.Forget(); };
    // A proxy that connects anew in a step does so with the istiod that ours took after it.
    live_.assign = [this](const std::string& proxy) {
      const auto& connected = ours_[std::min(steps_.size(), ours_.size() - 1)].connected;
      const auto with = connected.find(proxy);
      return with == connected.end() ? std::string() : with->second;
    };
    live_.Attach(&run);
    return scenario::Run(scenario, run).status();
  }
  std::vector<StepDifferences> Take() { return std::move(steps_); }

 private:
  absl::Status Judge(sim::World& world, const std::string& step) {
    const OursAfterStep& expected = ours_[steps_.size()];
    const Duration quiet =
        std::max({options_.real_quiet, 2 * world.timing().debounce_after + 500ms, 2 * slowest_ + 500ms});
    StepDifferences out;
    std::string not_judged = expected.not_judged;
    int disturbed = 0;
    for (std::optional<Time> first_rest; not_judged.empty();) {
      if (!live_.RunUntilAtRest(world, {.sent = [this] { return held_.count(); },
                                        .quiet = expected.unready ? std::max(quiet, kQuietWithoutPods) : quiet,
                                        .limit = options_.rest_limit,
                                        .unready = expected.unready,
                                        .unconnected = expected.unconnected})) {
        // What of the world stirs is told: our istiods run in it, too, and may never agree with the real ones.
        const std::vector<std::string> busy = world.AtWork();
        not_judged = fmt::format("the real one did not come to rest within {} s{}{}", options_.rest_limit / 1s,
                                 busy.empty() ? "" : ": ", fmt::join(busy, "; "));
        break;
      }
      if (!first_rest) first_rest = world.Now();
      const uint64_t before = held_.count();
      AskBesides(world, held_, kAnswerLimit);
      if (!Compare(world, expected.mesh, before)) {
        if (++disturbed < kDisturbances) continue;
        not_judged = "the real one sent something during every comparison";
        break;
      }
      out = comparison_.Take();
      if (out.differences.empty() || world.Now() >= *first_rest + options_.patience) break;
    }
    out.name = step;
    out.not_judged = std::move(not_judged);
    steps_.push_back(std::move(out));
    return live_.planes()->Check();
  }

  // In slices, between which the API servers that the real istiods watch answer. False: it was disturbed.
  bool Compare(sim::World& world, const HeldMesh& ours, uint64_t count) {
    comparison_.Begin(held_.Look(world), ours);
    while (comparison_.Slice()) {
      world.RunUntil(world.Now() + 1ms);
      if (held_.count() != count) return false;
    }
    return true;
  }

  const DiffOptions& options_;
  const std::vector<OursAfterStep>& ours_;
  HeldCollector held_;
  LiveRun live_;
  MeshComparison comparison_;
  std::vector<StepDifferences> steps_;
  Duration slowest_{};  // of the answers of API servers, as the scenario slows them
};

}  // namespace

bool DiffResult::Equal() const {
  return std::all_of(steps.begin(), steps.end(), [](const StepDifferences& step) { return step.differences.empty(); });
}

bool DiffResult::Judged() const {
  return std::all_of(steps.begin(), steps.end(), [](const StepDifferences& step) { return step.not_judged.empty(); });
}

absl::StatusOr<DiffResult> DiffControlPlanes(const scenario::Scenario& scenario, const DiffOptions& options) {
  if (absl::Status status = CheckProgram(options.control_plane.program); !status.ok()) return status;
  scenario::Scenario quiet = scenario;
  quiet.throughout.reset();
  int64_t restarts = 0;
  for (scenario::Step& step : quiet.steps) {
    step.meanwhile.clear();
    step.then.clear();
    step.expectations.clear();
    // The real side waits in real time: what the scenario waits for is cut short on both.
    if (options.longest_wait > Duration::zero()) {
      step.after = std::min(step.after, options.longest_wait);
      step.linger = std::min(step.linger, options.longest_wait);
      if (step.at) step.after = options.longest_wait;
      step.at.reset();
    }
    // Names of pods that are made anew tell when, so both sides are told the same.
    for (scenario::Action& action : step.actions) {
      if (action.kind != "restart" || action.arguments.contains("at")) continue;
      action.arguments["at"] = kube::FormatRfc3339(kWorldEpochUnixSeconds + ++restarts);
    }
  }
  const auto options_for = [&](std::string_view who) {
    scenario::RunOptions out;
    out.profile = options.profile;
    if (options.progress) {
      out.progress = [&options, who](std::string_view what) { options.progress(fmt::format("{}: {}", who, what)); };
    }
    return out;
  };
  const absl::StatusOr<std::vector<OursAfterStep>> ours = RunOurs(quiet, options_for("ours"), options);
  if (!ours.ok()) return ours.status();
  // Whether it has come to rest is judged after each step; a world that never does is not waited for twice.
  for (scenario::Step& step : quiet.steps)
    step.settle = std::min(step.settle.value_or(quiet.settle), options.rest_limit);
  RealSide real(options, *ours);
  if (absl::Status status = real.Run(quiet, options_for("real")); !status.ok()) return status;
  return DiffResult{scenario.name, real.Take()};
}

}  // namespace wavetank::serve
