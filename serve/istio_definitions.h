// Istio's CustomResourceDefinitions, without which kubectl would not know a VirtualService: names and columns.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace wavetank::sim {
class World;
}

namespace wavetank::serve {

// Of Istio 1.18 (manifests/charts/base/crds). Their schemas are left open: what a resource means, and whether it is
// valid, istiod says.
std::vector<nlohmann::json> IstioDefinitions();

// Applies to every cluster what it does not define yet, as inputs.
absl::Status DefineIstioResources(sim::World& world);

}  // namespace wavetank::serve
