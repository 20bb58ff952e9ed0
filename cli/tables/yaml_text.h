// JSON as YAML, as sigs.k8s.io/yaml writes it: keys sorted, two blanks a level, lists at their parent's column.
#pragma once

#include <string>

#include "nlohmann/json.hpp"

namespace wavetank::cli::tables {

// Ends with a line feed. O(value).
std::string YamlText(const nlohmann::json& value);

}  // namespace wavetank::cli::tables
