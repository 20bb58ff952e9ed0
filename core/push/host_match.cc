#include "core/push/host_match.h"

#include "core/base/ip.h"

namespace wavetank::pilot {

std::string ResolveShortnameToFqdn(std::string_view host, std::string_view ns, std::string_view domain_suffix) {
  std::string out(host);
  if (host.empty() || host == "*" || host.find('.') != std::string_view::npos || IsIpAddress(host)) return out;
  if (!ns.empty()) out.append(".").append(ns);
  if (!domain_suffix.empty()) out.append(".svc.").append(domain_suffix);
  return out;
}

}  // namespace wavetank::pilot
