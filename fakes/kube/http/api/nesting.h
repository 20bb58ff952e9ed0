// How deep JSON nests, told before it is parsed: parsers and printers go down with it.
#pragma once

#include <cstddef>
#include <string_view>

namespace wavetank::fakekube::http {

// Brackets within brackets, outside of strings. A cheap upper bound: whoever passes may still be no JSON. O(text).
inline bool DeeperThan(std::string_view text, size_t limit) {
  size_t depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > limit) return true;
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return false;
}

}  // namespace wavetank::fakekube::http
