// A log as a scenario's folder, which a person can read and keep.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "check/cause/story.h"

namespace wavetank::check {

struct Exported {
  size_t steps = 0, objects = 0;
  size_t claims = 0;     // of an imported log; steps hold them word for word, no expectation can say them
  std::string digest;    // of a run of the scenario
  std::string mesh_log;  // of a recording, imported or not: the log that the scenario's mesh is taken from; else empty
};

// Writes scenario.yaml and a file of manifests for each cluster into `folder`, which must not be there or be empty, and
// runs the scenario to learn what it shall expect. Of a recording, imported or not, the mesh is a log beside them,
// which `run --from` takes. FailedPrecondition: the log is one that no scenario can tell (of a real istiod, authorities
// of several plans). AlreadyExists: the folder holds something.
absl::StatusOr<Exported> ExportStory(const Story& story, const std::string& folder);

}  // namespace wavetank::check
