// An instant of a log: its world, made again until then, and what its proxies hold.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "check/cause/story.h"
#include "scenarios/runner/xds_snapshot.h"

namespace wavetank::check {

// Of an imported log a time of the calendar, "2024-05-06T07:08:09Z"; of any "30s" since the world's beginning, "input
// 41", "input 41+2s", or a step of the scenario that the log was made by and an offset ("'scaled to 3'+2s").
// InvalidArgument names `option` and what may be written; OutOfRange: the log ends before that.
absl::StatusOr<Time> FindInstant(std::string_view option, std::string_view text, const Story& story);

// When the steps of the log's own scenario began, by name, in order; those that can be told from its inputs.
std::vector<std::pair<std::string, Time>> StepTimes(const Story& story);

// What is wanted of an instant: what proxies were sent by then costs a note of each response.
enum class Look { kProxiesToo, kWithoutProxies };

struct Instant {
  std::unique_ptr<sim::World> world;
  std::map<std::string, scenario::XdsSnapshot> proxies;  // by the name in traces; with kProxiesToo
  std::map<std::string, std::set<std::string>> kinds;    // of objects that a cluster has held
};

// A world is a function of its inputs, so it is made anew: the log is read, its events are not.
absl::StatusOr<std::unique_ptr<Instant>> GoTo(const Story& story, Time at, Look look = Look::kProxiesToo);

}  // namespace wavetank::check
