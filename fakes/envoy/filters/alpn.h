// istio-proxy's HTTP filter istio.alpn: which application protocols to offer upstream.
// Istio: istio/proxy src/envoy/http/alpn/alpn_filter.cc
#pragma once

#include "fakes/envoy/config/filter_registry.h"

namespace wavetank::envoysim {

HttpFilterType AlpnFilterType();

}  // namespace wavetank::envoysim
