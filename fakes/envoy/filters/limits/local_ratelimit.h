// envoy.filters.http.local_ratelimit: token buckets of the filter, or of a route in its place.
// Envoy: source/extensions/filters/http/local_ratelimit/local_ratelimit.cc
#pragma once

#include "fakes/envoy/config/filter_registry.h"

namespace wavetank::envoysim {

HttpFilterType LocalRateLimitFilterType();

}  // namespace wavetank::envoysim
