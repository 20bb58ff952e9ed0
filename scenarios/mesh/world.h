// What a world is made of, and the requests in it, as a scenario says.
#pragma once

#include <string>
#include <vector>

#include "scenarios/language/scenario.h"
#include "sim/inputs/input.h"
#include "sim/world_options.h"

namespace wavetank::sim {
class World;
}

namespace wavetank::scenario {

sim::WorldOptions MakeWorldOptions(const Scenario& scenario);

// A line for each istiod whose Deployment names an image of another release than the world's profile: the simulated one
// is the profile's, whatever its image is called. None where another profile than the usual one was chosen.
std::vector<std::string> IstiodsOfOtherReleases(sim::World& world);

// `id` names this run of the flow, for the results.
sim::Input MakeTraffic(const FlowSpec& flow, const Traffic& traffic, const std::string& id);

}  // namespace wavetank::scenario
