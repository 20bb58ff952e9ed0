// The parts of a pod that injection adds: what 1.18.2's templates `sidecar`, `gateway`, `grpc-agent` and `grpc-simple`
// say (manifests/charts/istio-control/istio-discovery/files/{injection-template,gateway-injection-template,grpc-agent,
// grpc-simple}.yaml).
#pragma once

#include <string>

#include "core/config/mesh/mesh_config.h"
#include "core/kube/types.h"
#include "nlohmann/json.hpp"

namespace wavetank::pilot {

struct InjectionTemplateData {
  const nlohmann::json& pod;  // without what an earlier injection added
  const kube::WorkloadReference& workload;
  const nlohmann::json& proxy_config;
  const config::MeshConfig& mesh;
  const nlohmann::json& values;
  std::string revision;
  bool native_sidecar = false;  // the proxy is an init container that goes on
};

// The image of the proxy, with the type that annotation or ProxyConfig ask for.
std::string ProxyImageOf(const InjectionTemplateData& data);

// To be merged strategically into the pod.
nlohmann::json SidecarTemplate(const InjectionTemplateData& data);
nlohmann::json GatewayTemplate(const InjectionTemplateData& data);
// For applications whose gRPC library reads xDS: an agent without Envoy, and nothing but a bootstrap.
nlohmann::json GrpcAgentTemplate(const InjectionTemplateData& data);
nlohmann::json GrpcSimpleTemplate(const InjectionTemplateData& data);

}  // namespace wavetank::pilot
