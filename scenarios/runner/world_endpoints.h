// What the proxies of a world hold, as expectations ask for it.
#pragma once

#include <string>
#include <vector>

#include "scenarios/expectations/expectation.h"

namespace wavetank::sim {
class World;
}

namespace wavetank::scenario {

// WorldView::EndpointsOf() of a world. `host` is a service's, or what it begins with up to a dot: "helloworld.sample".
std::vector<WorldView::ProxyEndpoints> EndpointsIn(const sim::World& world, const std::string& cluster,
                                                   const std::string& ns, const std::string& app,
                                                   const std::string& host, int port);

}  // namespace wavetank::scenario
