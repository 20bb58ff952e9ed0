// A scenario's mesh that is up, and is then told what to do, action by action: what a session of the library and a seed
// of the swarm have in common. The scenario's own steps are not run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "scenarios/answers/address_names.h"
#include "scenarios/answers/unrest.h"
#include "scenarios/language/scenario.h"
#include "scenarios/results/convergence.h"
#include "scenarios/results/traffic_account.h"
#include "sim/inputs/input.h"
#include "sim/world.h"

namespace wavetank::scenario {
struct StartPhases;
}

namespace wavetank::session {

class LiveWorld {
 public:
  // Brings the mesh up, as `wavetank run` does. Errors are about the input: a manifest that cannot be read, a profile
  // that does not exist. `on_world`: sees the world before anything happens in it; may be empty.
  static absl::StatusOr<std::unique_ptr<LiveWorld>> Open(scenario::Scenario scenario,
                                                         const std::function<void(sim::World&)>& on_world);
  LiveWorld(const LiveWorld&) = delete;
  LiveWorld& operator=(const LiveWorld&) = delete;

  const scenario::Scenario& scenario() const { return scenario_; }
  sim::World& world() { return *world_; }
  const sim::World& world() const { return *world_; }
  const std::vector<std::string>& notes() const { return notes_; }

  // `action`: as a scenario's `do` has it, {"scale": {...}}; applied now. InvalidArgument says what is wrong with it.
  absl::Status Do(const nlohmann::json& action);
  void RunFor(Duration duration) { world_->RunUntil(world_->Now() + duration); }
  // As Settle(), and until every proxy has its istiod: one that waits to try again is at rest otherwise.
  bool Recover(Duration limit);
  std::vector<std::string> Disconnected() const;  // proxies without an istiod now
  // Until nothing happens any more; false: not within `limit`.
  bool Settle(Duration limit) { return world_->RunUntilSettled(world_->Now() + limit); }
  std::vector<std::string> AtWork() const { return unrest_.Reasons(); }
  // Of what was done since the last call (or the beginning), as far as it has come by now.
  scenario::Convergence TakeConvergence();

  // A flow as a scenario has it. Sends `requests` of it, or as long as it is not stopped; the id is for Stop().
  // InvalidArgument says what is wrong with it.
  absl::StatusOr<std::string> StartTraffic(const nlohmann::json& flow, int64_t requests);
  // What became of it; waits for answers that are still to come, `patience` at most. NotFound: no such id.
  absl::StatusOr<scenario::TrafficResult> FinishTraffic(const std::string& id, Duration patience);
  // Each answered or failed request, beside its account.
  std::function<void(const sim::TrafficRecord&)> on_request;

  std::string Digest() const { return world_->kernel().digest().Hex(); }
  // Does everything again in a world of its own and records it, so that a log costs only those who want one.
  // Internal: it did not come out the same. Errors of the file say what to do.
  absl::Status WriteLog(const std::string& path) const;

  struct Done {
    uint64_t number;
    Time at;
    sim::Input input;
  };
  const std::vector<Done>& inputs() const { return inputs_; }

 private:
  LiveWorld(scenario::Scenario scenario, std::unique_ptr<sim::World> world);
  // The phases, one after the other. An input that is refused is an error that names its place.
  absl::Status Start(const scenario::StartPhases& start);
  // A step with this one action, or a flow of this one kind, read as a scenario's.
  absl::StatusOr<scenario::Scenario> Parse(std::string_view what, nlohmann::json part) const;

  const scenario::Scenario scenario_;
  std::vector<scenario::ClusterSpec> clusters_;  // what Parse() may name
  std::unique_ptr<sim::World> world_;
  Subscriptions subscriptions_;
  scenario::ConvergenceTracker convergence_;
  scenario::Unrest unrest_;
  scenario::AddressNames addresses_;
  struct Sending {
    scenario::TrafficAccount account;
    bool endless;  // until it is stopped
    Time until;    // when the last of it is sent
  };
  std::map<std::string, Sending, std::less<>> sending_;  // by id
  std::vector<std::string> notes_;
  std::vector<Done> inputs_;
  int64_t traffic_count_ = 0;
};

}  // namespace wavetank::session
