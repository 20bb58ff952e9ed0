// What istiod's debug endpoints show, as JSON with keys in a fixed order (istiod: pilot/pkg/xds/debug.go).
#pragma once

#include "nlohmann/json.hpp"

namespace wavetank::pilot {

class Istiod;

// /debug/registryz: every service as it is merged over clusters.
nlohmann::ordered_json DebugServices(const Istiod& istiod);
// /debug/endpointShardz: endpoints by service and shard.
nlohmann::ordered_json DebugEndpointShards(const Istiod& istiod);
// /debug/syncz: per connection and type what was sent, ACKed and NACKed, and the names that are subscribed.
nlohmann::ordered_json DebugSync(const Istiod& istiod);
// /debug/networkz: the gateways of all networks.
nlohmann::ordered_json DebugNetworks(const Istiod& istiod);
// /debug/clusterz: remote clusters, their Secrets and whether they have synced.
nlohmann::ordered_json DebugClusters(const Istiod& istiod);

}  // namespace wavetank::pilot
