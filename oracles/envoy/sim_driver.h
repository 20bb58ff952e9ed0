// Runs a case on the simulated Envoy, in virtual time.
#pragma once

#include "absl/status/statusor.h"
#include "oracles/envoy/case.h"
#include "oracles/envoy/outcome.h"

namespace wavetank::envoydiff {

// InvalidArgument: the case asks for what cannot be made, a secret say.
absl::StatusOr<Outcome> RunSimulated(const Case& c, uint64_t seed);

}  // namespace wavetank::envoydiff
