// An istiod's debug pages as its port 15014 prints them (istiod: pilot/pkg/xds/debug.go).
#pragma once

#include "nlohmann/json.hpp"

namespace wavetank::pilot {
class Istiod;
}

namespace wavetank::cli {

// /debug/endpointShardz: by host and namespace.
nlohmann::ordered_json EndpointShardz(const pilot::Istiod& istiod);
// /debug/networkz.
nlohmann::ordered_json Networkz(const pilot::Istiod& istiod);
// /debug/registryz.
nlohmann::ordered_json Registryz(const pilot::Istiod& istiod);

}  // namespace wavetank::cli
