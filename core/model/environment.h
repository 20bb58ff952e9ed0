// What a push context is computed from: the registries, the configuration and the networks of one istiod.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/endpoint.h"
#include "core/model/endpoint_index.h"
#include "core/model/network_manager.h"

namespace wavetank {
class Host;
}

namespace wavetank::config {
class ConfigStore;
struct MeshConfig;
struct MeshNetworks;
}  // namespace wavetank::config

namespace wavetank::pilot {

struct Proxy;
struct Profile;

// The aggregate of all registries (istiod: pilot/pkg/model/service.go, ServiceDiscovery; serviceregistry/aggregate).
class ServiceDiscovery {
 public:
  virtual ~ServiceDiscovery() = default;
  // Merged over clusters, in registry order then each registry's own order (istiod sorts them later by creation time).
  virtual std::vector<ServiceRef> Services() const = 0;
  virtual ServiceRef GetService(std::string_view hostname) const = 0;
  // Instances of one service port over all registries; empty for services whose endpoints the index holds only.
  virtual std::vector<ServiceInstance> InstancesByPort(const Service& service, int port) const = 0;
  // The service ports that the proxy itself implements.
  virtual std::vector<ServiceInstance> GetProxyServiceInstances(const Proxy& proxy) const = 0;
  // Labels of the proxy's workload; nullopt when no registry knows it.
  virtual std::optional<Labels> GetProxyWorkloadLabels(const Proxy& proxy) const = 0;
};

// Key sets of issuers of JWTs, wherever they come from (istiod: pilot/pkg/model/jwks_resolver.go, which fetches them).
class JwksResolver {
 public:
  virtual ~JwksResolver() = default;
  // As `uri` serves it, or, if that is empty, the URI that the issuer's OpenID discovery names; nullopt: not to be had.
  virtual std::optional<std::string> KeySet(const std::string& issuer, const std::string& uri) = 0;
};

struct Environment {
  ServiceDiscovery* discovery = nullptr;
  const config::ConfigStore* configs = nullptr;
  const EndpointIndex* endpoints = nullptr;
  std::shared_ptr<const config::MeshConfig> mesh;
  std::shared_ptr<const config::MeshNetworks> networks;
  std::shared_ptr<const NetworkGateways> gateways;
  const Profile* profile = nullptr;
  JwksResolver* jwks = nullptr;  // null: no key set is to be had
  std::string domain_suffix = "cluster.local";
  std::string system_namespace = "istio-system";
  ClusterId cluster_id;                // of istiod itself
  bool gateways_by_namespace = false;  // PILOT_SCOPE_GATEWAY_TO_NAMESPACE
  double trace_sampling = 1;           // PILOT_TRACE_SAMPLING, per cent
  bool istio_tags = true;              // PILOT_ENABLE_ISTIO_TAGS
};

}  // namespace wavetank::pilot
