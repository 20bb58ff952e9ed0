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
// who runs, who is ready or who reaches whom in a real cluster; in order of the object's fields. And what istiod reads
// without a word: "ConfigMap istio-system/istio: mesh: outboundTraficPolicy: MeshConfig has no such field...".
std::vector<std::string> UnheededIn(const nlohmann::json& object);
// Whether a note is about this simulation alone: nothing is wrong with what it names.
bool IsUnheeded(std::string_view note);

}  // namespace wavetank::scenario
