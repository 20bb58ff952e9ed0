// networking.istio.io Gateway.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/config/kinds/typed_config.h"

namespace wavetank::config {

struct Server {
  PortSpec port;
  bool has_port = false;
  std::string bind, default_endpoint, name;
  std::vector<std::string> hosts;  // "ns/host" forms included
  std::optional<ServerTlsSettings> tls;
  friend bool operator==(const Server&, const Server&) = default;
};

struct Gateway {
  std::vector<Server> servers;
  Labels selector;
  friend bool operator==(const Gateway&, const Gateway&) = default;
};
using GatewayRef = TypedConfigRef<Gateway>;

// istiod: pkg/config/gateway/gateway.go.
bool IsTlsServer(const Server& server);   // tls is set, and the protocol is not a plain HTTP one
bool IsHttpServer(const Server& server);  // HTTP, or HTTPS terminated here
bool IsHttpsServerWithTlsTermination(const Server& server);
bool IsTcpServerWithTlsTermination(const Server& server);
bool HasOptionalMutual(const Gateway& gateway);  // some server asks for TLS mode OPTIONAL_MUTUAL
bool IsPassThroughServer(const Server& server);  // PASSTHROUGH or AUTO_PASSTHROUGH

}  // namespace wavetank::config
