// RBAC filters of requests and connections.
// Envoy: source/extensions/filters/http/rbac/rbac_filter.cc, filters/network/rbac/rbac_filter.cc
#pragma once

#include "fakes/envoy/config/filter_registry.h"

namespace wavetank::envoysim {

HttpFilterType RbacFilterType();
NetworkFilterType NetworkRbacType();

}  // namespace wavetank::envoysim
