// What a request counts as for rate limits: the actions of routes and virtual hosts (`rate_limits`), and the
// descriptors that they make of a request. Envoy: source/common/router/router_ratelimit.cc
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "fakes/envoy/match/matchers.h"
#include "fakes/envoy/tcp/http.h"

namespace envoy::config::route::v3 {
class RateLimit;
}

namespace wavetank::envoysim {

using RateLimitDescriptor = std::vector<std::pair<std::string, std::string>>;

// What actions ask of a request.
struct RateLimitSubject {
  const RequestSpec* request = nullptr;
  std::string_view local_cluster, route_cluster;
  IpAddress remote;
};

class RateLimitActions {
 public:
  // Adds the entry's. InvalidArgument with Envoy's words.
  absl::Status Add(const envoy::config::route::v3::RateLimit& entry);
  bool empty() const { return entries_.empty(); }
  // Of entries with this stage: those whose actions all apply.
  void Describe(uint32_t stage, const RateLimitSubject& subject, std::vector<RateLimitDescriptor>* out) const;

 private:
  enum class Kind : uint8_t { kSourceCluster, kDestinationCluster, kHeader, kRemote, kGeneric, kMatch, kUnknown };
  struct Action {
    Kind kind = Kind::kUnknown;
    std::string key, value;  // of the descriptor; `value` of kHeader: the header's name
    bool skip_if_absent = false;
    bool expect_match = true;  // kMatch
    std::vector<HeaderMatch> headers;
  };
  struct Entry {
    uint32_t stage = 0;
    bool disabled = false;
    std::vector<Action> actions;
  };
  // False: the action does not apply, and with it the entry.
  static bool Apply(const Action& action, const RateLimitSubject& subject, RateLimitDescriptor* out);

  std::vector<Entry> entries_;
};

}  // namespace wavetank::envoysim
