// Filters of HTTPRoutes and GRPCRoutes (istiod: pilot/pkg/config/kube/gateway/conversion.go, create*Filter).
#pragma once

#include <optional>

#include "core/gateway_api/objects.h"

namespace wavetank::gatewayapi {

// RequestHeaderModifier and ResponseHeaderModifier, into `headers` of an HTTPRoute or HTTPRouteDestination; any other
// filter is an error.
std::optional<ConfigError> AddHeaderFilter(const nlohmann::json& filter, nlohmann::json& out);

nlohmann::json RedirectOf(const nlohmann::json& filter, const pilot::Profile& profile);
// Null: it changes nothing.
nlohmann::json RewriteOf(const nlohmann::json& filter, const pilot::Profile& profile);
nlohmann::json CorsOf(const nlohmann::json& filter);

}  // namespace wavetank::gatewayapi
