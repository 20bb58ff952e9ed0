// Addresses as text, as they stand in services and endpoints.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace wavetank::pilot {

inline constexpr std::string_view kUnixPrefix = "unix://";

// Of a host that may as well be a name.
inline bool IsIpv6(std::string_view host) { return host.find(':') != host.npos; }

// Go's net.JoinHostPort.
inline std::string JoinHostPort(std::string_view host, uint32_t port) {
  const bool v6 = IsIpv6(host);
  return absl::StrCat(v6 ? "[" : "", std::string(host), v6 ? "]:" : ":", port);
}

}  // namespace wavetank::pilot
