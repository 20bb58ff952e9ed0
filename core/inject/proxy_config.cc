#include "core/inject/proxy_config.h"

#include <algorithm>

#include "core/base/text/proto_json_name.h"
#include "core/inject/json_access.h"
#include "core/kube/label_selector.h"
#include "core/kube/yaml.h"
#include "fmt/format.h"

namespace wavetank::pilot {
using nlohmann::json;

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
    const std::string name = ProtoJsonName(key);
    if ((name == "proxyMetadata" || name == "runtimeValues") && value.is_object() && config[name].is_object()) {
      config[name].update(value);
    } else if (!value.is_null()) {
      config[name] = value;
      // Two names of one thing (clusterName): the later takes the other away.
      if (name == "tracingServiceName") config.erase("serviceCluster");
      if (name == "serviceCluster") config.erase("tracingServiceName");
    }
  }
}

absl::Status OverlayProxyConfigYaml(json& config, std::string_view yaml, std::string_view what) {
  const absl::StatusOr<json> overlay = kube::ParseYaml(yaml, std::string(what));
  if (!overlay.ok()) return overlay.status();
  if (!overlay->is_object() && !overlay->is_null()) {
    return absl::InvalidArgumentError(fmt::format("{}: a ProxyConfig must be a mapping of names to values", what));
  }
  OverlayProxyConfig(config, *overlay);
  return absl::OkStatus();
}

json EffectiveProxyConfig(const json& mesh_default, const std::vector<kube::ObjectRef>& resources,
                          std::string_view root_namespace, std::string_view ns, const kube::Labels& labels,
                          const std::string* annotation) {
  const auto spec_of = [](const kube::Object& resource) {
    const json& spec = At(resource.body, "spec");
    json out = json::object();
    if (const json& concurrency = At(spec, "concurrency"); !concurrency.is_null()) out["concurrency"] = concurrency;
    if (const json& env = At(spec, "environmentVariables"); env.is_object()) out["proxyMetadata"] = env;
    if (const json& image = At(spec, "image"); !image.is_null()) out["image"] = image;
    return out;
  };
  std::vector<kube::ObjectRef> oldest_first = resources;
  std::sort(oldest_first.begin(), oldest_first.end(), [](const kube::ObjectRef& a, const kube::ObjectRef& b) {
    const auto key = [](const kube::ObjectRef& o) {
      return std::tie(o->meta.creation_unix_seconds, o->meta.name, o->meta.ns);
    };
    return key(a) < key(b);
  });
  const auto of_namespace = [&](std::string_view wanted) {
    for (const kube::ObjectRef& r : oldest_first) {
      if (r->meta.ns == wanted && At(At(r->body, "spec"), "selector").is_null()) return spec_of(*r);
    }
    return json::object();
  };
  const auto of_workload = [&] {
    for (const kube::ObjectRef& r : oldest_first) {
      const json& match = At(At(At(r->body, "spec"), "selector"), "matchLabels");
      if (r->meta.ns != ns || !match.is_object() || match.empty()) continue;
      const auto selector = kube::LabelSelector::FromJson({{"matchLabels", match}});
      if (selector.ok() && selector->Matches(labels)) return spec_of(*r);
    }
    return json::object();
  };
  json out = DefaultProxyConfig();
  OverlayProxyConfig(out, mesh_default);
  OverlayProxyConfig(out, of_namespace(root_namespace));
  if (ns != root_namespace) OverlayProxyConfig(out, of_namespace(ns));
  if (annotation != nullptr) {
    json copy = out;  // an annotation that cannot be read changes nothing here; validation refuses the pod later
    if (OverlayProxyConfigYaml(copy, *annotation, kProxyConfigAnnotation).ok()) out = std::move(copy);
  }
  OverlayProxyConfig(out, of_workload());
  return out;
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
