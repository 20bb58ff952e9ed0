// Two mesh configs of which one goes below the other, as SHARED_MESH_CONFIG has it (istiod: pkg/config/mesh/mesh.go,
// ApplyMeshConfig): every field of the upper one overrides; defaultConfig and its proxyMetadata, defaultProviders,
// extensionProviders by their names and trustDomainAliases are put together.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wavetank::config {

// As one document, in JSON. InvalidArgument: one of them is no YAML.
absl::StatusOr<std::string> MergeMeshConfigs(std::string_view below, std::string_view above);

}  // namespace wavetank::config
