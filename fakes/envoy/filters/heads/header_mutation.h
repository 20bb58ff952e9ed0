// envoy.filters.http.header_mutation: headers, trailers and parameters of queries, changed one after the other.
// Envoy: source/extensions/filters/http/header_mutation/header_mutation.cc
#pragma once

#include "fakes/envoy/config/filter_registry.h"

namespace wavetank::envoysim {

HttpFilterType HeaderMutationFilterType();

}  // namespace wavetank::envoysim
