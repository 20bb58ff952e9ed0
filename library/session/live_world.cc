#include "library/session/live_world.h"

#include <algorithm>

#include "core/base/bounds.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "fmt/format.h"
#include "replay/world_recorder.h"
#include "scenarios/actions/action.h"
#include "scenarios/mesh/manifests.h"
#include "scenarios/mesh/world.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/start.h"
#include "sim/inputs/kinds/traffic.h"

namespace wavetank::session {

using nlohmann::json;

namespace {
constexpr Duration kStartLimit = 5min;
}  // namespace

LiveWorld::LiveWorld(scenario::Scenario scenario, std::unique_ptr<sim::World> world)
    : scenario_(std::move(scenario)),
      clusters_(scenario_.clusters),
      world_(std::move(world)),
      convergence_(world_->kernel()),
      unrest_(*world_),
      addresses_(*world_) {
  subscriptions_.Add(world_->on_input.Add([this](uint64_t number, Time at, const sim::Input& input) {
    inputs_.push_back({number, at, input});
  }));
  subscriptions_.Add(world_->commons().on_request.Add([this](const sim::TrafficRecord& record) {
    if (const auto it = sending_.find(record.spec.id); it != sending_.end()) it->second.account.Add(record);
    if (on_request) on_request(record);
  }));
}

absl::StatusOr<std::unique_ptr<LiveWorld>> LiveWorld::Open(scenario::Scenario scenario,
                                                           const std::function<void(sim::World&)>& on_world) {
  absl::StatusOr<scenario::StartPhases> start = scenario::MakeStart(scenario);
  if (!start.ok()) return start.status();
  scenario::DateByCertificates(*start, &scenario, &start->notes);
  absl::StatusOr<std::unique_ptr<sim::World>> world = sim::World::Create(scenario::MakeWorldOptions(scenario));
  if (!world.ok()) return absl::InvalidArgumentError(fmt::format("{}: {}", scenario.file, Message(world.status())));
  if (on_world) on_world(**world);
  std::unique_ptr<LiveWorld> out(new LiveWorld(std::move(scenario), *std::move(world)));
  if (absl::Status status = out->Start(*start); !status.ok()) return status;
  return out;
}

absl::Status LiveWorld::Start(const scenario::StartPhases& start) {
  notes_ = start.notes;
  for (const std::vector<sim::Input>& phase : start.phases) {
    for (const sim::Input& input : phase) {
      if (absl::Status status = world_->Do(input); !status.ok()) return scenario::AtItsPlace(scenario_, input, status);
    }
    if (Settle(kStartLimit)) continue;
    notes_.push_back("the mesh has not settled after 5 minutes");
    for (const std::string& reason : AtWork()) notes_.push_back("not at rest: " + reason);
  }
  for (const std::string& complaint : world_->Complaints()) notes_.push_back(complaint);
  convergence_.Begin(world_->Now(), world_->inputs());
  return absl::OkStatus();
}

absl::StatusOr<scenario::Scenario> LiveWorld::Parse(std::string_view what, json part) const {
  json text = {{"name", what}};
  text.update(part);
  for (const scenario::IssuerSpec& issuer : scenario_.issuers)
    text["issuers"].push_back({{"name", issuer.name}, {"jwksUri", issuer.jwks_uri}});
  return scenario::ParseScenario(std::string(what), JsonText(text), clusters_);
}

absl::Status LiveWorld::Do(const json& action) {
  absl::StatusOr<scenario::Scenario> read =
      Parse("action", {{"steps", {{{"name", "action"}, {"do", json::array({action})}}}}});
  if (!read.ok()) return read.status();
  for (const scenario::Action& each : read->steps[0].actions) {
    scenario::Inputs inputs = scenario::MakeInputs(*read, each, nullptr);
    if (!inputs.ok()) return inputs.status();
    for (const sim::Input& input : *inputs) {
      if (absl::Status status = world_->Do(input); !status.ok())
        return absl::InvalidArgumentError(fmt::format("{}: {}", scenario::Describe(each), Message(status)));
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> LiveWorld::Disconnected() const {
  std::vector<std::string> out;
  for (const sim::PodProcess* pod : world_->Pods())
    if (pod->envoy() != nullptr && !pod->envoy()->ads_connected()) out.push_back(pod->name());
  return out;
}

bool LiveWorld::Recover(Duration limit) {
  const Time deadline = world_->Now() + limit;
  while (Settle(deadline - world_->Now()) && !Disconnected().empty()) {
    if (world_->Now() >= deadline) return false;
    world_->RunUntil(std::min(deadline, world_->Now() + 1s));
  }
  return world_->Now() < deadline || (world_->Settled() && Disconnected().empty());
}

scenario::Convergence LiveWorld::TakeConvergence() {
  scenario::Convergence out = convergence_.End();
  for (const sim::PodProcess* pod : world_->Pods())
    out.connected += pod->envoy() != nullptr && pod->envoy()->ads_connected();
  convergence_.Begin(world_->Now(), world_->inputs());
  return out;
}

absl::StatusOr<std::string> LiveWorld::StartTraffic(const json& flow, int64_t requests) {
  if (!flow.is_object()) return absl::InvalidArgumentError("a flow is a mapping, as a scenario's flows have it");
  json named = flow;
  if (!named.contains("name")) named["name"] = "requests";
  absl::StatusOr<scenario::Scenario> read = Parse("flow", {{"flows", json::array({named})}});
  if (!read.ok()) return read.status();
  scenario::Traffic traffic;
  traffic.flow = read->flows[0].name;
  traffic.requests = requests;
  const std::string id = fmt::format("{}#{}", traffic.flow, traffic_count_++);
  addresses_.Learn();
  const Duration sending = scenario::SendingTime(read->flows[0], traffic);
  if (sending >= bounds::kInputDuration)
    return absl::InvalidArgumentError("so many requests take ten years at this rate; send fewer, or faster");
  sending_.emplace(id, Sending{scenario::TrafficAccount(world_->kernel().names(), addresses_, traffic.flow,
                                                        requests == 0, world_->Now()),
                               requests == 0, world_->Now() + sending});
  absl::Status status = world_->Do(scenario::MakeTraffic(read->flows[0], traffic, id));
  if (status.ok()) return id;
  sending_.erase(id);
  return status;
}

absl::StatusOr<scenario::TrafficResult> LiveWorld::FinishTraffic(const std::string& id, Duration patience) {
  const auto it = sending_.find(id);
  if (it == sending_.end())
    return absl::NotFoundError(fmt::format("no traffic is called '{}'; it was finished before, or never started", id));
  Sending& sending = it->second;
  if (sending.endless) world_->Do(sim::inputs::StopTraffic{id}).IgnoreError();
  const Time deadline = std::max(world_->Now(), sending.until) + patience;
  while (!world_->TrafficDone(id) && world_->Now() < deadline)
    world_->RunUntil(std::min(deadline, world_->Now() + 50ms));
  addresses_.Learn();
  scenario::TrafficResult out = sending.account.Finish(world_->Now(), world_->TrafficPending(id));
  sending_.erase(it);
  return out;
}

absl::Status LiveWorld::WriteLog(const std::string& path) const {
  absl::StatusOr<std::unique_ptr<sim::World>> again = sim::World::Create(world_->options());
  if (!again.ok()) return again.status();
  absl::StatusOr<std::unique_ptr<replay::Recorder>> recorder =
      replay::RecordWorld(**again, {.log = path,
                                    .program_version = WAVETANK_VERSION,
                                    .scenario_name = scenario_.name,
                                    .scenario_file = scenario_.file});
  if (!recorder.ok()) return recorder.status();
  for (const Done& done : inputs_) {
    (*again)->RunUntil(done.at);
    (*again)->Do(done.input).IgnoreError();  // what was refused then is refused again
  }
  (*again)->RunUntil(world_->Now());
  const absl::Status written = (*recorder)->Finish();
  if (!written.ok()) return written;
  if ((*again)->kernel().digest().Hex() != Digest())
    return absl::InternalError(fmt::format("{}: the same inputs gave another digest; please report it", path));
  return absl::OkStatus();
}

}  // namespace wavetank::session
