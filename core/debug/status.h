// What a client may ask istiod about its proxies over ADS, by the type of its request (istiod:
// pilot/pkg/xds/statusgen.go, debuggen.go).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace wavetank::pilot {
class Istiod;
struct ConnectionEvent;
}  // namespace wavetank::pilot

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

// Whether a client that asks for it is told of later events, too: istio.io/connect, /disconnect, /nack.
bool IsEventType(std::string_view type_url);
// What subscribers of `type_url` are told of `event`; nullopt: nothing. istio.io/connect and /disconnect: the proxy's
// node; /nack: the request that refused, of which the node is the proxy's ID alone.
std::optional<StatusResource> EventResource(std::string_view type_url, const pilot::ConnectionEvent& event);

// What a response says of the control plane that sent it (istiod: pilot/pkg/xds/xdsgen.go, ControlPlane).
std::string ControlPlaneIdentifier(const pilot::Istiod& istiod);

}  // namespace wavetank::debug
