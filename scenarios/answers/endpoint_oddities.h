// What is odd about the endpoints that a client's proxy is sent for a service, in one line each: what `wavetank why`
// tells filter by filter, for people who have not asked yet.
#pragma once

#include <string>
#include <vector>

namespace wavetank::sim {
class World;
}

namespace wavetank::scenario {

struct ServiceQuestion {
  std::string cluster, ns, app;  // of the client
  std::string host;              // as the application writes it
  int port = 80;
};

// As its istiod would send them now, the worst first. Empty: nothing is odd, or no such client is connected.
std::vector<std::string> EndpointOddities(sim::World& world, const ServiceQuestion& question);

}  // namespace wavetank::scenario
