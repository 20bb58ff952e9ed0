// Runs a case on the simulated Envoy, in virtual time.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "oracles/envoy/case.h"
#include "oracles/envoy/outcome.h"

namespace wavetank::envoydiff {

// Whose chance the simulated one has: that of a process from its start on, and of others from the requests of a step
// on.
struct Chance {
  uint64_t start = 1;
  std::vector<uint64_t> steps;  // by index into Outcome::requests; 0 or not there: it goes on
};

// InvalidArgument: the case asks for what cannot be made, a secret say.
absl::StatusOr<Outcome> RunSimulated(const Case& c, const Chance& chance);

}  // namespace wavetank::envoydiff
