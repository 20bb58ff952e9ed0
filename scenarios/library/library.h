// The library of incidents: stories that were reported in public, each with the verdict of every profile that matters.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scenarios/language/scenario.h"

namespace wavetank::scenario {

struct IncidentStory {
  std::string id, name;  // "A01" and "gateway-per-zone" of the folder A01-gateway-per-zone
  Scenario scenario;     // with a head
};

// All stories of a folder, in the order of their names. NotFound: there is no such folder; InvalidArgument: a story
// that cannot be read, has no head, or names a profile that there is not.
absl::StatusOr<std::vector<IncidentStory>> LoadIncidents(const std::string& folder);

// Those whose ID or folder is among `wanted`; all if that is empty. NotFound: one is not there; says which there are.
absl::StatusOr<std::vector<IncidentStory>> Selected(std::vector<IncidentStory> all,
                                                    const std::vector<std::string>& wanted);

struct IncidentVerdict {
  std::string id, profile;
  bool shown = false;
  std::string expected;  // "shown", "not shown"; empty: its head does not say
  std::string cause;     // where it is shown: in one line
  // What does not hold as its story says. Empty: the verdict stands.
  std::vector<std::string> problems;
};

// Errors are the scenario's own.
absl::StatusOr<IncidentVerdict> RunIncident(const IncidentStory& story, const std::string& profile);

}  // namespace wavetank::scenario
