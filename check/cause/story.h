// A log's inputs in memory, and worlds that are made of some of them: what bisect, shrink and export work on.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "replay/event_log.h"
#include "scenarios/language/scenario.h"

namespace wavetank::sim {
class World;
}

namespace wavetank::check {

struct Story {
  std::string path;
  replay::LogHeader header;
  std::vector<replay::LogInput> inputs;
  Time end{};
  bool whole = true;  // the run was not interrupted

  // Of an imported log (docs/import.md, `beginsNs`): the calendar's instant of the world's beginning, in nanoseconds
  // since 1970.
  std::optional<int64_t> CalendarBegins() const;
  // "2024-05-06T07:08:09.100Z" of one; empty: the world's time is all there is.
  std::string Calendar(Time at) const;

  // The clusters, and the flows by the names that traffic has: what expectations may name.
  scenario::Scenario AsScenario() const;
};

// Errors are those of the log.
absl::StatusOr<Story> LoadStory(const std::string& path);

// A world as the log's begins.
absl::StatusOr<std::unique_ptr<sim::World>> Begin(const Story& story);
// Does an input; what the world refuses changes nothing, as in the recorded run. InvalidArgument: it is none.
absl::Status DoAgain(sim::World& world, const replay::LogInput& input);

// The names of clusters that an input names, in whatever way.
std::vector<std::string> ClustersOf(const Story& story, const replay::LogInput& input);

// Runs the inputs at their times in a new world until `end`, and writes that run to `log`.
absl::Status WriteStory(const Story& story, const std::string& log);

}  // namespace wavetank::check
