// Gateways that name Services instead of labels of pods.
#pragma once

#include <optional>
#include <vector>

#include "core/config/kinds/gateway.h"

namespace wavetank::pilot {

struct ServiceInstance;

// Of the annotation internal.istio.io/gateway-service ("a.ns.svc.cluster.local,b..."): those of a router's instances
// that are of one of these Services and of the Gateway's namespace. Without any the Gateway is none of the router's.
// nullopt: it has no such annotation, its selector counts. istiod: pilot/pkg/model/push_context.go, mergeGateways.
std::optional<std::vector<const ServiceInstance*>> InstancesOfGateway(
    const config::TypedConfig<config::Gateway>& gateway, const std::vector<ServiceInstance>& instances);

}  // namespace wavetank::pilot
