// What of the Gateway API and of ambient mode has no effect in the simulation.
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace wavetank::scenario {

// "Gateway istio-system/eastwest", as notes name an object.
std::string Named(const nlohmann::json& object);

// Of an object of group gateway.networking.k8s.io: kinds and classes that istiod here does not serve, and fields that
// it does not read.
std::vector<std::string> UnheededOfGatewayApi(const nlohmann::json& object);

// Of any object: what would put pods into ambient mode, or run a part of it.
std::vector<std::string> UnheededOfAmbient(const nlohmann::json& object);

}  // namespace wavetank::scenario
