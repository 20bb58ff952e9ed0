// All filters that do something here: one line each in registry.cc.
#pragma once

#include "fakes/envoy/config/filter_registry.h"

namespace wavetank::envoysim {

// Lives as long as the program.
const FilterRegistry& AllFilters();

}  // namespace wavetank::envoysim
