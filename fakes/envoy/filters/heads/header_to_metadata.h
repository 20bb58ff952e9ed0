// envoy.filters.http.header_to_metadata.
// Envoy: source/extensions/filters/http/header_to_metadata/header_to_metadata_filter.cc
#pragma once

#include "fakes/envoy/config/filter_registry.h"

namespace wavetank::envoysim {

HttpFilterType HeaderToMetadataFilterType();

}  // namespace wavetank::envoysim
