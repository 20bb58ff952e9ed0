// ext_authz filters of requests and connections: an authorizer is asked, and its answer decides.
// Envoy: source/extensions/filters/http/ext_authz/ext_authz.cc, filters/network/ext_authz/ext_authz.cc
#pragma once

#include "fakes/envoy/config/filter_registry.h"

namespace wavetank::envoysim {

HttpFilterType ExtAuthzFilterType();
NetworkFilterType NetworkExtAuthzType();

}  // namespace wavetank::envoysim
