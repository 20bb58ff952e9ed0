// Truth in text, as Go's strconv.ParseBool reads it.
#pragma once

#include <optional>
#include <string_view>

namespace wavetank {

// nullopt: it is none of the texts that Go takes for true or false.
inline std::optional<bool> ParseBool(std::string_view text) {
  for (const std::string_view yes : {"1", "t", "T", "TRUE", "true", "True"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"0", "f", "F", "FALSE", "false", "False"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

}  // namespace wavetank
