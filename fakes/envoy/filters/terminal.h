// What ends a chain: the router of requests; of connections the HTTP connection manager and the tcp_proxy; and
// sni_cluster, which only tells the latter where to.
#pragma once

#include "fakes/envoy/config/filter_registry.h"

namespace wavetank::envoysim {

HttpFilterType RouterFilterType();
NetworkFilterType ConnectionManagerType();
NetworkFilterType SniClusterType();
NetworkFilterType TcpProxyType();

}  // namespace wavetank::envoysim
