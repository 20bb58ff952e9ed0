// What istiod derives for a connected proxy, and whether a push concerns it (istiod: pilot/pkg/xds/ads.go,
// computeProxyState; proxy_dependencies.go).
#pragma once

#include "core/push/push_context.h"

namespace wavetank::pilot {

// Brings the proxy's service instances, labels and locality, Sidecar scope and gateways up to `push`, as far as
// `request` may have changed them; null: everything, for a new connection. `node_locality` is what the node said.
void ComputeProxyState(Proxy& proxy, const PushContext& push, const PushRequest* request,
                       const ProxyLocality& node_locality);

// False when nothing that the request names concerns the proxy; request.push must be set.
bool ProxyNeedsPush(const Proxy& proxy, const PushRequest& request);

// Of a request that concerns the proxy: what of it does, where the release makes that difference (istiod:
// filterRelevantUpdates).
std::shared_ptr<const PushRequest> RelevantTo(const Proxy& proxy, const std::shared_ptr<const PushRequest>& request);

}  // namespace wavetank::pilot
