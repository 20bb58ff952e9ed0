// Lists of conditions, as in the statuses of pods and nodes.
#pragma once

#include <string>
#include <string_view>

#include "nlohmann/json.hpp"

namespace wavetank::fakekube {

// Of that type; null: there is none. O(conditions).
const nlohmann::json& ConditionOf(const nlohmann::json& conditions, std::string_view type);

// Puts `condition` in the place of the one of its type, or at the end. It says since when: `now`, or, as long as its
// status stays, what was said before (kubernetes: pkg/api/v1/pod/util.go, UpdatePodCondition).
void SetCondition(nlohmann::json& conditions, nlohmann::json condition, const std::string& now);

}  // namespace wavetank::fakekube
