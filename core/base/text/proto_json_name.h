// How protobuf's JSON names a field.
#pragma once

#include <string>
#include <string_view>

namespace wavetank {

// "proxy_listen_port" -> "proxyListenPort". protoc's rule: an underscore goes, the letter after it becomes upper case.
inline std::string ProtoJsonName(std::string_view field) {
  std::string out;
  bool upper = false;
  for (const char c : field) {
    if (c == '_') {
      upper = true;
      continue;
    }
    out.push_back(upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c);
    upper = false;
  }
  return out;
}

}  // namespace wavetank
