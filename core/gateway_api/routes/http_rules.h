// Rules of HTTPRoutes and GRPCRoutes as HTTP routes of a VirtualService
// (istiod: pilot/pkg/config/kube/gateway/conversion.go, convertHTTPRoute, convertGRPCRoute).
#pragma once

#include <optional>

#include "core/gateway_api/grants.h"
#include "core/gateway_api/objects.h"

namespace wavetank::gatewayapi {

struct Rules {
  nlohmann::json routes = nlohmann::json::array();
  std::optional<ConfigError> error;  // without routes: nothing of it holds
};

// Each match is a route of its own. `grants`: null in the mesh, where none is needed.
Rules ConvertHttpRules(const Inputs& in, const Grants* grants, const kube::Object& route);
// TCPRoutes and TLSRoutes.
Rules ConvertTcpRules(const Inputs& in, const Grants* grants, const kube::Object& route);
Rules ConvertTlsRules(const Inputs& in, const Grants* grants, const kube::Object& route);

// Exact paths before prefixes before regular expressions, longer ones first, then those that ask for more.
void SortHttpRoutes(const pilot::Profile& profile, nlohmann::json& routes);

}  // namespace wavetank::gatewayapi
