// What manifests say that has no effect: in the simulation alone (kinds that nothing acts upon, fields, istiod's
// variables), or in a real mesh, too (words that are no field of mesh config).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"

namespace wavetank::scenario {

// "Ingress (networking.k8s.io) is stored here, and has no effect", "Service: spec.sessionAffinity ClientIP has no
// effect here", "Deployment istio-system/istiod: variable PILOT_HTTP10=true has no effect here". Only what would change
// who runs, who is ready or who reaches whom in a real cluster; in order of the object's fields.
std::vector<std::string> UnheededIn(const nlohmann::json& object);
// "meshConfig.outboundTraficPolicy: MeshConfig has no such field...", for each word that is none; `message` is
// MeshConfig or ProxyConfig, and `where` what it is called there.
std::vector<std::string> UnknownMeshWords(std::string_view where, std::string_view message,
                                          const nlohmann::json& document);
// Whether a note says so of this simulation: it is about this simulation, and nothing is wrong with what it names.
bool IsUnheeded(std::string_view note);

}  // namespace wavetank::scenario
