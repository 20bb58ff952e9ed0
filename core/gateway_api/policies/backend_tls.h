// BackendTLSPolicies: how gateways and sidecars dial a Service or a ServiceEntry, as DestinationRules of istiod's own
// (istiod: pilot/pkg/config/kube/gateway/backend_policies.go).
#pragma once

#include <map>
#include <vector>

#include "core/gateway_api/objects.h"

namespace wavetank::gatewayapi {

// Of the policies that are there; nothing where the profile does not serve them.
struct ConvertedPolicies {
  std::vector<kube::ObjectRef> configs;  // DestinationRules
  std::map<StatusKey, nlohmann::json> statuses;
};
ConvertedPolicies ConvertBackendTls(const Inputs& in);

}  // namespace wavetank::gatewayapi
