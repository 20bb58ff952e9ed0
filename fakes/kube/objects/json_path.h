// The JSONPath of a custom resource's columns and selectors: ".spec.hosts",
// ".status.conditions[?(@.type=="Ready")].status",
// ".metadata.annotations.example\.com/x", "['a b']", "[0]", "[*]".
#pragma once

#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"

namespace wavetank::fakekube {

// What the path leads to, in order; empty if there is nothing or the path cannot be read.
std::vector<const nlohmann::json*> FindJsonPath(const nlohmann::json& in, std::string_view path);

}  // namespace wavetank::fakekube
