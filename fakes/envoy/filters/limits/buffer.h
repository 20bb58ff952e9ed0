// envoy.filters.http.buffer: requests larger than it holds are refused. A request's size is what its content-length
// says. Envoy: source/extensions/filters/http/buffer/buffer_filter.cc
#pragma once

#include "fakes/envoy/config/filter_registry.h"

namespace wavetank::envoysim {

HttpFilterType BufferFilterType();

}  // namespace wavetank::envoysim
