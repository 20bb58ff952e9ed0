#include "core/inject/proxy_config.h"

#include "core/base/yaml_json.h"
#include "fmt/format.h"

namespace wavetank::pilot {
namespace {

using nlohmann::json;

std::string CamelCase(const std::string& name) {
  std::string out;
  bool upper = false;
  for (char c : name) {
    if (c == '_') {
      upper = true;
      continue;
    }
    out.push_back(upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c);
    upper = false;
  }
  return out;
}

}  // namespace

const json& DefaultProxyConfig() {
  static const json config = {{"configPath", "./etc/istio/proxy"},
                              {"binaryPath", "/usr/local/bin/envoy"},
                              {"serviceCluster", "istio-proxy"},
                              {"drainDuration", "45s"},
                              {"terminationDrainDuration", "5s"},
                              {"proxyAdminPort", 15000},
                              {"controlPlaneAuthPolicy", "MUTUAL_TLS"},
                              {"discoveryAddress", "istiod.istio-system.svc:15012"},
                              {"tracing", {{"zipkin", {{"address", "zipkin.istio-system:9411"}}}}},
                              {"statNameLength", 189},
                              {"statusPort", 15020}};
  return config;
}

void OverlayProxyConfig(json& config, const json& overlay) {
  if (!overlay.is_object()) return;
  for (const auto& [key, value] : overlay.items()) {
    const std::string name = CamelCase(key);
    if ((name == "proxyMetadata" || name == "runtimeValues") && value.is_object() && config[name].is_object()) {
      config[name].update(value);
    } else if (!value.is_null()) {
      config[name] = value;
    }
  }
}

absl::Status OverlayProxyConfigYaml(json& config, std::string_view yaml, std::string_view what) {
  const absl::StatusOr<json> overlay = YamlToJson(yaml, what);
  if (!overlay.ok()) return overlay.status();
  if (!overlay->is_object() && !overlay->is_null()) {
    return absl::InvalidArgumentError(fmt::format("{}: a ProxyConfig must be a mapping of names to values", what));
  }
  OverlayProxyConfig(config, *overlay);
  return absl::OkStatus();
}

json WithoutDefaults(const json& config) {
  json out = json::object();
  const json& defaults = DefaultProxyConfig();
  for (const auto& [key, value] : config.items()) {
    const auto it = defaults.find(key);
    if (it == defaults.end() || *it != value) out[key] = value;
  }
  return out;
}

std::string DiscoveryHost(std::string_view discovery_address) {
  const std::string host(discovery_address.substr(0, discovery_address.find(':')));
  return host == "localhost" ? "istiod.istio-system.svc" : host;
}

}  // namespace wavetank::pilot
