// All Gateways that select one router, merged into one (istiod: pilot/pkg/model/gateway.go, MergeGateways).
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/gateway.h"
#include "core/model/endpoint.h"

namespace wavetank::pilot {

// Where a listener is: the resolved port, the protocol as written, the bind address.
struct ServerPort {
  uint32_t number = 0;
  std::string protocol, bind;
  friend auto operator<=>(const ServerPort&, const ServerPort&) = default;
};

// One server of one Gateway, as the router serves it. Lives as long as its MergedGateway.
struct GatewayServer {
  config::Server server;               // hosts sanitised: "./h" is "ns/h", "*/h" is "h"
  std::string gateway_name;            // "namespace/name"
  std::string route_name;              // of its own HTTPS route (TLSServerInfo.RouteName); empty without TLS
  std::vector<std::string> sni_hosts;  // sorted, without namespaces; empty without TLS
};

struct MergedServers {
  std::vector<const GatewayServer*> servers;
  std::string route_name;  // of plain-text HTTP servers; HTTPS servers carry their own
};

class MergedGateway {
 public:
  std::vector<ServerPort> server_ports;  // in order of first use: the order of listeners
  std::map<ServerPort, MergedServers> merged_servers;
  std::map<std::string, std::vector<const GatewayServer*>, std::less<>> servers_by_route_name;
  bool contains_auto_passthrough_gateways = false;
  // Port of the route name (listening port) -> ports as the Gateways name them (istiod: PortMap).
  std::map<int, std::set<int>> port_map;
  std::set<std::string, std::less<>> verified_certificate_references;

  std::vector<std::unique_ptr<GatewayServer>> storage;
};

// The gateways in order (creation time, name, namespace) with the service instances of the router.
std::shared_ptr<const MergedGateway> MergeGateways(const std::vector<config::GatewayRef>& gateways,
                                                   const std::vector<ServiceInstance>& instances,
                                                   std::string_view verified_namespace);

// "http.8080", "https.443.name.gateway.ns" (+ ".bind"); empty for what has no route configuration.
std::string GatewayRdsRouteName(const config::Server& server, uint32_t port, const config::ConfigMeta& gateway);

struct GatewayRouteName {
  int port_number = 0;
  std::string_view port_name, gateway_namespace, gateway_name;
};
GatewayRouteName ParseGatewayRdsRouteName(std::string_view name);

}  // namespace wavetank::pilot
