// The fields that an API server fills in where a client leaves them out.
#pragma once

#include "nlohmann/json.hpp"

namespace wavetank::fakekube {

// What a real API server fills in: protocols of ports, types, replicas, Secrets' stringData. What is allocated (cluster
// IPs, node ports) is not among it.
void SetDefaults(nlohmann::json& body);

}  // namespace wavetank::fakekube
