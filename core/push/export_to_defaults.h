// exportTo where a service or configuration says none (istiod: push_context.go, initDefaultExportMaps).
#pragma once

#include <string>
#include <vector>

#include "core/config/mesh/mesh_config.h"
#include "core/model/export_to.h"

namespace wavetank::pilot {

// What holds where nothing is said. An empty list in the mesh config means public.
struct ExportToDefaults {
  ExportTo service, virtual_service, destination_rule;
  // Of VirtualServices: not "." and "*" alone, and "*" before "." (Change::kDefaultExportsNameNamespaces).
  bool virtual_services_as_said = false;
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
