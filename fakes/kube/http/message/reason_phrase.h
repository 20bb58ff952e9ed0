// The words of RFC 9110 for the codes that servers and proxies give.
#pragma once

#include <string_view>

namespace wavetank::fakekube::http {

// Of 404: "Not Found"; "Unknown" of a code that has none here.
std::string_view ReasonPhrase(int code);

}  // namespace wavetank::fakekube::http
