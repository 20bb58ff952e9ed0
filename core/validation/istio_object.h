// Whether istiod's validation webhook lets an object of Istio's kinds in (istiod: pkg/webhooks/validation/server,
// pkg/config/validation).
#pragma once

#include <string>

#include "nlohmann/json.hpp"

namespace wavetank::validation {

// The webhook's words ("configuration is invalid: ..."); empty: it may be stored, or is of a kind without rules here.
// O(object).
std::string WhyInvalid(const nlohmann::json& object);

}  // namespace wavetank::validation
