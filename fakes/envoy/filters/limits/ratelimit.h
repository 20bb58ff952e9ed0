// envoy.filters.http.ratelimit: a rate limit service is asked about the descriptors that a route's actions make.
// Envoy: source/extensions/filters/http/ratelimit/ratelimit.cc
#pragma once

#include "fakes/envoy/config/filter_registry.h"

namespace wavetank::envoysim {

HttpFilterType RateLimitFilterType();

}  // namespace wavetank::envoysim
