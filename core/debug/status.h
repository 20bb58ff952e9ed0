// What a client may ask istiod about its proxies over ADS, by the type of its request (istiod:
// pilot/pkg/xds/statusgen.go, debuggen.go).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace wavetank::pilot {
class Istiod;
}

namespace wavetank::debug {

struct StatusResource {
  std::string type_url, bytes;  // of its Any
};

// Types that are answered here: those below istio.io/ that are no Envoy's.
bool IsStatusType(std::string_view type_url);

// istio.io/debug: the page that the one name asks for ("syncz", "config_dump?proxyID=x"), for callers of the system
// namespace (`identity`: a SPIFFE ID; empty: none). istio.io/debug/syncz: a ClientConfig for each proxy.
// istio.io/debug/config_dump: the sections of a proxy's dump. istio.io/connect, istio.io/connections: nodes; nothing,
// but an answer. Unauthenticated, PermissionDenied, InvalidArgument as istiod's.
absl::StatusOr<std::vector<StatusResource>> StatusResources(const pilot::Istiod& istiod, std::string_view type_url,
                                                            const std::vector<std::string>& names,
                                                            std::string_view identity);

// What a response says of the control plane that sent it (istiod: pilot/pkg/xds/xdsgen.go, ControlPlane).
std::string ControlPlaneIdentifier(const pilot::Istiod& istiod);

}  // namespace wavetank::debug
