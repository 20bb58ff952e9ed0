// Listeners, routes and clusters for proxyless gRPC (istiod: pilot/pkg/networking/grpcgen; gRFC A27, A28, A29, A36).
//
// A gRPC client asks for the listener "host:port" of its target, which names a route configuration, which names
// clusters; a gRPC server asks for "xds.istio.io/grpc/lds/inbound/IP:PORT". Everything is asked for by name and nothing
// is cached. Endpoints are an Envoy's (core/gen/eds/eds.h).
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/xds/generator.h"

namespace wavetank::pilot {

class PushContext;

// Of LDS, RDS and CDS, by the type that is watched; nothing is sent for others. As in 1.18 every push that concerns the
// proxy generates all three again, also one of endpoints alone.
std::unique_ptr<Generator> MakeProxylessGenerator();

inline constexpr std::string_view kGrpcServerListenerPrefix = "xds.istio.io/grpc/lds/inbound/";

// Which listeners a client asks for. Of a name that may be a service's in short, both readings count.
class ListenerNames {
 public:
  ListenerNames(const std::vector<std::string>& names, const Proxy& proxy);

  struct Target {
    std::set<std::string> requested;  // the names that listeners are to bear, without their ports
    std::set<std::string> ports;      // empty: all
  };
  // Null: not asked for. Without any name, every host is, under its own name.
  const Target* Find(const std::string& hostname) const;
  const std::set<std::string>& servers() const { return servers_; }  // inbound names, whole

 private:
  bool everything_;
  std::map<std::string, Target> targets_;
  std::set<std::string> servers_;
  mutable Target own_;
};

// "a:80", "[::1]:80" in two; false: no port, or too many colons (Go's net.SplitHostPort).
bool SplitHostPort(std::string_view text, std::string* host, std::string* port);

// The listeners that a client asks for, by service in the order of its scope; then those of its servers.
std::vector<Resource> BuildProxylessListeners(const Proxy& proxy, const PushContext& push,
                                              const std::vector<std::string>& names);
// Outbound EDS clusters, those of one service together; subsets only where the service and its port are known.
std::vector<Resource> BuildProxylessClusters(const Proxy& proxy, const PushContext& push,
                                             const std::vector<std::string>& names);
// "outbound|80||host": all virtual hosts of the port, as a sidecar has them, but with ports in their domains.
std::vector<Resource> BuildProxylessRoutes(const Proxy& proxy, const PushContext& push,
                                           const std::vector<std::string>& names);

}  // namespace wavetank::pilot
