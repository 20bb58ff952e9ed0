// What one proxy may see of the mesh, by its Sidecar resource or its namespace's default
// (istiod: pilot/pkg/model/sidecar.go). Immutable; shared by all proxies with the same Sidecar.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/config/destination_rule.h"
#include "core/config/sidecar.h"
#include "core/config/virtual_service.h"
#include "core/model/push_request.h"
#include "core/model/service.h"

namespace wavetank::pilot {

class PushContext;
struct Proxy;

// A DestinationRule that may have been merged from several of one namespace and host
// (istiod: ConsolidatedDestRule).
struct ConsolidatedDestRule {
  ExportTo export_to;
  config::DestinationRuleRef rule;  // merged; its meta is the first one's
  std::vector<ConfigKey> from;      // all that were merged
};
using ConsolidatedDestRuleRef = std::shared_ptr<const ConsolidatedDestRule>;

// One egress listener of a Sidecar, or the default one that catches everything (istiod: IstioEgressListenerWrapper).
struct EgressListener {
  const config::SidecarEgressListener* listener = nullptr;  // null for the default Sidecar scope's catch-all
  std::vector<ServiceRef> services;                         // imported, in istiod's order
  std::vector<config::VirtualServiceRef> virtual_services;
  bool match_port = false;
};

class SidecarScope {
 public:
  std::string name, ns;        // of the Sidecar; name empty for the default scope
  std::string version;         // of the push context it was made from
  config::SidecarRef sidecar;  // null for the default scope
  std::vector<EgressListener> egress_listeners;
  config::OutboundTrafficPolicy outbound_traffic_policy;  // mode, egress proxy
  std::string root_namespace;

  bool HasIngressListener() const;
  const std::vector<ServiceRef>& services() const { return services_; }
  ServiceRef GetService(std::string_view hostname) const;
  // The listener that serves RDS route `port` (bind for unix sockets). istiod: GetEgressListenerForRDS.
  const EgressListener* GetEgressListenerForRds(int port, std::string_view bind) const;
  // The rule that applies to traffic of `proxy` to (or, inbound, at) `hostname`; null if none.
  ConsolidatedDestRuleRef DestinationRule(TrafficDirection direction, const Proxy& proxy,
                                          std::string_view hostname) const;
  // istiod: SidecarScope.DependsOnConfig.
  bool DependsOnConfig(const ConfigKey& key) const;

  // Filled by PushContext when it makes the scope.
  std::vector<ServiceRef> services_;
  absl::flat_hash_map<std::string, ServiceRef> services_by_hostname_;
  absl::flat_hash_map<std::string, std::vector<ConsolidatedDestRuleRef>> destination_rules_;
  std::set<ConfigKey> config_dependencies_;
};
using SidecarScopeRef = std::shared_ptr<const SidecarScope>;

}  // namespace wavetank::pilot
