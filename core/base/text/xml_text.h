// Text within XML, as the JUnit files have it.
#pragma once

#include <string>
#include <string_view>

namespace wavetank {

// For attributes in double quotes and for content. XML 1.0 has no control characters but tab, line feed and carriage
// return, not even escaped: others are left out.
inline std::string XmlText(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t' || c == '\r') out += c;
    }
  }
  return out;
}

}  // namespace wavetank
