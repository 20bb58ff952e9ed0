// The services of a push context, by the namespaces that may see them (istiod: pilot/pkg/model/push_context.go,
// initServiceRegistry).
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "core/model/environment.h"
#include "core/push/export_to_defaults.h"
#include "core/push/sidecar_scope.h"

namespace wavetank::pilot {

class ServiceIndex {
 public:
  // O(services x ports), and the instances of services that are not load-balanced by the client.
  ServiceIndex(const Environment& env, const ExportToDefaults& defaults, const std::vector<std::string>& trust_aliases);

  // Private ones of the namespace, those exported to it, public ones; each by creation time, then name and namespace.
  std::vector<ServiceRef> ExportedTo(std::string_view ns) const;
  // The same as a default scope's view: made once per namespace that sees more than public services.
  std::shared_ptr<const ServiceView> DefaultView(std::string_view ns) const;
  // Private ones by namespace, then public ones.
  const std::vector<ServiceRef>& All() const { return all_; }
  // By namespace; null if no service has the host.
  const std::map<std::string, ServiceRef, std::less<>>* ByNamespace(std::string_view hostname) const;

  // What is known of a concrete service concerns those that stand for it: keys of the services that changed aliases
  // lead to (istiod: resolveServiceAliases).
  void AddConcrete(std::set<ConfigKey>& configs_updated) const;

  const std::vector<ServiceInstance>& Instances(const Service& service, int port) const;
  const std::vector<std::string>& ServiceAccounts(std::string_view hostname, std::string_view ns, int port) const;

 private:
  struct Accounts {
    std::vector<std::string> accounts;  // sorted
    std::vector<int> ports;             // all but UDP ones
  };
  ServiceRef Find(std::string_view hostname, std::string_view ns) const;  // null if there is none
  // Of the services of one host and namespace the latest that `has_port`; null if none has. istiod keeps instances and
  // accounts by host, namespace and port, so a ServiceEntry hides a Kubernetes Service at their common ports only.
  ServiceRef LatestWith(std::string_view hostname, std::string_view ns,
                        absl::FunctionRef<bool(const Service&)> has_port) const;

  using InstancesByPort = std::map<int, std::vector<ServiceInstance>>;
  static std::shared_ptr<const ServiceView> MakeView(std::vector<ServiceRef> services);

  // Tells services the names under which they are known besides.
  void ResolveAliases(std::vector<ServiceRef>& services);

  std::vector<ServiceInstance> InstancesOf(const ServiceRef& service, int port) const;

  const ServiceDiscovery* discovery_;
  const EndpointIndex* index_;                                // null: instances are the registries'
  const bool oldest_stays_;                                   // in by_hostname_; else the latest does
  std::vector<std::pair<ConfigKey, ConfigKey>> concrete_of_;  // by alias
  std::vector<ServiceRef> public_, all_;
  std::map<std::string, std::vector<ServiceRef>, std::less<>> private_by_namespace_, exported_to_namespace_;
  absl::flat_hash_map<std::string, std::map<std::string, ServiceRef, std::less<>>> by_hostname_;
  // By the service that by_hostname_ has: all of its host and namespace, the latest first.
  absl::flat_hash_map<const Service*, std::vector<ServiceRef>> several_;
  // Order: these are only searched.
  absl::flat_hash_map<const Service*, Accounts> accounts_;
  mutable absl::flat_hash_map<const Service*, InstancesByPort> instances_;
  mutable std::shared_ptr<const ServiceView> public_view_;
  mutable std::map<std::string, std::shared_ptr<const ServiceView>, std::less<>> views_;
};

}  // namespace wavetank::pilot
