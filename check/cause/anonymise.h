// A log that may be shown: names, hosts and public addresses replaced, each by the same everywhere.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "check/cause/story.h"

namespace wavetank::check {

// What of a story's end must be the same with other names.
struct Outcome {
  int64_t sent = 0, failed = 0, refused = 0;  // requests; inputs that the world refused
  size_t proxies = 0, endpoints = 0;          // proxies there are, endpoints that they hold
  bool operator==(const Outcome&) const = default;
};

struct Anonymised {
  Story story;
  size_t names = 0, addresses = 0;
  Outcome before, after;  // of runs of both
};

// Words of one story have their order among themselves: what is sorted by name stays as it was. Istio's and
// Kubernetes' own words, versions (v1) and private addresses stay. Both stories are run. Errors are those of the runs.
absl::StatusOr<Anonymised> Anonymise(const Story& story);

}  // namespace wavetank::check
