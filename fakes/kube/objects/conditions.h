// Lists of conditions, as in the statuses of pods and nodes.
#pragma once

#include <string>
#include <string_view>

#include "nlohmann/json.hpp"

namespace wavetank::fakekube {

bool IsOfType(const nlohmann::json& condition, std::string_view type);

// Of that type; null: there is none. O(conditions).
const nlohmann::json& ConditionOf(const nlohmann::json& conditions, std::string_view type);

// The time since which a condition has its status: `now`, unless the one before, which may be null, had the same.
std::string SinceWhen(const nlohmann::json& before, std::string_view status, const std::string& now);

// Puts `condition` in the place of the one of its type, or at the end. It says since when (kubernetes:
// pkg/api/v1/pod/util.go, UpdatePodCondition).
void SetCondition(nlohmann::json& conditions, nlohmann::json condition, const std::string& now);

}  // namespace wavetank::fakekube
