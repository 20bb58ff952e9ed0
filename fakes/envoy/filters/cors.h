// CORS: preflights are answered, answers to cross-origin requests say who may read them.
// Envoy: source/extensions/filters/http/cors/cors_filter.cc
#pragma once

#include "fakes/envoy/config/filter_registry.h"

namespace wavetank::envoysim {

HttpFilterType CorsFilterType();

}  // namespace wavetank::envoysim
