// Gateways and ListenerSets: each listener becomes an Istio Gateway of its own, with one server
// (istiod: pilot/pkg/config/kube/gateway/gateway_collection.go).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/gateway_api/listeners.h"

namespace wavetank::gatewayapi {

// What a route names: kind "Gateway", "ListenerSet", "Service", "ServiceEntry".
struct ParentKey {
  std::string kind, ns, name;
  friend auto operator<=>(const ParentKey&, const ParentKey&) = default;
};
using Parents = std::map<ParentKey, std::vector<ParentInfo>>;

// How many routes are attached, by parent and section.
using Attachments = std::map<std::pair<ParentKey, std::string>, int>;

struct ConvertedGateways {
  std::vector<kube::ObjectRef> configs;
  Parents parents;
  std::map<StatusKey, nlohmann::json> statuses;  // without attached routes
};
ConvertedGateways ConvertGateways(const Inputs& in, const Grants& grants);

// Writes attachedRoutes of all listeners into the statuses.
void CountRoutes(const Attachments& attachments, std::map<StatusKey, nlohmann::json>& statuses);

// Istiod deploys the gateway: nothing says where it is (istiod: gatewaycommon.IsManaged).
bool IsManaged(const nlohmann::json& gateway_spec);
// "NAME-CLASS": of its Deployment, Service and account unless annotations say otherwise (istiod: GetDefaultName).
std::string DefaultName(const kube::Object& gateway);
std::string ServiceNameOf(const kube::Object& gateway);
std::string ServiceAccountOf(const kube::Object& gateway);

// Whether the Gateway takes ListenerSets of that namespace (istiod: NamespaceAcceptedByAllowListeners).
bool TakesListenersOf(const Inputs& in, const kube::Object& gateway, const std::string& ns);

}  // namespace wavetank::gatewayapi
