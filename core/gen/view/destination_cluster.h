// The cluster that a route or a TCP proxy leads to, and the metadata that names the configuration behind it
// (istiod: route.GetDestinationCluster, util.BuildConfigInfoMetadata).
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "core/config/kinds/virtual_service.h"
#include "core/config/store/store.h"
#include "core/model/proxy.h"
#include "core/model/service.h"

namespace wavetank::pilot {

class PushContext;

// "outbound|80|v1|host": the cluster of a destination. A destination without a port goes to the service's only port,
// else to `listener_port`. istiod: route.GetDestinationCluster.
std::string DestinationCluster(const config::Destination& destination, const Service* service, int listener_port);
// Asks for the listener's port only if neither rule nor service name one.
std::string DestinationCluster(const config::Destination& destination, const Service* service,
                               absl::FunctionRef<int()> listener_port);

// Where traffic to unknown destinations goes: on, to the scope's egress proxy, or nowhere.
std::string OutboundCatchAllCluster(const Proxy& proxy);

// "istio" filter metadata that names the configuration a resource was made from: Envoy's Metadata, encoded.
std::string ConfigInfoMetadata(const config::ConfigMeta& meta, const PushContext& push);

}  // namespace wavetank::pilot
