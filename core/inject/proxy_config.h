// ProxyConfig (istio.io/api mesh/v1alpha1) as JSON: the mesh's defaults, overlaid by what a pod's annotation says
// (istiod: pkg/config/mesh/mesh.go, pilot/cmd/pilot-agent/config/config.go).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/kube/object.h"
#include "nlohmann/json.hpp"

namespace wavetank::pilot {

inline constexpr std::string_view kProxyConfigAnnotation = "proxy.istio.io/config";

// What every proxy has unless it is told otherwise.
const nlohmann::json& DefaultProxyConfig();

// Fields of `overlay` replace those of `config`; proxyMetadata and runtimeValues merge by key. Names may be written in
// camelCase or snake_case.
void OverlayProxyConfig(nlohmann::json& config, const nlohmann::json& overlay);
// The same from YAML. InvalidArgument names `what`, line and column.
absl::Status OverlayProxyConfigYaml(nlohmann::json& config, std::string_view yaml, std::string_view what);

// What holds for one workload: the defaults, the mesh's defaultConfig, ProxyConfig resources of the root namespace and
// of its own without a selector, the pod's annotation (may be null), the resource whose selector matches; of several
// resources the oldest. istiod: pilot/pkg/model/proxy_config.go, EffectiveProxyConfig.
nlohmann::json EffectiveProxyConfig(const nlohmann::json& mesh_default, const std::vector<kube::ObjectRef>& resources,
                                    std::string_view root_namespace, std::string_view ns, const kube::Labels& labels,
                                    const std::string* annotation);

// The fields that differ from the defaults: what the injector writes into PROXY_CONFIG.
nlohmann::json WithoutDefaults(const nlohmann::json& config);

// "istiod.istio-system.svc" of "istiod.istio-system.svc:15012": the name that istiod's certificate must carry.
std::string DiscoveryHost(std::string_view discovery_address);

}  // namespace wavetank::pilot
