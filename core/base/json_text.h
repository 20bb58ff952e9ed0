// JSON from text and to text. All code asks here instead of the library: a file that names its parser and its printer
// compiles them again, three seconds each time.
#pragma once

#include <string>
#include <string_view>

#include "nlohmann/json.hpp"

namespace wavetank {

// What is no JSON, or nests deeper than bounds::kJsonDepth, is discarded (nlohmann::json::is_discarded): values are
// copied and printed by recursion, and anybody may write the text. O(text).
nlohmann::json ParseJson(std::string_view text);
nlohmann::ordered_json ParseOrderedJson(std::string_view text);

// In one line, or with `indent` spaces for each level. Bytes that are no UTF-8 become U+FFFD. O(value).
std::string JsonText(const nlohmann::json& value, int indent = -1);
std::string JsonText(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace wavetank
