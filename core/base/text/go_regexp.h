// What Go's regexp package makes of texts.
#pragma once

#include <string>
#include <string_view>

namespace wavetank {

// A regular expression that matches `text` alone, with a backslash where Go puts one (Go: regexp.QuoteMeta); RE2's own
// function puts more of them. O(text).
inline std::string QuoteMeta(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\.+*?()|[]{}^$").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace wavetank
