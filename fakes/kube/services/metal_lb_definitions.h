// MetalLB's kinds as definitions: which fields they have, of what type.
#pragma once

#include <vector>

#include "nlohmann/json.hpp"

namespace wavetank::fakekube {

// CustomResourceDefinitions, as far as fields and their types go (metallb: api/v1beta1, api/v1beta2).
std::vector<nlohmann::json> MetalLbDefinitions();

}  // namespace wavetank::fakekube
