#include "fakes/envoy/extensions/dns_cache_config.h"

#include "fakes/envoy/extensions/config_json.h"

namespace wavetank::envoysim {

// Envoy: source/extensions/common/dynamic_forward_proxy/dns_cache_impl.cc, DnsCacheImpl; dns_cache_resource_manager.cc
absl::StatusOr<DnsCacheConfig> CompileDnsCache(const nlohmann::json& message) {
  DnsCacheConfig out;
  out.name = TextAt(message, "name");
  if (!message.is_null() && out.name.empty()) {  // without a configuration there is a cache without a name
    return absl::InvalidArgumentError(
        "Proto constraint validation failed (DnsCacheConfigValidationError.Name: value length must be at least 1 "
        "characters)");
  }
  out.refresh_rate = DurationAt(message, "dns_refresh_rate", out.refresh_rate);
  // Without a back-off of its own a failure waits as long. Envoy: config/utility.h, prepareDnsRefreshStrategy
  out.min_refresh_rate = DurationAt(message, "dns_min_refresh_rate", out.min_refresh_rate);
  out.host_ttl = DurationAt(message, "host_ttl", out.host_ttl);
  out.query_timeout = DurationAt(message, "dns_query_timeout", out.query_timeout);
  out.max_hosts = static_cast<uint32_t>(NumberAt(message, "max_hosts", out.max_hosts));
  out.max_pending_requests = static_cast<uint32_t>(
      NumberAt(message, "dns_cache_circuit_breaker.max_pending_requests", out.max_pending_requests));
  return out;
}

}  // namespace wavetank::envoysim
