// Addresses as text, as they stand in services and endpoints.
#pragma once

#include <string>
#include <string_view>

namespace wavetank::pilot {

inline constexpr std::string_view kUnixPrefix = "unix://";

// Of a host that may as well be a name.
inline bool IsIpv6(std::string_view host) { return host.find(':') != host.npos; }

// Brackets around IPv6, nothing around all else (istiod: util.IPv6Compliant).
std::string InBrackets(std::string_view host);

// "host:port", brackets around IPv6 (Go's net.JoinHostPort; istiod: util.DomainName).
std::string JoinHostPort(std::string_view host, int port);
void AppendHostPort(std::string_view host, int port, std::string& out);

}  // namespace wavetank::pilot
