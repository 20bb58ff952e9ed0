// LimitRanges: what containers ask for that say nothing, and the bounds of what they may (kubernetes:
// plugin/pkg/admission/limitranger).
#pragma once

#include "absl/status/status.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

// Gives a Pod that is about to be made the defaults of its namespace's LimitRanges; PermissionDenied in the plugin's
// words if it, or a claim, is beyond their bounds. Other kinds pass.
absl::Status AdmitByLimitRanges(const ApiServer& api, nlohmann::json& object);

}  // namespace wavetank::fakekube
