// What manifests say that has no effect in the simulation: kinds that nothing acts upon, fields, istiod's variables.
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
// Whether a note says so: it is about this simulation, and nothing is wrong with what it names.
bool IsUnheeded(std::string_view note);

}  // namespace wavetank::scenario
