// envoy.filters.http.health_check: requests that ask for the proxy's own health.
// Envoy: source/extensions/filters/http/health_check/health_check.cc
#pragma once

#include "fakes/envoy/config/filter_registry.h"

namespace wavetank::envoysim {

HttpFilterType HealthCheckFilterType();

}  // namespace wavetank::envoysim
