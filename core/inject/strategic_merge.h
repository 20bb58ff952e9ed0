// Strategic merge patch for pods: mappings merge, the lists that have a merge key merge by it, other lists are
// replaced, null removes (Kubernetes: API conventions, patchStrategy and patchMergeKey of PodSpec and Container).
#pragma once

#include "nlohmann/json.hpp"

namespace wavetank::pilot {

void StrategicMerge(nlohmann::json& target, const nlohmann::json& patch);

}  // namespace wavetank::pilot
