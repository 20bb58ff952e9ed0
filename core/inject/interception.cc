#include <algorithm>

#include "core/inject/proxy_bootstrap.h"

namespace wavetank::pilot {

// istiod: tools/istio-iptables/pkg/capture/run.go. Order of the rules: excluded ports, loopback, excluded prefixes,
// included ports, included prefixes.
bool Interception::TakesOutbound(const SocketAddress& destination) const {
  if (destination.ip.is_loopback() || (!v6 && !destination.ip.is_v4())) return false;
  if (excluded_outbound_ports.contains(destination.port)) return false;
  const auto holds = [&](const IpPrefix& prefix) { return prefix.Contains(destination.ip); };
  if (std::any_of(excluded_outbound_ips.begin(), excluded_outbound_ips.end(), holds)) return false;
  if (outbound_ports.contains(destination.port)) return true;
  return all_outbound_ips || std::any_of(outbound_ips.begin(), outbound_ips.end(), holds);
}

bool Interception::TakesInbound(const SocketAddress& destination) const {
  const uint16_t port = destination.port;
  if (!v6 && !destination.ip.is_v4()) return false;
  if (port == 15008) return false;  // the tunnel's port has a listener of its own
  if (!all_inbound_ports) return inbound_ports.contains(port);
  return !excluded_inbound_ports.contains(port);
}

}  // namespace wavetank::pilot
