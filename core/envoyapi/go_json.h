// JSON as Go's encoding/json prints it, where a program in Go puts the text into a message.
#pragma once

#include <string>

#include "nlohmann/json.hpp"

namespace wavetank::pilot {

// Of a google.protobuf.Struct: every number is a double, "<", ">" and "&" are escaped, keys are sorted. Bytes that are
// no UTF-8 become U+FFFD. O(value).
std::string GoStructJson(const nlohmann::json& value);

}  // namespace wavetank::pilot
