// What generators ask of a proxy again and again: how it captures traffic, what it may bind to, where it sees a service
// (istiod: pilot/pkg/model/context.go, service.go; pilot/pkg/networking/core/v1alpha3/listener_address.go).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/time.h"
#include "core/config/mesh/mesh_config.h"
#include "core/model/proxy.h"
#include "core/model/service.h"
#include "core/profile/profile.h"

namespace wavetank::pilot {

class PushContext;

// The service's address as `proxy` resolves it: the VIP of the proxy's own cluster, an automatic one if its agent
// answers DNS, else the service's own. "0.0.0.0": none. May be a CIDR. istiod: Service.GetAddressForProxy.
const std::string& AddressForProxy(const Service& service, const Proxy& proxy, const Profile& profile);
// All by which it knows the service, for names and virtual hosts: that one, unless the release tells several.
// istiod: Service.GetAllAddressesForProxy.
std::vector<std::string> AddressesForProxy(const Service& service, const Proxy& proxy, const Profile& profile);

// Those beside AddressForProxy at which its listener stands too. istiod: Service.GetExtraAddressesForProxy.
std::vector<std::string> ExtraAddressesForProxy(const Service& service, const Proxy& proxy, const Profile& profile);

enum class InterceptionMode : uint8_t { kRedirect, kTproxy, kNone };
InterceptionMode GetInterceptionMode(const Proxy& proxy);

bool SupportsIpv4(const Proxy& proxy);
bool SupportsIpv6(const Proxy& proxy);
// IPv4's unless the proxy has IPv6 addresses only.
std::string_view WildcardAddress(const Proxy& proxy);
std::string_view LocalhostAddress(const Proxy& proxy);
// That of IPv6 if the proxy has addresses of both families, else empty. istiod: getWildcardsAndLocalHost.
std::string_view ExtraWildcardAddress(const Proxy& proxy);
std::string_view ExtraLocalhostAddress(const Proxy& proxy);
// The proxy's first address that is neither loopback nor link-local nor multicast; empty if there is none.
std::string_view GlobalUnicastIp(const Proxy& proxy);

// The agent's own ports (status, metrics) are taken: bootstrap listeners stand there.
class StaticListeners {
 public:
  explicit StaticListeners(const Proxy& proxy);
  bool ConflictWith(std::string_view bind, int port, Protocol protocol) const;

 private:
  const std::string_view wildcard_;
  const int status_port_, prometheus_port_;
};

bool IsUnprivileged(const Proxy& proxy);

// ISTIO_VERSION of the metadata is `major`.`minor` or later; a version that is absent or unreadable counts as the
// latest. istiod: pilot/pkg/model/context.go, ParseIstioVersion.
bool IsVersionAtLeast(const Proxy& proxy, int major, int minor);

// Traffic to unknown hosts is let through (the scope's outboundTrafficPolicy).
bool IsAllowAnyOutbound(const Proxy& proxy);

// IDLE_TIMEOUT of the metadata, in Go's notation; nullopt if absent or not a duration.
std::optional<Duration> IdleTimeout(const Proxy& proxy);
// By its metadata or istiod's PILOT_HTTP10.
bool AcceptsHttp10(const Proxy& proxy, const PushContext& push);
// A flag in the metadata: "true" or 1 as JSON or text.
bool MetadataFlag(const Proxy& proxy, std::string_view key);
// An integer in the metadata, written as a number or as text; 0 if absent, or if it is none of an int.
int MetadataInteger(const Proxy& proxy, std::string_view key);

// PROXY_CONFIG of the metadata, else the mesh's defaultConfig; null if neither is there.
const nlohmann::json* ProxyConfigOf(const Proxy& proxy, const config::MeshConfig& mesh);

}  // namespace wavetank::pilot
