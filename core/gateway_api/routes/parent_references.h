// Which parents a route names, and whether they take it
// (istiod: pilot/pkg/config/kube/gateway/conversion.go, extractParentReferenceInfo, referenceAllowed).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/gateway_api/gateways.h"

namespace wavetank::gatewayapi {

struct ParentReference {
  nlohmann::json original;  // as the route has it
  ParentKey key;
  std::string internal_name;  // "mesh" for Services and ServiceEntries
  std::string hostname, section;
  std::set<std::string> banned;  // hosts of other listeners of the same port and protocol
  std::optional<ConfigError> denied;

  bool IsMesh() const { return internal_name == "mesh"; }
  // The host is for no other listener that names it more exactly (istiod: hostnameAllowedByIsolation).
  bool MayServe(std::string_view host) const;
};

// In the order of ReferenceText(); one for each listener of a parent.
std::vector<ParentReference> ParentReferences(const Inputs& in, const Parents& parents, const kube::Object& route);
// Those that are taken, by internal name.
std::vector<ParentReference> Taken(const std::vector<ParentReference>& references);

// "group/kind/name/section/port.namespace": what tells references apart.
std::string ReferenceText(const nlohmann::json& reference, const std::string& ns);

// status.parents of the route, other controllers' included. `errors`: what is wrong with its rules, for gateways and
// for the mesh. istiod: createRouteStatus.
nlohmann::json RouteParentStatuses(const Inputs& in, const kube::Object& route,
                                   const std::vector<ParentReference>& references,
                                   const std::optional<ConfigError>& gateway_error,
                                   const std::optional<ConfigError>& mesh_error);

}  // namespace wavetank::gatewayapi
