// istiod's validation webhook in front of what is written into a cluster: networking.istio.io, by core/validation.
#pragma once

#include <optional>
#include <string>

#include "nlohmann/json.hpp"

namespace wavetank::fakekube {
class ApiServer;
}

namespace wavetank::sim {

// "admission webhook \"rev.validation.istio.io\" denied the request: ..."; nullopt: it may be stored. A cluster whose
// ValidatingWebhookConfigurations lead to no istiod stores everything; one that has no such configuration at all is
// taken for installed as by default. That an istiod is there to answer is the caller's to know.
std::optional<std::string> DeniedByIstio(const fakekube::ApiServer& cluster, const nlohmann::json& object);

}  // namespace wavetank::sim
