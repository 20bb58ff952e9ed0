// What istiod read of clusters: services, endpoints, networks (istiod: pilot/pkg/xds/debug.go).
#pragma once

#include <string>

#include "nlohmann/json.hpp"

namespace wavetank::pilot {
class Istiod;
}

namespace wavetank::debug {

// Every service as it is merged over clusters.
nlohmann::ordered_json Registryz(const pilot::Istiod& istiod);
// Exported and imported Services by cluster, namespace and name; null without any.
nlohmann::ordered_json Mcsz(const pilot::Istiod& istiod);
// Endpoints by service port; `brief`: one line each, no JSON.
nlohmann::ordered_json Endpointz(const pilot::Istiod& istiod);
std::string BriefEndpointz(const pilot::Istiod& istiod);
// Endpoints by host name, namespace and shard.
nlohmann::ordered_json EndpointShardz(const pilot::Istiod& istiod);
// The gateways of all networks; null while there are none.
nlohmann::ordered_json Networkz(const pilot::Istiod& istiod);
// Remote clusters, their Secrets and whether they have synced; null without any.
nlohmann::ordered_json Clusterz(const pilot::Istiod& istiod);

}  // namespace wavetank::debug
