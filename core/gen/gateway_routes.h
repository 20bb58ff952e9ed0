// A router's route configurations: "http.8080" for plain-text servers of a port, "https.443.port.gateway.namespace" for
// each server that ends TLS (istiod: pilot/pkg/networking/core/v1alpha3/gateway.go, buildGatewayHTTPRouteConfig).
#pragma once

#include <string>

#include "core/gen/virtual_hosts.h"

namespace wavetank::pilot {

class PushContext;

RouteConfiguration BuildGatewayRoutes(const Proxy& proxy, const PushContext& push, const std::string& route_name);

}  // namespace wavetank::pilot
