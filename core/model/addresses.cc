#include "core/model/addresses.h"

#include <charconv>

namespace wavetank::pilot {

std::string InBrackets(std::string_view host) {
  if (!IsIpv6(host)) return std::string(host);
  std::string out;
  out.reserve(host.size() + 2);
  return out.append("[").append(host).append("]");
}

std::string JoinHostPort(std::string_view host, int port) {
  std::string out;
  AppendHostPort(host, port, out);
  return out;
}

void AppendHostPort(std::string_view host, int port, std::string& out) {
  const bool v6 = IsIpv6(host);
  char digits[12];
  const char* const end = std::to_chars(digits, digits + sizeof digits, port).ptr;
  out.reserve(out.size() + host.size() + 8);
  if (v6) out.push_back('[');
  out.append(host).append(v6 ? "]:" : ":").append(digits, static_cast<size_t>(end - digits));
}

}  // namespace wavetank::pilot
