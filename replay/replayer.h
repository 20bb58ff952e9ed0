// Re-executes an event log and compares what happens with what was logged, event by event.
//
// Only the inputs are fed in; every event must follow from them again, in the same order, at the same time, for the
// same causes. The first that does not is named, with what came before it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "replay/event_log.h"

namespace wavetank::replay {

// The world, as a replay drives it. Calls come in this order: Start once, then Do and AdvanceTo with times that never
// go back.
class ReplayTarget {
 public:
  virtual ~ReplayTarget() = default;

  // Builds the world at time 0. `sink` is to be called for every derived event, in order, until the target is gone;
  // events of Start itself included. An error ends the replay: no world can be made of that header.
  using Sink = std::function<void(const LoggedEvent&)>;
  virtual absl::Status Start(const LogHeader& header, Sink sink) = 0;
  // Runs everything due until `time`, included.
  virtual void AdvanceTo(Time time) = 0;
  // Called after AdvanceTo(input.at). The error that the input meets; when it was recorded, it may have met it as well.
  virtual absl::Status Do(const LogInput& input) = 0;

  virtual std::string TraceDigest() const = 0;
  // Empty if the target has none; called while an event is being reported too.
  virtual std::string StateDigest() const { return {}; }
};

struct ReplayOptions {
  std::optional<Time> until;  // stop there; events at that very time still happen
  size_t context = 5;         // events before the first difference that are kept
};

struct Divergence {
  enum class Kind { kDiffers, kNotLogged, kMissing, kTraceDigest, kStateDigest };
  Kind kind = Kind::kDiffers;
  uint64_t event = 0;               // number of the first differing event, or of events before the differing digest
  Time at{}, beginning{};           // beginning: of the world
  std::string expected, got;        // in words; empty where there was none
  std::vector<std::string> before;  // the events before, the nearest last
};

// Several lines that name the difference.
std::string Describe(const Divergence& divergence);

struct ReplayResult {
  uint64_t inputs = 0, events = 0, checkpoints = 0;  // done, compared equal, compared equal
  Time end{};
  bool compared = true;      // false: the log is a recording, which holds nothing to compare with
  bool complete = false;     // the log's planned end was reached: false for an interrupted run, or with `until`
  std::string trace_digest;  // of the replay
  std::optional<Divergence> divergence;
};

// Reads `log` from its beginning: once to verify it, so that no replay starts on a damaged one, and once to run it.
// Errors are those of the log and of the target; a difference is a result.
absl::StatusOr<ReplayResult> Replay(LogReader& log, ReplayTarget& target, const ReplayOptions& options = {});

}  // namespace wavetank::replay
