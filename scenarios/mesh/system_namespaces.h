// Where the control planes of a mesh's manifests are installed.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace wavetank::scenario {

using SystemNamespaceSet = std::set<std::string, std::less<>>;

// The namespaces of istiods, those of remote clusters that name one, and istio-system, which guides prepare first.
SystemNamespaceSet SystemNamespaces(const std::vector<nlohmann::json>& objects);
// Of them that where a control plane is: istio-system if there is no other.
const std::string& MainOf(const SystemNamespaceSet& namespaces);

}  // namespace wavetank::scenario
