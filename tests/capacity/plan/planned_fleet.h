// A fleet that these tests plan for.
#pragma once

#include "capacity/fleet/fleet.h"

namespace wavetank::capacity {

inline Fleet SmallFleet() {
  Fleet fleet;
  fleet.name = "test";
  fleet.duration = 2min;
  fleet.clusters = 2;
  fleet.services = 50;
  fleet.proxies = 400;
  fleet.churn.config_edits = 5s;
  fleet.churn.deploys = 20s;
  return fleet;
}

}  // namespace wavetank::capacity
