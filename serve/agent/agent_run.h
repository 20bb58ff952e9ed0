// A real agent, from its start to its Envoy's end (istiod: pilot/cmd/pilot-agent/app/cmd.go, pkg/istio-agent/agent.go).
#pragma once

#include "absl/status/statusor.h"
#include "core/agent/log.h"
#include "serve/agent/environment.h"

namespace wavetank::serve {

struct AgentRun {
  Environment environment;
  AgentArguments arguments;
  bool bootstrap_only = false;  // prints the bootstrap and ends
  agent::Log log;
};

// The process's exit code: 0 if the Envoy was ended as asked or ended itself in order, 1 if it died. An error: the
// agent could not start, and why. Blocks; SIGTERM and SIGINT must be blocked in all threads, and are waited for here.
// Once per process.
absl::StatusOr<int> RunAgent(const AgentRun& run);

}  // namespace wavetank::serve
