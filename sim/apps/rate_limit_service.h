// A container of envoyproxy/ratelimit, as Istio's guide installs it: its settings, its limits, and what it answers
// Envoys. Counts are a Redis's, so that several share them. envoyproxy/ratelimit: src/settings/settings.go,
// src/service.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "fakes/envoy/apps/app.h"
#include "nlohmann/json.hpp"
#include "sim/apps/rate_limits.h"

namespace wavetank::sim {

struct RateLimitSettings {
  std::string container;
  std::string folder;       // of its configuration files
  bool dot_files = true;    // RUNTIME_IGNOREDOTFILES is not set
  std::string config_type;  // CONFIG_TYPE: "FILE"
  std::string redis_host;   // REDIS_URL, or MEMCACHE_HOST_PORT where BACKEND_TYPE is "memcache"
  uint16_t redis_port = 6379;
  bool shadow = false;  // SHADOW_MODE: nothing is ever over
  bool tells = false;   // LIMIT_RESPONSE_HEADERS_ENABLED
  std::string limit_header, remaining_header, reset_header;

  // Of a pod; nothing: no container's image is ".../ratelimit:TAG".
  static std::optional<RateLimitSettings> Of(const nlohmann::json& pod);
};

class RateLimitService {
 public:
  // Its configuration files by path, and the counts of its Redis. Unavailable: that cannot be reached, and why.
  using Files = std::function<std::map<std::string, std::string>()>;
  using Redis = std::function<absl::StatusOr<RateLimitCounts*>()>;
  // Keeps a text for as long as answers may refer to it.
  using Keep = std::function<std::string_view(const std::string& text)>;
  RateLimitService(RateLimitSettings settings, Files files, Redis redis, Keep keep, Time now);

  // At any port: its gRPC method, else its health check.
  envoysim::AppReply Serve(const envoysim::RequestSpec& question, Time now);
  // Why its limits cannot be read, as it logs that. It answers by those that it read before, or with errors.
  const absl::Status& trouble() const { return trouble_; }

 private:
  void Reload(Time now);
  std::string Lines(const envoysim::LimitVerdict& verdict) const;

  const RateLimitSettings settings_;
  const Files files_;
  const Redis redis_;
  const Keep keep_;
  std::optional<RateLimits> limits_;
  std::map<std::string, std::string> read_;
  absl::Status trouble_;
  Time looked_{};
};

}  // namespace wavetank::sim
