// The picture of a world for reports: clusters, istiods and what they watch, gateways, workloads, and who calls whom.
#pragma once

#include "scenarios/language/scenario.h"
#include "scenarios/results/result.h"
#include "sim/world.h"

namespace wavetank::scenario {

void AddTopology(const sim::World& world, const Scenario& scenario, RunResult* result);

}  // namespace wavetank::scenario
