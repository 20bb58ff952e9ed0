// What makes istiod refuse a mesh config as a whole and keep the one before
// (istiod: pkg/config/validation/validation.go, ValidateMeshConfig).
#pragma once

#include "absl/status/status.h"
#include "core/config/mesh/mesh_config.h"
#include "nlohmann/json.hpp"

namespace wavetank::config {

// InvalidArgument names the field and what is expected. Reads `raw` too, for the fields of defaultConfig that nothing
// else needs.
absl::Status ValidateMeshConfig(const MeshConfig& mesh);

// A ProxyConfig: of the mesh, of an annotation, or what came of both (ValidateMeshConfigProxyConfig, after each field
// was read as of its type). InvalidArgument names the field below `path`.
absl::Status CheckProxyConfig(const nlohmann::json& config, const std::string& path);

}  // namespace wavetank::config
