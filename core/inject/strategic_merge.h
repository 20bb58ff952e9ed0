// Strategic merge patch for pods: mappings merge, the lists that have a merge key merge by it, other lists are
// replaced, null removes (Kubernetes: API conventions, patchStrategy and patchMergeKey of PodSpec and Container).
#pragma once

#include "nlohmann/json.hpp"

namespace wavetank::pilot {

// In merged lists the patch's elements follow the patch's order, and an element that only the patch has never comes
// before one that only the target has.
void StrategicMerge(nlohmann::json& target, const nlohmann::json& patch);

}  // namespace wavetank::pilot
