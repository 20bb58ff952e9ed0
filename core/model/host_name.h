// Host names with a leading wildcard, "*.example.com" or "*" (istiod: pkg/config/host/name.go, names.go).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"

namespace wavetank::pilot {

inline bool IsWildcard(std::string_view host) { return !host.empty() && host.front() == '*'; }

// Some host falls under both; a wildcard of either side counts.
bool HostMatches(std::string_view a, std::string_view b);

// Every host under `host` falls under `other`.
bool HostSubsetOf(std::string_view host, std::string_view other);

// Sorts longest first, then by letters, wildcards last. A strict weak order.
bool HostMoreSpecific(std::string_view a, std::string_view b);

// Parts of the lists that they come from.
using HostList = absl::InlinedVector<std::string_view, 4>;

// What falls under both lists, each pair's narrower side; in the order of `a`, then `b`, without repetition.
HostList IntersectHosts(const HostList& a, const std::vector<std::string>& b);

// Those of `hosts` ("host", "ns/host", "*/host") that hold for `ns`, without their namespaces.
HostList HostsForNamespace(const std::vector<std::string>& hosts, std::string_view ns);

}  // namespace wavetank::pilot
