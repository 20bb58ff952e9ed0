// Plays a scenario's steps on a live world, at the times that they have, but by the real clock. Judges nothing: what
// the waves do, real clients see, and the event log keeps.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "scenarios/language/scenario.h"
#include "serve/loop/loop.h"
#include "serve/loop/stop_flag.h"

namespace wavetank::serve {

class Player {
 public:
  // Begins at once, in a thread of its own. `loop` and `scenario` outlive it. `report`: a sentence per step.
  Player(Loop& loop, const scenario::Scenario& scenario, std::function<void(std::string)> report);
  ~Player();  // leaves off where it is

 private:
  void Run();
  void Steps();
  absl::Status Play(const scenario::Step& step);
  absl::Status Act(const scenario::Action& action);
  absl::StatusOr<std::vector<std::string>> StartTraffic(const std::vector<scenario::Traffic>& traffic);
  void StopTraffic(const std::vector<std::string>& ids);
  using Instant = std::chrono::steady_clock::time_point;
  // When the step begins that says it: since the story began, or since the step that it names did.
  std::optional<Instant> Due(const scenario::Step& step) const;
  static Duration Left(Instant at);  // until then; zero: it is over
  // Until `done` says so, `limit` is over, or the next step's own time has come; false: the player is to end.
  bool Until(const std::function<bool(sim::World&)>& done, Duration limit);

  Loop& loop_;
  const scenario::Scenario& scenario_;
  const std::function<void(std::string)> report_;
  int traffic_count_ = 0;
  Instant start_;
  std::map<std::string, Instant> began_;  // steps, by name
  std::optional<Instant> next_at_;        // of the step after the one that is played
  StopFlag stop_;
  std::thread thread_;
};

}  // namespace wavetank::serve
