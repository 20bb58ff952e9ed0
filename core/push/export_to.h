// exportTo of services and configurations (istiod: pkg/config/visibility; push_context.go, initDefaultExportMaps).
#pragma once

#include <string>
#include <vector>

#include "core/config/mesh_config.h"
#include "core/model/service.h"

namespace wavetank::pilot {

inline ExportTo ParseExportTo(const std::vector<std::string>& values) {
  ExportTo out;
  for (const std::string& value : values) {
    if (value == "*") {
      out.is_public = true;
    } else if (value == ".") {
      out.is_private = true;
    } else if (value == "~") {
      out.is_none = true;
    } else {
      out.namespaces.insert(value);
    }
  }
  return out;
}

// What holds where nothing is said. An empty list in the mesh config means public.
struct ExportToDefaults {
  ExportTo service, virtual_service, destination_rule;
  friend bool operator==(const ExportToDefaults&, const ExportToDefaults&) = default;

  static ExportToDefaults Of(const config::MeshConfig& mesh) {
    const auto read = [](const std::vector<std::string>& values) {
      ExportTo out = ParseExportTo(values);
      if (out.empty()) out.is_public = true;
      return out;
    };
    return {.service = read(mesh.default_service_export_to),
            .virtual_service = read(mesh.default_virtual_service_export_to),
            .destination_rule = read(mesh.default_destination_rule_export_to)};
  }
};

}  // namespace wavetank::pilot
