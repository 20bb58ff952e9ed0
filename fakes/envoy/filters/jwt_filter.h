// The link of a chain that is jwt_authn: what it makes of a request is jwt_authn.h's.
// Envoy: source/extensions/filters/http/jwt_authn/filter.cc
#pragma once

#include "fakes/envoy/config/filter_registry.h"

namespace wavetank::envoysim {

HttpFilterType JwtFilterType();

}  // namespace wavetank::envoysim
