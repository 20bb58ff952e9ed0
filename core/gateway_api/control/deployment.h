// What istiod deploys for a Gateway: account, Deployment and Service, as chart file kube-gateway.yaml says
// (istiod: pilot/pkg/config/kube/gatewaycommon/deploymentcontroller.go).
#pragma once

#include <string>
#include <vector>

#include "core/config/mesh/mesh_config.h"
#include "core/gateway_api/objects.h"
#include "core/inject/injection_config.h"

namespace wavetank::gatewayapi {

struct DeploymentData {
  const Inputs& in;
  const pilot::InjectionConfig& injection;  // images, values
  const config::MeshConfig& mesh;
  const std::vector<kube::ObjectRef>& proxy_configs;
  std::string revision, cluster_id, root_namespace;
};

// To be applied over what is there; in this order.
std::vector<nlohmann::json> RenderGateway(const kube::Object& gateway, const DeploymentData& data);

// All of `wanted` stands in `object`: lists whole, of objects their members.
bool Covers(const nlohmann::json& object, const nlohmann::json& wanted);
// `object` with what is wanted, as a server-side apply of one manager would leave it: what others added stays.
nlohmann::json Overlaid(nlohmann::json object, const nlohmann::json& wanted);

}  // namespace wavetank::gatewayapi
