// The multi-primary scenario's world, quick enough to wait for in real time.
#pragma once

#include <string>

#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/start.h"
#include "serve/grpc/session.h"

namespace wavetank::serve {

inline SessionOptions TwoClusters() {
  SessionOptions out;
  out.scenario = *scenario::LoadScenario(std::string(WAVETANK_SOURCE_DIR) + "/scenarios/multi-primary-multi-network");
  out.start = *scenario::MakeStart(out.scenario);
  // Tests wait in real time for what a scenario waits in virtual time.
  out.timing = {{"kube.container_start", "50ms"},
                {"kube.readiness", "20ms"},
                {"kube.readiness_jitter", "1ms"},
                {"istiod.debounce_after", "10ms"},
                {"istiod.connections_per_second", "0"}};
  return out;
}

}  // namespace wavetank::serve
