// Runs a scenario in a world of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "scenarios/answers/moment.h"
#include "scenarios/language/scenario.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/results/result.h"

namespace wavetank::sim {
class World;
struct TrafficRecord;
}  // namespace wavetank::sim

namespace wavetank::scenario {

// Where a run stands.
struct Tick {
  std::string_view what;         // the step, or what comes before the first
  size_t step = 0, steps = 0;    // its number from 1, 0 before the first; of how many
  Duration since_beginning{};    // virtual
  int64_t events = 0;            // trace records so far
  std::function<int()> proxies;  // how many are connected now; not for nothing
};

struct RunOptions {
  std::optional<uint64_t> seed;  // instead of the scenario's
  std::string profile;           // instead of the scenario's, if not empty
  sim::Mending mending;          // instead of the scenario's, if chosen
  std::optional<Time> date;      // likewise
  bool strict = false;           // what a manifest says without effect is an error
  std::string log;               // event log to write, if not empty
  bool real_istiod = false;      // real istiods serve the proxies (on_up): the log holds inputs alone
  std::string from;              // event log whose inputs take the place of the scenario's own mesh, if not empty
  // Of `from`: only until then since its beginning, and the steps begin at once, whether the mesh is at rest or not.
  std::optional<Duration> from_until;
  std::optional<Moment> until;       // the run ends there, also in the middle of a step
  std::optional<size_t> until_step;  // run this many steps; 0: only bring the mesh up
  std::function<void(std::string_view)> progress;
  // Every request of traffic when it has ended; what it points to is valid during the call.
  std::function<void(sim::World&, const sim::TrafficRecord&)> on_request;
  std::function<void(const Tick&)> on_tick;  // often, while virtual time passes
  // Set from outside: the run ends as soon as it sees it, as if `until` had come.
  const std::atomic<bool>* interrupted = nullptr;
  // An error after the mesh is up is told in RunResult::error, beside what was found out before it.
  bool partial = false;
  std::function<void(sim::World&)> on_world;  // before anything happens in it
  std::function<void(sim::World&)> on_end;    // before it is gone
  std::function<void()> on_gone;              // the last before it is gone, also when the run ends with an error
  // When the mesh is up, before the first step; and after each step, when its traffic has ended. They may let time pass
  // (World::RunUntil). An error ends the run.
  std::function<absl::Status(sim::World&)> on_up;
  std::function<absl::Status(sim::World&, const Step&)> on_step;
  std::vector<std::string> invariants;  // to watch, by their full names; those that steps name are watched besides
  std::string access_log;               // file for the lines of the proxies' access logs, if not empty
  // The process ends soon after: the world is left to the system, as taking a large one apart costs 4 % of its run.
  bool last = false;
};

// Errors are about the input: a manifest that cannot be read, a profile that does not exist. An expectation that does
// not hold is no error but part of the result. The same scenario, seed and options give the same result and digest.
absl::StatusOr<RunResult> Run(const Scenario& scenario, const RunOptions& options);

// Traffic meanwhile begins before the wave, so that the picture shows what was before.
inline constexpr Duration kMeanwhileLeadIn = 500ms;

// The same of a log alone (options.from): each change that it holds is a step, with what it came to. Changes that
// follow each other within kOneChange are one.
inline constexpr Duration kOneChange = 100ms;
absl::StatusOr<RunResult> RunLog(const RunOptions& options);

// The clusters of a log's world, for LoadScenario().
absl::StatusOr<std::vector<ClusterSpec>> ClustersOfLog(const std::string& log);

}  // namespace wavetank::scenario
