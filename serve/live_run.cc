#include "serve/live_run.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "serve/rest_watch.h"

namespace wavetank::serve {
namespace {

// How long proxies may take to connect and to settle: istiod lets only so many in per second.
constexpr Duration kSettleLimit = 2min;

constexpr Duration kLook = 100ms;

}  // namespace

int64_t LiveRun::Unconnected(const sim::World& world) {
  int64_t out = 0;
  for (const sim::PodProcess* pod : world.Pods())
    out += pod->envoy() != nullptr && !pod->envoy()->ads_connected() ? 1 : 0;
  return out;
}

void LiveRun::Attach(scenario::RunOptions* options) {
  options->on_up = [this, then = std::move(options->on_up)](sim::World& world) {
    if (absl::Status status = Begin(world); !status.ok()) return status;
    return then ? then(world) : absl::OkStatus();
  };
  options->on_step = [this, then = std::move(options->on_step)](sim::World& world, const scenario::Step& step) {
    if (absl::Status status = planes_->Check(); !status.ok()) {
      planes_->KeepLogs();
      return status;
    }
    return then ? then(world, step) : absl::OkStatus();
  };
  options->on_gone = [this, then = std::move(options->on_gone)] {
    planes_ = nullptr;
    loop_ = nullptr;
    if (then) then();
  };
}

absl::Status LiveRun::Begin(sim::World& world) {
  loop_ = std::make_unique<Loop>(world);
  loop_->NeverHurry();
  loop_->Drive();
  absl::StatusOr<std::unique_ptr<ControlPlanes>> planes = ControlPlanes::Start(*loop_, options_);
  if (!planes.ok()) return planes.status();
  planes_ = *std::move(planes);
  if (on_moved) on_moved();
  const Time deadline = world.Now() + kSettleLimit;
  while (Unconnected(world) > 0 && world.Now() < deadline) world.RunUntil(world.Now() + 50ms);
  if (const int64_t left = Unconnected(world); left > 0) {
    planes_->KeepLogs();
    return absl::DeadlineExceededError(
        fmt::format("{} proxies have not connected to the real istiods after {} s", left, kSettleLimit / 1s));
  }
  world.RunUntilSettled(deadline);
  planes_->Follow(assign);
  return planes_->Check();
}

bool LiveRun::RunUntilAtRest(sim::World& world, const Rest& rest) {
  // Real time, of which a world that falls behind loses some.
  using Clock = std::chrono::steady_clock;
  RestWatch watch(rest.quiet);
  const auto begin = Clock::now();
  watch.Stirred(begin);
  uint64_t before = rest.sent();
  while (Clock::now() - begin < rest.limit && planes_->Check().ok()) {
    world.RunUntil(world.Now() + kLook);
    const auto now = Clock::now();
    const bool settled = rest.unready ? world.SettledButForPods() : world.Settled();
    if (const uint64_t count = rest.sent(); count != std::exchange(before, count) || !settled || planes_->Beginning() ||
                                            Unconnected(world) > rest.unconnected)
      watch.Stirred(now);
    Duration worked{};
    for (const ControlPlanes::Where& istiod : planes_->where()) worked += ProcessorTime(istiod.pid);
    if (watch.Look(now, worked)) return true;
  }
  return false;
}

}  // namespace wavetank::serve
