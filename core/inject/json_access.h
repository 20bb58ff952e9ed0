// Reading injection templates' JSON, in which anything may be missing; beside what core/base/json_access.h has.
#pragma once

#include <string>
#include <string_view>

#include "core/base/json_access.h"
#include "core/kube/object.h"
#include "nlohmann/json.hpp"

namespace wavetank::pilot {

// The member at the end of a path of names, or null: "global.proxy.image".
const nlohmann::json& AtPath(const nlohmann::json& object, std::string_view dotted);

// A scalar as Go's fmt.Sprint prints it; null is empty.
std::string Print(const nlohmann::json& scalar);
// The mapping's members that are text.
kube::Labels TextMap(const nlohmann::json& mapping);

// The element of a list of objects whose `name` is this; null if there is none.
nlohmann::json* FindNamed(nlohmann::json& list, std::string_view name);
const nlohmann::json* FindNamed(const nlohmann::json& list, std::string_view name);

// The proxy's container of a pod's spec, which is an init container where the sidecar is native; null if there is none.
nlohmann::json* FindProxyContainer(nlohmann::json& spec);
const nlohmann::json* FindProxyContainer(const nlohmann::json& spec);

}  // namespace wavetank::pilot
