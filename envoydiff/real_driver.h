// Runs a case on a real Envoy: a process of its own per case, an ADS server and HTTP backends in this process, on
// loopback addresses. Everything it starts is ended before it returns.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "envoydiff/case.h"
#include "envoydiff/outcome.h"

namespace wavetank::envoydiff {

// `network`: as given to LoadCases. `directory`: for the bootstrap and logs of this case; made if need be.
absl::StatusOr<Outcome> RunReal(const Case& c, const std::string& envoy, const std::string& network,
                                const std::string& directory);

}  // namespace wavetank::envoydiff
