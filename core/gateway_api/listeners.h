// A listener of a Gateway or ListenerSet, as a server of an Istio Gateway, with its status
// (istiod: pilot/pkg/config/kube/gateway/conversion.go, buildListener, buildTLS, buildHostnameMatch).
#pragma once

#include <string>
#include <vector>

#include "core/gateway_api/grants.h"
#include "core/gateway_api/objects.h"

namespace wavetank::gatewayapi {

// What routes may name as their parent: a listener, or the mesh.
struct ParentInfo {
  std::string internal_name;               // "namespace/name" of the Istio Gateway, or "mesh"
  std::vector<std::string> allowed_kinds;  // of routes
  std::vector<std::string> hostnames;      // "ns/host", as the server has them
  std::string original_hostname, section, protocol;
  int port = 0;
};

struct BuiltListener {
  nlohmann::json server, status;
  bool programmed = true;
  bool tls_good = true;
};

// `owner`: the Gateway or ListenerSet; `gateway`: the Gateway; `before`: the listener's status until now.
BuiltListener BuildListener(const Inputs& in, const Grants& grants, const kube::Object& owner,
                            const kube::Object& gateway, const nlohmann::json& listener, const nlohmann::json& before);

// Kinds of routes that the listener takes; `valid`: it asks for no other ones.
std::vector<std::string> SupportedKinds(const Inputs& in, const nlohmann::json& listener, bool* valid);

// The port that the listener has, or that its protocol implies in a ListenerSet; 0: none.
int PortOf(const nlohmann::json& listener);

// A listener of a cross-network gateway: what it passes through is Istio's own TLS, told apart by SNI
// (istiod: pilot/pkg/serviceregistry/kube/conversion.go, IsAutoPassthrough).
bool IsAutoPassthrough(const kube::Labels& gateway_labels, const nlohmann::json& listener);

}  // namespace wavetank::gatewayapi
