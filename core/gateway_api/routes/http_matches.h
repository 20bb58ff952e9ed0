// Matches of HTTPRoutes and GRPCRoutes as those of a VirtualService
// (istiod: pilot/pkg/config/kube/gateway/conversion.go, create*Match).
#pragma once

#include <optional>

#include "core/gateway_api/objects.h"

namespace wavetank::gatewayapi {

// An HTTPMatchRequest of one match.
nlohmann::json HttpMatchOf(const nlohmann::json& match, std::optional<ConfigError>& error);
nlohmann::json GrpcMatchOf(const nlohmann::json& match, std::optional<ConfigError>& error);

}  // namespace wavetank::gatewayapi
