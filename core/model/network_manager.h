// Gateways of the networks of the mesh (istiod: pilot/pkg/model/network.go, NetworkManager).
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/model/ids.h"

namespace wavetank::pilot {

struct NetworkGateway {
  NetworkId network;
  ClusterId cluster;        // empty for a gateway given by address in meshNetworks
  std::string addr;         // IP, or a host name before resolution
  uint32_t port = 0;        // 0: it does not take mTLS
  uint32_t hbone_port = 0;  // 0: it does not take HBONE
  friend auto operator<=>(const NetworkGateway&, const NetworkGateway&) = default;
};

// An immutable view, made anew at each reload and shared with the push contexts.
class NetworkGateways {
 public:
  virtual ~NetworkGateways() = default;
  // More than one network has a gateway, or one had before its name failed to resolve: split horizon applies.
  virtual bool IsMultiNetworkEnabled() const = 0;
  // Least common multiple of the numbers of gateways per network and per network and cluster; 1 if there are none.
  virtual uint32_t LbWeightScaleFactor() const = 0;
  virtual const std::vector<NetworkGateway>& All() const = 0;  // sorted
  // As clusters of type DNS take them: with host names, which their Envoys resolve.
  virtual const NetworkGateways& Unresolved() const { return *this; }
  virtual const std::vector<NetworkGateway>& ForNetwork(const NetworkId& network) const = 0;
  virtual const std::vector<NetworkGateway>& ForNetworkAndCluster(const NetworkId& network,
                                                                  const ClusterId& cluster) const = 0;
};

}  // namespace wavetank::pilot
