// Values by host name, and short names in full (istiod: pilot/pkg/model/config.go).
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/model/host_name.h"

namespace wavetank::pilot {

inline absl::string_view MapKey(std::string_view s) { return {s.data(), s.size()}; }

// Short names get their object's namespace and the domain: "reviews" is "reviews.ns.svc.cluster.local".
// istiod: ResolveShortnameToFQDN.
std::string ResolveShortnameToFqdn(std::string_view host, std::string_view ns, std::string_view domain_suffix);

// Values by host, with the most specific match first: the host itself, else the longest wildcard that covers it. A
// wildcard matches wildcards only. O(number of lengths that wildcards have). istiod: MostSpecificHostMatch.
template <typename V>
class HostTable {
 public:
  V& operator[](const std::string& host) {
    if (!IsWildcard(host)) return specific_[host];
    if (const auto at = std::lower_bound(lengths_.begin(), lengths_.end(), host.size() - 1, std::greater<>());
        at == lengths_.end() || *at != host.size() - 1) {
      lengths_.insert(at, host.size() - 1);
    }
    return wildcard_[host.substr(1)];
  }
  bool contains(const std::string& host) const {
    return IsWildcard(host) ? wildcard_.contains(host.substr(1)) : specific_.contains(host);
  }

  const V* MostSpecific(std::string_view host) const {
    if (IsWildcard(host)) {
      host.remove_prefix(1);
    } else if (const V* found = Get(specific_, host)) {
      return found;
    }
    for (const size_t length : lengths_) {
      if (length > host.size()) continue;
      if (const V* found = Get(wildcard_, host.substr(host.size() - length))) return found;
    }
    return nullptr;
  }

 private:
  static const V* Get(const absl::flat_hash_map<std::string, V>& table, std::string_view key) {
    constexpr size_t kFew = 8;  // comparing so many, nearly all of other lengths, costs less than a hash
    if (table.size() <= kFew) {
      for (const auto& [host, value] : table) {  // order: one at most is equal
        if (host == key) return &value;
      }
      return nullptr;
    }
    const auto it = table.find(MapKey(key));
    return it == table.end() ? nullptr : &it->second;
  }

  absl::flat_hash_map<std::string, V> specific_;
  absl::flat_hash_map<std::string, V> wildcard_;  // without their asterisk
  std::vector<size_t> lengths_;                   // of the keys of wildcard_, longest first
};

}  // namespace wavetank::pilot
