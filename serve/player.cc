#include "serve/player.h"

#include <algorithm>
#include <utility>

#include "core/base/status.h"
#include "fmt/format.h"
#include "scenarios/actions/action.h"
#include "scenarios/mesh/world.h"
#include "sim/inputs/kinds/traffic.h"

namespace wavetank::serve {
namespace {

constexpr Duration kTrafficLimit = 10min;
constexpr Duration kQuiet = 1s, kStoryLook = 50ms;
constexpr Duration kLeadIn = 500ms;  // traffic meanwhile begins before the wave, as in a run

}  // namespace

Player::Player(Loop& loop, const scenario::Scenario& scenario, std::function<void(std::string)> report)
    : loop_(loop), scenario_(scenario), report_(std::move(report)), start_(std::chrono::steady_clock::now()) {
  thread_ = std::thread([this] { Run(); });
}

Player::~Player() {
  stop_.Raise();
  thread_.join();
}

void Player::Run() {
  absl::StatusOr<std::vector<std::string>> throughout =
      scenario_.throughout ? StartTraffic(scenario_.throughout->meanwhile) : std::vector<std::string>();
  if (throughout.ok()) {
    Steps();
    StopTraffic(*throughout);
  } else if (!stop_.raised()) {
    report_(fmt::format("throughout: {}", Message(throughout.status())));
  }
}

void Player::Steps() {
  for (size_t i = 0; i < scenario_.steps.size(); ++i) {
    const scenario::Step& step = scenario_.steps[i];
    if (const std::optional<Instant> due = Due(step); due && !stop_.Wait(Left(*due))) return;
    if (!stop_.Wait(step.after)) return;
    began_[step.name] = std::chrono::steady_clock::now();
    next_at_ = i + 1 < scenario_.steps.size() ? Due(scenario_.steps[i + 1]) : std::nullopt;
    report_(fmt::format("step '{}'", step.name));
    if (absl::Status status = Play(step); !status.ok()) {
      if (!stop_.raised()) report_(fmt::format("step '{}': {}", step.name, Message(status)));
      return;
    }
  }
  if (!stop_.raised()) report_("all steps were played");
}

std::optional<Player::Instant> Player::Due(const scenario::Step& step) const {
  if (!step.at) return std::nullopt;
  const auto earlier = began_.find(step.at_step);
  return (earlier == began_.end() ? start_ : earlier->second) + *step.at;
}

Duration Player::Left(Instant at) { return std::max<Duration>(at - std::chrono::steady_clock::now(), 0ns); }

bool Player::Until(const std::function<bool(sim::World&)>& done, Duration limit) {
  // A step that says when it begins begins then, also while others write on and the mesh finds no quiet.
  if (next_at_) limit = std::min(limit, Left(*next_at_));
  for (Duration waited{}; waited < limit; waited += kStoryLook) {
    const std::optional<bool> answer = loop_.Call(done);
    if (!answer || !stop_.Wait(*answer ? 0ns : kStoryLook)) return false;
    if (*answer) return true;
  }
  return true;
}

absl::Status Player::Act(const scenario::Action& action) {
  scenario::Inputs inputs = scenario::MakeInputs(scenario_, action, nullptr);
  if (!inputs.ok()) return inputs.status();
  for (const sim::Input& input : *inputs) {
    const auto status = loop_.Call([&](sim::World& world) { return world.Do(input); });
    if (!status) return absl::CancelledError("the loop has stopped");
    if (!status->ok()) return *status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> Player::StartTraffic(const std::vector<scenario::Traffic>& traffic) {
  std::vector<std::string> ids;
  for (const scenario::Traffic& each : traffic) {
    ids.push_back(fmt::format("{}#{}", each.flow, traffic_count_++));
    const sim::Input input = scenario::MakeTraffic(*scenario_.FindFlow(each.flow), each, ids.back());
    const auto status = loop_.Call([&](sim::World& world) { return world.Do(input); });
    if (!status) return absl::CancelledError("the loop has stopped");
    if (!status->ok()) return *status;
  }
  return ids;
}

void Player::StopTraffic(const std::vector<std::string>& ids) {
  for (const std::string& id : ids) {
    loop_.Call([&](sim::World& world) { return world.Do(sim::inputs::StopTraffic{id}); });
  }
}

absl::Status Player::Play(const scenario::Step& step) {
  const absl::Status over = absl::CancelledError("the server is going down");
  absl::StatusOr<std::vector<std::string>> meanwhile = StartTraffic(step.meanwhile);
  if (!meanwhile.ok()) return meanwhile.status();
  if (!meanwhile->empty() && !stop_.Wait(kLeadIn)) return over;
  const size_t times = step.repeat == 0 ? step.actions.size() : static_cast<size_t>(step.repeat);
  for (size_t i = 0; i < times && !step.actions.empty(); ++i) {
    if (i > 0 && step.repeat > 0 && !stop_.Wait(step.every)) return over;
    if (absl::Status status = Act(step.actions[i % step.actions.size()]); !status.ok()) return status;
  }
  const auto settled = [](sim::World& world) {
    return world.Settled() && world.Now() - world.last_control_plane_event() >= kQuiet;
  };
  if (!step.actions.empty() && !Until(settled, step.settle.value_or(scenario_.settle))) return over;
  if (!meanwhile->empty()) {
    if (!stop_.Wait(step.linger)) return over;
    StopTraffic(*meanwhile);
  }
  absl::StatusOr<std::vector<std::string>> then = StartTraffic(step.then);
  if (!then.ok()) return then.status();
  const auto done = [&](sim::World& world) {
    return std::all_of(then->begin(), then->end(), [&](const std::string& id) { return world.TrafficDone(id); });
  };
  return Until(done, kTrafficLimit) ? absl::OkStatus() : over;
}

}  // namespace wavetank::serve
