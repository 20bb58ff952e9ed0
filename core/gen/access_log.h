// Access logs that the mesh configuration asks for (istiod: pilot/pkg/networking/core/v1alpha3/accesslog.go,
// pilot/pkg/model/telemetry_logging.go). Telemetry resources are not modelled, so the mesh's word is final.
#pragma once

#include <string>

#include "core/config/mesh_config.h"

namespace wavetank::pilot {

// The encoded AccessLog for accessLogFile; empty without one.
std::string FileAccessLog(const config::MeshConfig& mesh);

// The listener's own log, for connections that no filter chain took; empty without accessLogFile, or when the mesh
// says disableEnvoyListenerLog.
std::string ListenerFileAccessLog(const config::MeshConfig& mesh);

}  // namespace wavetank::pilot
