// ProxyConfig (istio.io/api mesh/v1alpha1) as JSON: the mesh's defaults, overlaid by what a pod's annotation says
// (istiod: pkg/config/mesh/mesh.go, pilot/cmd/pilot-agent/config/config.go).
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
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

// The fields that differ from the defaults: what the injector writes into PROXY_CONFIG.
nlohmann::json WithoutDefaults(const nlohmann::json& config);

// "istiod.istio-system.svc" of "istiod.istio-system.svc:15012": the name that istiod's certificate must carry.
std::string DiscoveryHost(std::string_view discovery_address);

}  // namespace wavetank::pilot
