// Reading JSON trees in which anything may be missing.
#pragma once

#include <string>
#include <string_view>

#include "core/kube/object.h"
#include "nlohmann/json.hpp"

namespace wavetank::pilot {

// The member, or null when `object` is no object or lacks it.
const nlohmann::json& At(const nlohmann::json& object, std::string_view name);
// The same along a path of names: "global.proxy.image".
const nlohmann::json& AtPath(const nlohmann::json& object, std::string_view dotted);

// A member's text; empty when there is none.
std::string Text(const nlohmann::json& object, std::string_view name);
// A scalar as Go's fmt.Sprint prints it; null is empty.
std::string Print(const nlohmann::json& scalar);
// The mapping's members that are text.
kube::Labels TextMap(const nlohmann::json& mapping);

// The element of a list of objects whose `name` is this; null if there is none.
nlohmann::json* FindNamed(nlohmann::json& list, std::string_view name);
const nlohmann::json* FindNamed(const nlohmann::json& list, std::string_view name);

// Go's strconv.ParseBool, `fallback` for anything else.
bool ParseBool(std::string_view text, bool fallback);

}  // namespace wavetank::pilot
