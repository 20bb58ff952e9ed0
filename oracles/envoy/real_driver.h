// Runs a case on a real Envoy: a process of its own per case, ADS and SDS over a Unix socket and HTTP backends on
// loopback addresses in this one. Everything it starts is ended before it returns.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "oracles/envoy/case.h"
#include "oracles/envoy/outcome.h"

namespace wavetank::envoydiff {

// `directory`: for the bootstrap, logs and Unix sockets of this case (hence short); made if need be.
absl::StatusOr<Outcome> RunReal(const Case& c, const std::string& envoy, const std::string& directory);

}  // namespace wavetank::envoydiff
