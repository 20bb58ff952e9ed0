// backendRefs of routes as destinations of Istio's
// (istiod: pilot/pkg/config/kube/gateway/conversion.go, buildDestination and its callers).
#pragma once

#include <optional>
#include <string>

#include "core/gateway_api/grants.h"
#include "core/gateway_api/objects.h"

namespace wavetank::gatewayapi {

struct Destinations {
  nlohmann::json list = nlohmann::json::array();  // HTTPRouteDestination or RouteDestination
  std::optional<ConfigError> invalid;             // some of them lead nowhere; the others hold
  std::optional<ConfigError> failed;              // nothing of the rule holds
};

// `route`: whose kind and namespace count. `filters`: the backends may have filters of their own. `grants`: null: no
// grant is needed, as in the mesh.
Destinations BuildDestinations(const Inputs& in, const Grants* grants, const kube::Object& route,
                               const nlohmann::json& backends, bool filters);

struct Destination {
  nlohmann::json value = nlohmann::json::object();
  std::optional<ConfigError> invalid, failed;
};
Destination BuildDestination(const Inputs& in, const Grants* grants, const kube::Object& route,
                             const nlohmann::json& reference);

// Whether any of them gets requests.
bool HasWeight(const nlohmann::json& backends);

// Adds `more` to what there is.
void JoinErrors(std::optional<ConfigError>& to, const std::optional<ConfigError>& more);

}  // namespace wavetank::gatewayapi
