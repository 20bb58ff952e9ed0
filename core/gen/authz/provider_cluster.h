// The cluster of an extension provider's service (istiod: pilot/pkg/extensionproviders, LookupCluster).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace wavetank::pilot {

class PushContext;

struct ProviderCluster {
  std::string hostname, cluster;
};

// `service` is "namespace/host", or a host that is in one namespace only; nullopt if there is no such.
std::optional<ProviderCluster> LookupProviderCluster(const std::string& service, uint32_t port,
                                                     const PushContext& push);

}  // namespace wavetank::pilot
