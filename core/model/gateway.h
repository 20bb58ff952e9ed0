// All Gateways that select one router, merged into one (istiod: pilot/pkg/model/gateway.go, MergeGateways).
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/base/containers/text_arena.h"
#include "core/config/kinds/gateway.h"
#include "core/model/endpoint.h"

namespace wavetank::pilot {

struct Profile;

// Where a listener is: the resolved port, the protocol as written, the bind address.
struct ServerPort {
  uint32_t number = 0;
  std::string protocol, bind;
  friend auto operator<=>(const ServerPort&, const ServerPort&) = default;
};

// One server of one Gateway, as the router serves it. All that it refers to lives as long as its MergedGateway.
struct GatewayServer {
  const config::Server& server;             // hosts sanitised: "./h" is "ns/h", "*/h" is "h"
  std::string_view gateway_name;            // "namespace/name"
  std::string_view route_name;              // of its own HTTPS route (TLSServerInfo.RouteName); empty without TLS
  std::vector<std::string_view> sni_hosts;  // sorted, without namespaces; empty without TLS
};
using GatewayServers = std::vector<const GatewayServer*>;

struct MergedServers {
  GatewayServers servers;
  std::string_view route_name;  // of plain-text HTTP servers; HTTPS servers carry their own
};

class MergedGateway {
 public:
  std::vector<ServerPort> server_ports;  // in order of first use: the order of listeners
  std::map<ServerPort, MergedServers> merged_servers;
  absl::flat_hash_map<absl::string_view, GatewayServers> servers_by_route_name;
  bool contains_auto_passthrough_gateways = false;
  // Port of the route name (listening port) -> ports as the Gateways name them (istiod: PortMap).
  std::map<int, std::set<int>> port_map;
  std::set<std::string, std::less<>> verified_certificate_references;
  // Servers in plain text, or at a port whose first server is, that no request reaches because of that first one.
  struct Unserved {
    const GatewayServer *server, *first;
  };
  std::vector<Unserved> unserved;

  // What the above points to.
  std::vector<config::GatewayRef> gateways;
  std::vector<GatewayServer> storage;
  std::deque<config::Server> sanitised;
  TextArena names;
};

// The gateways in order (creation time, name, namespace) with the service instances of the router.
std::shared_ptr<const MergedGateway> MergeGateways(std::vector<config::GatewayRef> gateways,
                                                   const std::vector<ServiceInstance>& instances,
                                                   std::string_view verified_namespace, const Profile& profile);

// "http.8080", "https.443.name.gateway.ns" (+ ".bind"); empty for what has no route configuration.
std::string GatewayRdsRouteName(const config::Server& server, uint32_t port, const config::ConfigMeta& gateway);

struct GatewayRouteName {
  int port_number = 0;
  std::string_view port_name, gateway_namespace, gateway_name;
};
GatewayRouteName ParseGatewayRdsRouteName(std::string_view name);

}  // namespace wavetank::pilot
