// Judges a step's expectations by what the step's traffic and the world's proxies show.
#pragma once

#include <string>
#include <vector>

#include "scenarios/result.h"
#include "scenarios/scenario.h"

namespace wavetank::scenario {

// What expectations ask of a running world.
class WorldView {
 public:
  virtual ~WorldView() = default;
  // "address:port" of the endpoints that the proxies of an app hold for a service port, sorted; one list per proxy.
  struct ProxyEndpoints {
    std::string proxy;
    std::vector<std::string> addresses;
  };
  virtual std::vector<ProxyEndpoints> EndpointsOf(const std::string& cluster, const std::string& ns,
                                                  const std::string& app, const std::string& host, int port) const = 0;
};

// The text of an expectation, for reports: "split of from-cluster1 by version is v1 50 %, v2 50 % (99.9 % confidence)".
std::string Describe(const Expectation& expectation);

// Never fails: an expectation about traffic that was not sent does not hold, and says so.
ExpectationResult Judge(const Expectation& expectation, const StepResult& step, const WorldView& world);

}  // namespace wavetank::scenario
