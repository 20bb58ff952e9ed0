// CustomResourceDefinitions of the Gateway API, as far as clients need them: names, versions, columns, and of fields
// those without which an object means nothing. Everything else of spec and status is kept as it comes.
#pragma once

#include <vector>

#include "nlohmann/json.hpp"

namespace wavetank::gatewayapi {

std::vector<nlohmann::json> Definitions();

}  // namespace wavetank::gatewayapi
