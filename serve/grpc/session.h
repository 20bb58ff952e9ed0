// A live run: the world of a scenario or of manifests, brought to rest in virtual time, then given to a Loop, and
// recorded from its first input to its last.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "scenarios/language/scenario.h"
#include "scenarios/runner/start.h"
#include "serve/grpc/held_config.h"
#include "serve/grpc/pod_logs.h"
#include "serve/loop/loop.h"
#include "sim/invariants/invariant.h"

namespace wavetank::sim {
class InvariantWatch;
}

namespace wavetank::replay {
class Recorder;
}

namespace wavetank::serve {

// What of a live run's log survives the death of the process, or of the machine.
enum class Durability : uint8_t {
  kSession,       // a run that ends as planned; of a killed one what was written by chance
  kSecond,        // all but the last second
  kAcknowledged,  // all that any client was answered: an answer leaves when its input is on disk
};

struct SessionOptions {
  scenario::Scenario scenario;  // its world; steps are played only on demand
  scenario::StartPhases start;  // what is done to it first
  std::string log;              // event log to write, if not empty
  bool real_istiod = false;     // real istiods will serve it: the log holds inputs alone
  Durability durability = Durability::kAcknowledged;
  bool keep_secrets = false;                  // in the log (replay/kept_secrets.h)
  std::map<std::string, std::string> timing;  // overrides of sim/timing.h, after the scenario's
  std::vector<std::string> invariants;        // to watch, by their full names
  // istiods spend modelled processor time as in a scenario; otherwise only the time that this machine takes.
  bool modelled_costs = false;
  // The world's calendar is the real one, so that real clients find its certificates valid. Without, a world begins
  // where scenarios begin, and is the same whenever it is made.
  bool real_calendar = true;
  // What each simulated proxy is sent is kept, for its admin interface (Session::held).
  bool keep_configuration = false;
  // istiods write their elections, for clients of the Kubernetes API (sim/world_options.h).
  bool write_elections = false;
  std::function<void(std::string_view)> progress;
  std::function<void(sim::World&)> on_world;  // before anything happens in it
};

class Session {
 public:
  // Makes the world and brings it to rest. Errors are about the input.
  static absl::StatusOr<std::unique_ptr<Session>> Create(SessionOptions options);
  ~Session();

  // From here on real time counts.
  void GoLive();
  // Stops the loop and finishes the log. Idempotent; the destructor does it too, without telling of errors.
  absl::Status Finish();

  Loop& loop() { return *loop_; }
  const scenario::Scenario& scenario() const { return options_.scenario; }
  // Empty without SessionOptions::keep_configuration. On the loop's thread.
  const HeldConfig& held() const { return held_; }
  // What processes of pods have printed since the world began; nothing without SessionOptions::keep_configuration. On
  // the loop's thread.
  const PodLogs& logs() const { return logs_; }
  // What did not come up, or has not settled.
  const std::vector<std::string>& notes() const { return notes_; }
  // What broke the invariants. After Finish().
  const std::vector<sim::Violation>& violations() const;

 private:
  explicit Session(SessionOptions options);
  absl::Status Start();
  // Commits every second what has come.
  void CommitLater();

  const SessionOptions options_;
  HeldConfig held_;  // it and the logs outlive the world that they follow
  PodLogs logs_;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<replay::Recorder> recorder_;
  std::unique_ptr<sim::InvariantWatch> invariants_;
  std::vector<std::string> notes_;
  bool finished_ = false;
};

}  // namespace wavetank::serve
