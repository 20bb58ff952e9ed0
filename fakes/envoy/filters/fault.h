// The fault filter: delays and aborts, as its chain or the route says.
// Envoy: source/extensions/filters/http/fault/fault_filter.cc
#pragma once

#include "fakes/envoy/config/filter_registry.h"

namespace wavetank::envoysim {

HttpFilterType FaultFilterType();

}  // namespace wavetank::envoysim
