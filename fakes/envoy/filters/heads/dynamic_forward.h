// Filters that look names up before a request or a connection goes on: dynamic_forward_proxy, and of connections
// sni_dynamic_forward_proxy.
// Envoy: source/extensions/filters/{http/dynamic_forward_proxy,network/sni_dynamic_forward_proxy}/proxy_filter.cc
#pragma once

#include "fakes/envoy/config/filter_registry.h"

namespace wavetank::envoysim {

HttpFilterType DynamicForwardFilterType();
NetworkFilterType SniDynamicForwardType();

}  // namespace wavetank::envoysim
