// What manifests say that has no effect in the simulation: kinds that nothing acts upon, fields, istiod's variables.
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace wavetank::scenario {

// "Ingress (networking.k8s.io) is stored here, and has no effect", "Service: spec.sessionAffinity ClientIP has no
// effect here", "Deployment istio-system/istiod: variable PILOT_HTTP10=true has no effect here". Only what would change
// who runs, who is ready or who reaches whom in a real cluster; in order of the object's fields.
std::vector<std::string> UnheededIn(const nlohmann::json& object);

}  // namespace wavetank::scenario
