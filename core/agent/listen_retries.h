// How often an agent tries to listen for its Envoy before it gives up: five times, one second apart and then twice as
// long each time (istiod: security/pkg/nodeagent/sds/server.go, initWorkloadSdsService).
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "core/agent/log.h"
#include "core/base/status.h"
#include "core/base/time.h"

namespace wavetank::agent {

inline constexpr int kListenTries = 5;

// `listen` gives a StatusOr; `wait` lets so much time pass. What was said of the last try is returned.
template <class Listen>
auto ListenWithRetries(Listen listen, const Log& log, const std::function<void(Duration)>& wait) {
  Duration pause = 1s;
  for (int tries = 1;; ++tries, pause *= 2) {
    auto server = listen();
    if (server.ok()) return server;
    Say(log, Level::kError, "sds",
        "SDS grpc server for workload proxies failed to set up UDS: " + std::string(Message(server.status())));
    if (tries == kListenTries) {
      Say(log, Level::kWarn, "sds", "SDS grpc server could not be started");
      return server;
    }
    wait(pause);
  }
}

}  // namespace wavetank::agent
