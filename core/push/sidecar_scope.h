// What one proxy may see of the mesh, by its Sidecar resource or its namespace's default
// (istiod: pilot/pkg/model/sidecar.go). Immutable; shared by all proxies with the same Sidecar.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/config/kinds/destination_rule.h"
#include "core/config/kinds/sidecar.h"
#include "core/config/kinds/virtual_service.h"
#include "core/model/push_request.h"
#include "core/model/service.h"

namespace wavetank::pilot {

class PushContext;
struct Proxy;

// A DestinationRule that may have been merged from several of one namespace and host
// (istiod: ConsolidatedDestRule).
struct ConsolidatedDestRule {
  ExportTo export_to;               // of the first one
  config::DestinationRuleRef rule;  // merged, its host fully qualified; its meta is the first one's
  std::vector<ConfigKey> from;      // all that were merged
};
using ConsolidatedDestRuleRef = std::shared_ptr<const ConsolidatedDestRule>;

// A list that many hold and none changes.
template <typename T>
class SharedList {
 public:
  SharedList() = default;
  SharedList(std::shared_ptr<const std::vector<T>> items) : items_(std::move(items)) {}
  SharedList(std::vector<T> items) : items_(std::make_shared<const std::vector<T>>(std::move(items))) {}
  const std::vector<T>& list() const {
    static const std::vector<T>* const empty = new std::vector<T>();
    return items_ == nullptr ? *empty : *items_;
  }
  operator const std::vector<T>&() const { return list(); }
  auto begin() const { return list().begin(); }
  auto end() const { return list().end(); }
  size_t size() const { return list().size(); }
  bool empty() const { return list().empty(); }
  const T& operator[](size_t i) const { return list()[i]; }

 private:
  std::shared_ptr<const std::vector<T>> items_;
};

// One egress listener of a Sidecar, or the default one that catches everything (istiod: IstioEgressListenerWrapper).
struct EgressListener {
  const config::SidecarEgressListener* listener = nullptr;  // null for a catch-all that no Sidecar spells out
  SharedList<ServiceRef> services;                          // imported, in istiod's order
  SharedList<config::VirtualServiceRef> virtual_services;
  // Only services with the listener's own port are imported (istiod: needsPortMatch).
  bool match_port = false;
};

// The services of a scope. Namespaces that see nothing but public services share one.
struct ServiceView {
  std::vector<ServiceRef> services;
  std::vector<ServiceRef> accepted;  // those that were, at their turn, the service of their host name
  absl::flat_hash_map<std::string, ServiceRef> by_hostname;
  absl::flat_hash_set<uint64_t> dependencies;  // ConfigHash of ServiceEntry keys
  absl::flat_hash_set<std::string> namespaces;

  // A service of it, on which its proxies depend from now on.
  void Count(const Service& service);
};

class SidecarScope {
 public:
  std::string name, ns;        // of the Sidecar, and of the proxies; name is "default-sidecar" for the default scope
  std::string version;         // of the push context it was made from
  config::SidecarRef sidecar;  // null for the default scope
  std::vector<EgressListener> egress_listeners;
  config::OutboundTrafficPolicy outbound_traffic_policy;  // mode, egress proxy
  std::string root_namespace;

  bool HasIngressListener() const;
  // Some rule holds for workloads with certain labels only.
  bool SelectsWorkloads() const { return selects_workloads_; }
  const std::vector<ServiceRef>& services() const;
  ServiceRef GetService(std::string_view hostname) const;
  // The listener that serves RDS route `port` (bind for unix sockets). istiod: GetEgressListenerForRDS.
  const EgressListener* GetEgressListenerForRds(int port, std::string_view bind) const;
  // The rule that applies to traffic of `proxy` to (or, inbound, at) `hostname`; null if none.
  ConsolidatedDestRuleRef DestinationRule(TrafficDirection direction, const Proxy& proxy,
                                          std::string_view hostname) const;
  // The host of the rule of that name, if it holds for a service of the scope. istiod: DestinationRuleByName.
  std::optional<std::string> HostOfRule(const ConfigKey& rule) const;
  // Of the host, or of all that a wildcard matches. istiod: ServicesForHostname.
  std::vector<ServiceRef> ServicesFor(std::string_view host) const;
  // istiod: SidecarScope.DependsOnConfig.
  bool DependsOnConfig(const ConfigKey& key) const;

 private:
  friend class SidecarScopeBuilder;
  std::shared_ptr<const ServiceView> view_;
  absl::flat_hash_map<std::string, std::vector<ConsolidatedDestRuleRef>> destination_rules_;
  absl::flat_hash_set<uint64_t> dependencies_;  // beyond the view's
  bool selects_workloads_ = false;
  bool knows_peer_authentications_ = false;
};
using SidecarScopeRef = std::shared_ptr<const SidecarScope>;

// 64 bits that name a configuration, the same on every machine (istiod: ConfigKey.HashCode).
uint64_t ConfigHash(ConfigKind kind, std::string_view name, std::string_view ns);
inline uint64_t ConfigHash(const ConfigKey& config) {
  return config.hash.Get([&] { return ConfigHash(config.kind, config.name, config.ns); });
}
inline uint64_t ConfigHash(const Service& service) {
  return service.hash.Get(
      [&] { return ConfigHash(ConfigKind::kServiceEntry, service.hostname, service.attributes.ns); });
}

inline void ServiceView::Count(const Service& service) {
  dependencies.insert(ConfigHash(service));
  namespaces.insert(service.attributes.ns);
}

}  // namespace wavetank::pilot
