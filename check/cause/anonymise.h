// A log that may be shown: names, hosts and public addresses replaced, each by the same everywhere.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "check/cause/story.h"

namespace wavetank::check {

// What of a story's end must be the same with other names.
struct Outcome {
  int64_t sent = 0, failed = 0, refused = 0;  // requests; inputs that the world refused
  size_t proxies = 0, endpoints = 0;          // proxies there are, endpoints that they hold
  // Which pods are on which nodes at the end and, of a long story, at some of its inputs.
  std::vector<std::vector<std::string>> places;
  bool operator==(const Outcome&) const = default;
};
// Whether they differ by no more than chance: draws are keyed by names, so that others fail, though as many (three
// standard deviations). Where pods are, and what proxies hold, is the same.
bool Alike(const Outcome& a, const Outcome& b);

struct Anonymised {
  Story story;
  size_t names = 0, addresses = 0;
  Outcome before, after;  // of runs of both
  size_t tries = 0;       // of sets of other names, until one led to the same
};

// Words of one story have their order among themselves and among Istio's and Kubernetes' own words, which stay, as do
// versions (v1), private addresses and the names of environment variables. Names that a cluster generates end in a
// hash, whose order no choice of names keeps; so sets of names are tried (`tries` at most) until pods are where they
// were. All stories are run. Errors are those of the runs.
absl::StatusOr<Anonymised> Anonymise(const Story& story, size_t tries = 64);

}  // namespace wavetank::check
