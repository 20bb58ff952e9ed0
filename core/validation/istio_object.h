// Whether istiod's validation webhook lets an object of Istio's kinds in (istiod: pkg/webhooks/validation/server,
// pkg/config/validation).
#pragma once

#include <string>
#include <vector>

#include "core/profile/profile.h"
#include "nlohmann/json.hpp"

namespace wavetank::validation {

struct Verdict {
  std::string denied;  // in the webhook's words ("configuration is invalid: ..."); empty: it may be stored
  std::vector<std::string> warnings;  // of what may be stored, as kubectl shows them
};

// Of an object of a kind without rules here: it may be stored. `profile`: the release of the istiod that is asked.
// O(object).
Verdict Judge(const nlohmann::json& object, const pilot::Profile& profile = {});
std::string WhyInvalid(const nlohmann::json& object);

}  // namespace wavetank::validation
