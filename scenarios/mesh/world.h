// What a world is made of, and the requests in it, as a scenario says.
#pragma once

#include <string>

#include "scenarios/language/scenario.h"
#include "sim/inputs/input.h"
#include "sim/world_options.h"

namespace wavetank::scenario {

sim::WorldOptions MakeWorldOptions(const Scenario& scenario);

// `id` names this run of the flow, for the results.
sim::Input MakeTraffic(const FlowSpec& flow, const Traffic& traffic, const std::string& id);

}  // namespace wavetank::scenario
