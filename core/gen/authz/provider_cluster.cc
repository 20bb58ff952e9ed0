#include "core/gen/authz/provider_cluster.h"

#include "core/gen/view/cluster_names.h"
#include "core/push/push_context.h"

namespace wavetank::pilot {

std::optional<ProviderCluster> LookupProviderCluster(const std::string& service, uint32_t port,
                                                     const PushContext& push) {
  const size_t slash = service.find('/');
  const bool has_namespace = slash != service.npos && service.find('/', slash + 1) == service.npos;
  const ServiceRef found = has_namespace ? push.ServiceInNamespace(service.substr(slash + 1), service.substr(0, slash))
                                         : push.OnlyServiceNamed(service);
  if (found == nullptr) return std::nullopt;
  return ProviderCluster{found->hostname,
                         BuildSubsetKey(TrafficDirection::kOutbound, "", found->hostname, static_cast<int>(port))};
}

}  // namespace wavetank::pilot
