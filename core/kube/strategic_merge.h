// Strategic merge patch: mappings merge, the lists that have a merge key merge by it, other lists are replaced, null
// removes (Kubernetes: API conventions; the keys are in list_types.h). The API server's PATCH and istiod's injector
// share it.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace wavetank::kube {

// `kind` is one of Kubernetes' own. In merged lists the patch's elements follow the patch's order, the target's others
// theirs, and an element that only the patch has comes before one that only the target has.
//
// Directives: "$patch": replace, delete or merge in mappings and in elements of merged lists, "$setElementOrder/LIST",
// "$deleteFromPrimitiveList/LIST", "$retainKeys". InvalidArgument, with Kubernetes' words, for one that it does not
// know and for an element of a merged list without its key; `target` is then undefined. O(target + patch), quadratic in
// the length of merged lists.
absl::Status StrategicMerge(nlohmann::json& target, const nlohmann::json& patch, std::string_view kind = "Pod");

}  // namespace wavetank::kube
