// The fields that an API server fills in where a client leaves them out.
#pragma once

#include <string>

#include "nlohmann/json.hpp"

namespace wavetank::fakekube {

// What a real API server fills in: protocols of ports, types, replicas, Secrets' stringData. What is allocated (cluster
// IPs, node ports) is not among it.
void SetDefaults(nlohmann::json& body);

// A Job of which nobody says how it finds its pods (spec.manualSelector) finds them by its uid, and labels them so
// (kubernetes: pkg/registry/batch/job, generateSelector).
void SelectJobsPods(nlohmann::json& body, const std::string& uid);

}  // namespace wavetank::fakekube
