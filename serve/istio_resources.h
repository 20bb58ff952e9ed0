// Istio's kinds in the clusters' APIs, without which kubectl would not know a VirtualService.
#pragma once

#include "absl/status/status.h"

namespace wavetank::sim {
class World;
}

namespace wavetank::serve {

// Applies to every cluster, as inputs, the definitions (core/config/schema/istio_definitions.h) that it does not have
// yet; to one that holds objects of the Gateway API its definitions, too (core/gateway_api/definitions.h). The first
// refusal of an API server ends it.
absl::Status DefineIstioResources(sim::World& world);

}  // namespace wavetank::serve
