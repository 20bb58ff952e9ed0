// The rules of each kind. `object` is whole; its spec is looked at.
#pragma once

#include "core/validation/problems.h"
#include "nlohmann/json.hpp"

namespace wavetank::validation {

void CheckVirtualService(const nlohmann::json& object, Problems& out);
void CheckGateway(const nlohmann::json& object, Problems& out);
void CheckDestinationRule(const nlohmann::json& object, Problems& out);

}  // namespace wavetank::validation
