// istiod's validation webhook in front of what is written into a cluster: networking.istio.io, by core/validation.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "nlohmann/json.hpp"

namespace wavetank::sim {

class World;

// "admission webhook \"rev.validation.istio.io\" denied the request: ..."; nullopt: it may be stored. A cluster without
// a ready istiod, or whose ValidatingWebhookConfigurations lead to none, stores everything; one that has no such
// configuration at all is taken for installed as by default.
std::optional<std::string> DeniedByIstio(const World& world, std::string_view cluster, const nlohmann::json& object);

}  // namespace wavetank::sim
