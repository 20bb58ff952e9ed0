// What makes istiod refuse a mesh config as a whole and keep the one before
// (istiod: pkg/config/validation/validation.go, ValidateMeshConfig).
#pragma once

#include "absl/status/status.h"
#include "core/config/mesh/mesh_config.h"

namespace wavetank::config {

// InvalidArgument names the field and what is expected. Reads `raw` too, for the fields of defaultConfig that nothing
// else needs.
absl::Status ValidateMeshConfig(const MeshConfig& mesh);

}  // namespace wavetank::config
