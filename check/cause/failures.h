// Which inputs a log's failed requests follow from: those without which they would not have failed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "check/cause/story.h"

namespace wavetank::check {

// Failed requests of one flow that one input stands behind.
struct FailureGroup {
  std::string flow;
  int64_t requests = 0;
  std::optional<size_t> input;  // its index; nothing: none of those that were tried
  std::vector<size_t> also;     // without each of these none of them would have failed either
  // Without `input`: one without which none of them failed either, though chance may have spared them as well.
  std::optional<size_t> perhaps;
  std::optional<size_t> until;  // the input after which no request of the group failed any more
  Time first{}, last{};         // when they were sent
  std::string how;              // what most of them met: "503 UF: connection refused"
};

struct Failures {
  int64_t sent = 0, failed = 0;
  std::vector<FailureGroup> groups;  // in the order of time
  size_t tried = 0, candidates = 0;  // inputs left out, one at a time; of how many
  size_t worlds = 0;                 // that were made for it
};

// How far it is. How many worlds there will be is not known before those without one input each have been made: until
// then there may be fewer.
struct FailureWorlds {
  size_t made = 0, of = 0;
  bool at_most = true;
};

// `progress` is told of each world. Makes the world of the log once as it was, and once without each input that came
// between the first request and the last failure (at most `limit`, the latest before failures first). Without any input
// balancing turns out otherwise, so those without which some failure is missing are left out again of worlds that
// differ in chance alone, which are also made with all inputs: failures of a flow, of one kind and between two inputs
// follow from an input if they are always there with it and never without, or fewer without it than chance makes them.
// Of several such inputs the one that prevents most counts, of equals the latest.
absl::StatusOr<Failures> ExplainFailures(const Story& story, size_t limit, int at_a_time,
                                         const std::function<void(const FailureWorlds&)>& progress);

}  // namespace wavetank::check
