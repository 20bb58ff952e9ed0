#include "core/push/host_match.h"

#include <fmt/format.h>

#include "core/base/ip.h"

namespace wavetank::pilot {

bool HostSubsetOf(std::string_view a, std::string_view b) {
  if (IsWildcard(a)) {
    return IsWildcard(b) && a.size() >= b.size() && a.substr(1).ends_with(b.substr(1));
  }
  return IsWildcard(b) ? a.ends_with(b.substr(1)) : a == b;
}

bool HostMatches(std::string_view a, std::string_view b) {
  if (IsWildcard(a)) {
    if (!IsWildcard(b)) return b.ends_with(a.substr(1));
    return a.size() < b.size() ? b.substr(1).ends_with(a.substr(1)) : a.substr(1).ends_with(b.substr(1));
  }
  return IsWildcard(b) ? a.ends_with(b.substr(1)) : a == b;
}

std::string ResolveShortnameToFqdn(std::string_view host, std::string_view ns, std::string_view domain_suffix) {
  std::string out(host);
  if (host.empty() || host == "*" || host.find('.') != std::string_view::npos || IsIpAddress(host)) return out;
  if (!ns.empty()) out.append(".").append(ns);
  if (!domain_suffix.empty()) out.append(".svc.").append(domain_suffix);
  return out;
}

}  // namespace wavetank::pilot
