// EnvoyFilters' patches to route configurations, their virtual hosts and routes (istiod:
// pilot/pkg/networking/core/v1alpha3/envoyfilter/rc_patch.go).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/gen/rds/virtual_hosts.h"
#include "core/model/proxy.h"
#include "core/push/policies/envoy_filters.h"

namespace wavetank::pilot {

// There are patches that PatchRoutes() looks at.
bool PatchesRoutes(const EnvoyPatches* patches);

// An encoded route configuration, patched and encoded again.
std::string PatchRoutes(const EnvoyPatches& patches, config::EnvoyFilter::Context context, const Proxy& proxy,
                        std::string_view encoded);

// Virtual hosts of a sidecar as istiod patches them: in place. Hosts of one VirtualService share the list of its
// routes, so that a patch to a route of one of them shows in the others (patched before and after), and the
// configurations of a port and of its sniffed listeners share the hosts, which are then patched once more.
struct PatchableHost;
using PatchableHosts = std::map<std::string, std::shared_ptr<PatchableHost>, std::less<>>;  // by their names
PatchableHosts MakePatchable(const std::vector<VirtualHost>& hosts);

// As above; the hosts of `encoded` that `hosts` knows by name are taken from there, with the domains of `encoded`, and
// stay patched.
std::string PatchRoutes(const EnvoyPatches& patches, config::EnvoyFilter::Context context, const Proxy& proxy,
                        std::string_view encoded, const PatchableHosts& hosts);

// The name in an encoded one, which a patch may have changed.
std::string RouteConfigurationName(std::string_view encoded);

}  // namespace wavetank::pilot
