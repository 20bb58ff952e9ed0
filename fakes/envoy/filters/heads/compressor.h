// envoy.filters.http.compressor: what an answer's head becomes where its body would be compressed. Bodies stay as they
// are: nothing here looks into them.
// Envoy: source/extensions/filters/http/compressor/compressor_filter.cc
#pragma once

#include "fakes/envoy/config/filter_registry.h"

namespace wavetank::envoysim {

HttpFilterType CompressorFilterType();

}  // namespace wavetank::envoysim
