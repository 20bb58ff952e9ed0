// JSON as YAML, for people.
#pragma once

#include <string>

#include "nlohmann/json.hpp"

namespace wavetank::check {

// Block style; a text that could be read as anything else stands in quotes. Ends with a line's end.
std::string YamlText(const nlohmann::ordered_json& value);

}  // namespace wavetank::check
