// Istio's CustomResourceDefinitions, without which kubectl would not know a VirtualService: names, columns
// and schemas (istio_schemas.h).
#pragma once

#include <vector>

#include "nlohmann/json.hpp"

namespace wavetank::pilot {

// Of Istio 1.18 (manifests/charts/base/crds).
std::vector<nlohmann::json> IstioDefinitions();
// As of releases since 1.22, whose definitions serve version v1 of networking, security and telemetry, too; with the
// fields of 1.30.
std::vector<nlohmann::json> IstioDefinitionsWithV1();

}  // namespace wavetank::pilot
