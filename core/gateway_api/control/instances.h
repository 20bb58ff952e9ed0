// What stands behind a gateway's Services, of what istiod has discovered
// (istiod: pilot/pkg/config/kube/gatewaycommon/context.go).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/gateway_api/objects.h"
#include "core/model/endpoint_index.h"
#include "core/model/environment.h"

namespace wavetank::gatewayapi {

GatewayInstances ResolveInstances(const pilot::ServiceDiscovery& discovery, const pilot::EndpointIndex& endpoints,
                                  const std::string& ns, const std::vector<std::string>& services,
                                  const std::set<int>& ports);

}  // namespace wavetank::gatewayapi
