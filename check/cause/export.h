// A log as a scenario's folder, which a person can read and keep.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "check/cause/story.h"

namespace wavetank::check {

struct Exported {
  size_t steps = 0, objects = 0;
  std::string digest;  // of a run of the scenario
};

// Writes scenario.yaml and a file of manifests for each cluster into `folder`, which must not be there or be empty, and
// runs the scenario to learn what it shall expect. FailedPrecondition: the log is one that no scenario can tell (a
// recording of real clusters, authorities of several plans). AlreadyExists: the folder holds something.
absl::StatusOr<Exported> ExportStory(const Story& story, const std::string& folder);

}  // namespace wavetank::check
