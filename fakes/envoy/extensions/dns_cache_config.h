// envoy.extensions.common.dynamic_forward_proxy.v3.DnsCacheConfig, compiled: what a cache of names is called, and how
// long it keeps what it knows. Clusters and filters that name one cache share it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "nlohmann/json.hpp"

namespace wavetank::envoysim {

struct DnsCacheConfig {
  std::string name;
  Duration refresh_rate = 60s;     // of what could not be resolved
  Duration min_refresh_rate = 5s;  // of what could, whatever its time to live
  Duration host_ttl = 5min;        // of what nobody asks for
  Duration query_timeout = 5s;     // 0: none
  uint32_t max_hosts = 1024, max_pending_requests = 1024;
};

// Of a message as JSON (ConfigJson). InvalidArgument with Envoy's words if it would be refused.
absl::StatusOr<DnsCacheConfig> CompileDnsCache(const nlohmann::json& message);

}  // namespace wavetank::envoysim
