// A router's route configurations: "http.8080" for plain-text servers of a port, "https.443.port.gateway.namespace" for
// each server that ends TLS (istiod: pilot/pkg/networking/core/v1alpha3/gateway.go, buildGatewayHTTPRouteConfig).
#pragma once

#include <string>
#include <vector>

#include "core/xds/generator.h"

namespace wavetank::pilot {

class EnvoyPatches;
class PushContext;

// One for each name, also for names that no Gateway has (any more). `patches`: the router's; may be null. `buffer`:
// memory to encode in.
std::vector<Resource> BuildGatewayRoutes(const Proxy& proxy, const PushContext& push, const EnvoyPatches* patches,
                                         const std::vector<std::string>& route_names, std::string* buffer);

}  // namespace wavetank::pilot
