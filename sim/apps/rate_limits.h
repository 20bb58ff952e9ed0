// The limits of envoyproxy/ratelimit, the service that Istio's guide installs: trees of descriptors by domain, read
// from its configuration files, and how they judge. envoyproxy/ratelimit: src/config/config_impl.go,
// src/service/ratelimit.go.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "fakes/envoy/apps/rate_limiter.h"
#include "nlohmann/json.hpp"

namespace wavetank::sim {

// What a Redis holds of them: how often a descriptor was met in its window of the calendar.
struct RateLimitCount {
  int64_t window = 0;  // its first second, in Unix time
  uint32_t taken = 0;
};
using RateLimitCounts = std::map<std::string, RateLimitCount, std::less<>>;

class RateLimits {
 public:
  // Texts by path. InvalidArgument in the service's words: no domain, a key that it does not know, a unit that is none,
  // a descriptor twice.
  static absl::StatusOr<RateLimits> Read(const std::map<std::string, std::string>& files);

  // Each descriptor that has a limit counts once. The verdict points into the limits.
  envoysim::LimitVerdict Judge(std::string_view domain, const std::vector<envoysim::LimitedDescriptor>& descriptors,
                               int64_t unix_now, RateLimitCounts* counts) const;

 private:
  struct Limit {
    envoysim::ServiceLimit is;
    bool unlimited = false, shadow = false;
    bool quota = false;                 // over only if all such are
    std::vector<std::string> replaces;  // by name
  };
  struct Node {
    std::unique_ptr<Limit> limit;                    // null: it has none of its own
    std::map<std::string, Node, std::less<>> below;  // by "key" or "key_value"
    std::vector<std::string> wildcards;              // those with a '*', in the order of the file
    bool shares = false;                             // what a wildcard matches counts together
  };
  static absl::Status ReadBelow(const nlohmann::json& descriptors, const std::string& file, const std::string& parent,
                                Node* to);
  static absl::StatusOr<std::unique_ptr<Limit>> ReadLimit(const nlohmann::json& descriptor, const std::string& file);
  // `counted_as`: the entry under which a Redis has its count.
  const Limit* Find(std::string_view domain, const envoysim::LimitedDescriptor& descriptor,
                    std::string* counted_as) const;

  std::map<std::string, Node, std::less<>> domains_;
};

}  // namespace wavetank::sim
