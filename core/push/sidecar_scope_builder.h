// Makes the scopes of proxies (istiod: pilot/pkg/model/sidecar.go, DefaultSidecarScopeForNamespace,
// ConvertToSidecarScope).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/mesh/mesh_config.h"
#include "core/profile/profile.h"
#include "core/push/destination_rule_index.h"
#include "core/push/export_to_defaults.h"
#include "core/push/service_index.h"
#include "core/push/sidecar_scope.h"
#include "core/push/virtual_service_index.h"

namespace wavetank::pilot {

// What all default scopes that share a view have in common: the services of it that have rules at all, few among many.
struct RuledServices {
  std::shared_ptr<const ServiceView> view;
  std::vector<ServiceRef> services;
};

// References must outlive the builder; scopes hold what they need themselves.
class SidecarScopeBuilder {
 public:
  SidecarScopeBuilder(const ServiceIndex& services, const VirtualServiceIndex& virtual_services,
                      const DestinationRuleIndex& destination_rules, const ExportToDefaults& defaults,
                      const config::MeshConfig& mesh, RuledServices& ruled, std::string version, const Profile& profile)
      : services_(services),
        virtual_services_(virtual_services),
        destination_rules_(destination_rules),
        defaults_(defaults),
        mesh_(mesh),
        ruled_(ruled),
        version_(std::move(version)),
        profile_(profile) {}

  // Everything that the namespace may see. `router`: of gateways, to which no namespace is nearer than others.
  SidecarScopeRef Default(const std::string& ns, bool router) const;
  // What the Sidecar imports for proxies of `ns`, which is not the Sidecar's own namespace when it is the mesh's. Null:
  // what one without hosts would.
  SidecarScopeRef Convert(const config::SidecarRef& sidecar, const std::string& ns) const;

 private:
  class Import;
  EgressListener Listener(const config::SidecarEgressListener* listener, const std::vector<std::string>& hosts,
                          const std::string& ns) const;
  // Where the listener's VirtualServices lead, with the ports that they name.
  std::vector<ServiceRef> Destinations(const EgressListener& listener, const std::string& ns) const;
  // Of services with one host the one that is taken for proxies of another namespace; null if they may see none.
  ServiceRef VisibleOf(const std::map<std::string, ServiceRef, std::less<>>& by_namespace, const std::string& ns) const;
  std::shared_ptr<const ServiceView> Merged(const std::vector<ServiceRef>& services) const;
  // Those that the scope does not see yet; what it shares with others is copied then.
  void ImportDestinations(SidecarScope& scope, const EgressListener& listener) const;
  std::shared_ptr<SidecarScope> New(const std::string& ns) const;
  // Rules of the services, later ones of a host name over earlier ones, and their keys as dependencies.
  void AddDestinationRules(SidecarScope& scope, const std::vector<ServiceRef>& services) const;
  void AddVirtualServiceDependencies(SidecarScope& scope, const EgressListener& listener) const;

  const ServiceIndex& services_;
  const VirtualServiceIndex& virtual_services_;
  const DestinationRuleIndex& destination_rules_;
  const ExportToDefaults& defaults_;
  const config::MeshConfig& mesh_;
  RuledServices& ruled_;  // of the last view
  const std::string version_;
  const Profile& profile_;
};

// istiod: PushContext.IsServiceVisible.
bool IsServiceVisible(const Service& service, std::string_view ns, const ExportToDefaults& defaults);

}  // namespace wavetank::pilot
