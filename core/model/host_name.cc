#include "core/model/host_name.h"

#include <algorithm>

namespace wavetank::pilot {

bool HostMatches(std::string_view a, std::string_view b) {
  if (IsWildcard(a) && IsWildcard(b)) {
    return a.size() < b.size() ? b.substr(1).ends_with(a.substr(1)) : a.substr(1).ends_with(b.substr(1));
  }
  if (IsWildcard(a)) return b.ends_with(a.substr(1));
  if (IsWildcard(b)) return a.ends_with(b.substr(1));
  return a == b;
}

bool HostSubsetOf(std::string_view host, std::string_view other) {
  if (IsWildcard(host)) {
    return IsWildcard(other) && host.size() >= other.size() && host.substr(1).ends_with(other.substr(1));
  }
  return IsWildcard(other) ? host.ends_with(other.substr(1)) : host == other;
}

bool HostMoreSpecific(std::string_view a, std::string_view b) {
  if (IsWildcard(a) != IsWildcard(b)) return IsWildcard(b);
  return a.size() == b.size() ? a < b : a.size() > b.size();
}

HostList IntersectHosts(const HostList& a, const std::vector<std::string>& b) {
  HostList out;
  const auto add = [&](std::string_view host) {
    if (std::find(out.begin(), out.end(), host) == out.end()) out.push_back(host);
  };
  for (std::string_view x : a) {
    for (std::string_view y : b) {
      if (HostSubsetOf(x, y)) {
        add(x);
      } else if (HostSubsetOf(y, x)) {
        add(y);
      }
    }
  }
  return out;
}

HostList HostsForNamespace(const std::vector<std::string>& hosts, std::string_view ns) {
  HostList out;
  for (std::string_view host : hosts) {
    if (const size_t slash = host.find('/'); slash != std::string_view::npos) {
      const std::string_view of = host.substr(0, slash);
      if (of != ns && of != "*") continue;
      host = host.substr(slash + 1);
    }
    out.push_back(host);
  }
  return out;
}

}  // namespace wavetank::pilot
