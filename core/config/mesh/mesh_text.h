// Mesh config and mesh networks as istiod prints them: protobuf's JSON mapping (istiod: pkg/util/protomarshal).
#pragma once

#include <string>

#include "core/config/mesh/mesh_config.h"
#include "core/config/mesh/mesh_networks.h"
#include "nlohmann/json.hpp"

namespace wavetank::config {

// What was given over istiod's defaults.
nlohmann::ordered_json MeshConfigJson(const MeshConfig& mesh);
// As in logs: four blanks for each level, an empty message over three lines.
std::string MeshConfigText(const MeshConfig& mesh);
std::string MeshNetworksText(const MeshNetworks& networks);

}  // namespace wavetank::config
