// Host names with and without wildcard (istiod: pkg/config/host; pilot/pkg/model/config.go).
#pragma once

#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace wavetank::pilot {

inline absl::string_view MapKey(std::string_view s) { return {s.data(), s.size()}; }

inline bool IsWildcard(std::string_view host) { return !host.empty() && host[0] == '*'; }

// Every name that `a` stands for, `b` stands for too.
bool HostSubsetOf(std::string_view a, std::string_view b);
// Some name that both stand for.
bool HostMatches(std::string_view a, std::string_view b);

// Short names get their object's namespace and the domain: "reviews" is "reviews.ns.svc.cluster.local".
// istiod: ResolveShortnameToFQDN.
std::string ResolveShortnameToFqdn(std::string_view host, std::string_view ns, std::string_view domain_suffix);

// Values by host, with the most specific match first: the host itself, else the longest wildcard that covers it. A
// wildcard matches wildcards only. O(length of the host). istiod: MostSpecificHostMatch.
template <typename V>
class HostTable {
 public:
  V& operator[](const std::string& host) { return (IsWildcard(host) ? wildcard_ : specific_)[host]; }
  bool contains(const std::string& host) const { return (IsWildcard(host) ? wildcard_ : specific_).contains(host); }

  const V* MostSpecific(std::string_view host) const {
    if (!IsWildcard(host)) {
      const auto it = specific_.find(MapKey(host));
      if (it != specific_.end()) return &it->second;
    } else {
      const auto it = wildcard_.find(MapKey(host));
      if (it != wildcard_.end()) return &it->second;
      host.remove_prefix(1);
    }
    if (wildcard_.empty()) return nullptr;
    std::string candidate = "*";
    candidate.append(host);
    for (;;) {
      const auto it = wildcard_.find(candidate);
      if (it != wildcard_.end()) return &it->second;
      if (candidate.size() == 1) return nullptr;
      candidate.erase(1, 1);
    }
  }

 private:
  absl::flat_hash_map<std::string, V> specific_, wildcard_;
};

}  // namespace wavetank::pilot
