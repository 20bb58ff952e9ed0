// A simulated proxy's configuration in the forms of Envoy's admin interface, with Envoy's field names.
#pragma once

#include <string>

#include "nlohmann/json.hpp"
#include "scenarios/runner/xds_snapshot.h"

namespace wavetank::sim {
class PodProcess;
}

namespace wavetank::serve {

// GET /config_dump: bootstrap, clusters, endpoints (asked for with include_eds), listeners, routes, secrets, extension
// configurations. Private keys are redacted, as Envoy does.
nlohmann::ordered_json ProxyConfigDump(const sim::PodProcess& pod, const scenario::XdsSnapshot& held, bool include_eds);
// GET /clusters?format=json, and as text: the hosts that its data plane would use now.
nlohmann::ordered_json ProxyClusters(const sim::PodProcess& pod);
std::string ProxyClustersText(const sim::PodProcess& pod);
// GET /certs.
nlohmann::ordered_json ProxyCerts(const sim::PodProcess& pod);

}  // namespace wavetank::serve
