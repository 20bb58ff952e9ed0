// The indexed, immutable state of the mesh that one full push is generated from
// (istiod: pilot/pkg/model/push_context.go).
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/kinds/gateway.h"
#include "core/config/kinds/peer_authentication.h"
#include "core/config/mesh/mesh_config.h"
#include "core/model/environment.h"
#include "core/model/proxy.h"
#include "core/push/policies/authentication.h"
#include "core/push/policies/authorization.h"
#include "core/push/policies/envoy_filters.h"
#include "core/push/policies/telemetry.h"
#include "core/push/policies/wasm_plugins.h"
#include "core/push/sidecar_scope.h"

namespace wavetank::pilot {

class MergedGateway;  // core/model/gateway.h

class PushContext {
 public:
  // Complexity O(services + configs); with `old` and a request that touched neither services nor a kind of config, the
  // old index of that kind is shared (istiod: updateContext).
  static std::shared_ptr<const PushContext> Create(const Environment& env, const PushContext* old,
                                                   const PushRequest& request, std::string version);
  ~PushContext();

  // Adds the keys of services that changed aliases stand for; O(aliases).
  void AddConcrete(std::set<ConfigKey>& configs_updated) const;

  const std::string& version() const;
  const config::MeshConfig& mesh() const;
  const Environment& env() const;
  const NetworkGateways& networks() const;
  const Profile& profile() const;

  // With Features::filters_gateway_clusters: of the services that a gateway sees those that its VirtualServices, or the
  // mesh's providers, lead to. O(services).
  std::vector<ServiceRef> GatewayServices(const Proxy& proxy) const;
  // Whether an update of the service is one for that gateway, then.
  bool ServiceAttachedToGateway(std::string_view hostname, std::string_view ns, const Proxy& proxy) const;
  std::vector<ServiceRef> ServicesExportedTo(std::string_view ns) const;
  const std::vector<ServiceRef>& GetAllServices() const;
  ServiceRef ServiceForHostname(const Proxy& proxy, std::string_view hostname) const;
  // The namespace's service of that name, visible or not; null if it has none.
  ServiceRef ServiceInNamespace(std::string_view hostname, std::string_view ns) const;
  // The service of that name if only one namespace has one, visible or not; else null.
  ServiceRef OnlyServiceNamed(std::string_view hostname) const;
  bool IsServiceVisible(const Service& service, std::string_view ns) const;
  bool IsClusterLocal(const Service& service) const;

  std::vector<ServiceInstance> ServiceInstancesByPort(const Service& service, int port, const Labels& labels) const;

  // SPIFFE identities that may serve the port, aliases of trust domains applied, sorted.
  const std::vector<std::string>& ServiceAccounts(std::string_view hostname, std::string_view ns, int port) const;

  std::vector<config::VirtualServiceRef> VirtualServicesForGateway(std::string_view proxy_namespace,
                                                                   std::string_view gateway) const;
  // Delegates that a root VirtualService names, also missing ones.
  const std::vector<ConfigKey>& DelegatesOf(const config::ConfigMeta& root) const;
  // Consolidated rules for a host seen from a client and a service namespace, most specific first
  // (istiod: destinationRule()).
  std::vector<ConsolidatedDestRuleRef> DestinationRules(std::string_view proxy_namespace, const Service& service) const;

  // The Sidecar scope of a proxy; router proxies get a gateway scope of their namespace.
  SidecarScopeRef GetSidecarScope(const Proxy& proxy, const Labels& workload_labels) const;
  // Gateways selecting the router, merged; null if none. istiod: mergeGateways.
  std::shared_ptr<const MergedGateway> MergeGateways(const Proxy& proxy) const;

  const AuthenticationPolicies& authn() const;
  const AuthorizationPolicies& authz() const;
  const EnvoyFilters& envoy_filters() const;
  const Telemetries& telemetry() const;
  const WasmPlugins& wasm_plugins() const;
  // istiod: BestEffortInferServiceMTLSMode.
  MutualTlsMode InferServiceMtlsMode(const config::TrafficPolicy* policy, const Service& service,
                                     const Port& port) const;

 private:
  PushContext();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};
using PushContextRef = std::shared_ptr<const PushContext>;

// istiod: Proxy.SetSidecarScope, SetGatewaysForProxy, SetServiceInstances, SetWorkloadLabels.
void SetSidecarScope(Proxy& proxy, const PushContext& push);
void SetGatewaysForProxy(Proxy& proxy, const PushContext& push);
void SetServiceInstances(Proxy& proxy, const ServiceDiscovery& discovery);
void SetWorkloadLabels(Proxy& proxy, const ServiceDiscovery& discovery);

}  // namespace wavetank::pilot
