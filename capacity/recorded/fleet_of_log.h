// A fleet that is like the mesh of an event log: its shapes, and the rates of its churn.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "capacity/fleet/fleet.h"
#include "replay/secret_source.h"

namespace wavetank::capacity {

struct RecordedFleet {
  Fleet fleet;
  // What the log has and no fleet can say, a sentence each; and what is not as a fleet has it.
  std::vector<std::string> notes;
};

// Runs the log. Churn counts from when its mesh had come up. All clusters of a fleet are alike, so each number is their
// mean. Errors are the log's (docs/event-log.md) and FailedPrecondition: its mesh never came up, or it has no Service
// or no cluster. `progress`: what is being done. As long as the log's run takes, and its memory.
absl::StatusOr<RecordedFleet> FleetOfLog(const std::string& path, replay::SecretSource secrets = {},
                                         const std::function<void(std::string_view)>& progress = nullptr);

}  // namespace wavetank::capacity
