// Routes as VirtualServices, one for each parent and host; those of one parent and host become one
// (istiod: pilot/pkg/config/kube/gateway/route_collections.go).
#pragma once

#include <map>
#include <vector>

#include "core/gateway_api/gateways.h"

namespace wavetank::gatewayapi {

struct ConvertedRoutes {
  std::vector<kube::ObjectRef> configs;
  std::map<StatusKey, nlohmann::json> statuses;
  Attachments attachments;
};
ConvertedRoutes ConvertRoutes(const Inputs& in, const Grants& grants, const Parents& parents);

}  // namespace wavetank::gatewayapi
