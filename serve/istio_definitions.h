// Istio's CustomResourceDefinitions, without which kubectl would not know a VirtualService: names, columns
// and schemas (istio_schemas.h).
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace wavetank::sim {
class World;
}

namespace wavetank::serve {

// Of Istio 1.18 (manifests/charts/base/crds).
std::vector<nlohmann::json> IstioDefinitions();

// Applies to every cluster what it does not define yet, as inputs.
absl::Status DefineIstioResources(sim::World& world);

}  // namespace wavetank::serve
