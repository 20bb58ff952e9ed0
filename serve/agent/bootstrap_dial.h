// An agent that asks istiod for its Envoy's bootstrap (BOOTSTRAP_XDS_AGENT; istiod: pkg/istio-agent/agent.go,
// initializeEnvoyAgent).
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "core/agent/log.h"
#include "nlohmann/json.hpp"
#include "serve/agent/ca_dial.h"

namespace wavetank::serve {

// Waits for istiod as long as it takes, with pauses that grow from half a second to a minute, and returns the bootstrap
// as Envoy reads it. `node`: as a bootstrap has it. `pause` waits and says whether to go on; Cancelled: it did not.
// InvalidArgument: istiod sent what is no bootstrap.
absl::StatusOr<std::string> AskForBootstrap(const DialOptions& istiod, const nlohmann::ordered_json& node,
                                            const agent::Log& log, const std::function<bool(Duration)>& pause);

}  // namespace wavetank::serve
