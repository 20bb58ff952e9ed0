// "helloworld.sample:5000", as applications write whom they call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/numbers.h"

namespace wavetank::sim {

struct HostPort {
  std::string host;
  int64_t port = 80;
};

// Without a port it is 80; nullopt: no host, or no port from 1 to 65535.
inline std::optional<HostPort> ParseHostPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  HostPort out{std::string(text.substr(0, colon)), 80};
  if (colon != std::string_view::npos &&
      (!absl::SimpleAtoi(std::string(text.substr(colon + 1)), &out.port) || out.port < 1 || out.port > 65535)) {
    return std::nullopt;
  }
  return out.host.empty() ? std::nullopt : std::optional(std::move(out));
}

}  // namespace wavetank::sim
