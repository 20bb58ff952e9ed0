#include "core/debug/config.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/base/json_access.h"
#include "core/config/mesh/mesh_config.h"
#include "core/config/mesh/mesh_text.h"
#include "core/debug/registry.h"
#include "core/istiod/istiod.h"
#include "core/kube/object.h"
#include "core/kube/types.h"
#include "core/kube/yaml.h"
#include "core/profile/changes.h"
#include "core/registry/crd_client.h"
#include "core/xds/discovery_server.h"

namespace wavetank::debug {
namespace {

using Json = nlohmann::ordered_json;

// istiod: pkg/config/schema/collections/collections.gen.go, pilotGatewayAPI.
struct Kind {
  const char *group, *version, *kind;
};
constexpr Kind kKinds[] = {{"security.istio.io", "v1beta1", "AuthorizationPolicy"},
                           {"networking.istio.io", "v1alpha3", "DestinationRule"},
                           {"networking.istio.io", "v1alpha3", "EnvoyFilter"},
                           {"networking.istio.io", "v1alpha3", "Gateway"},
                           {"security.istio.io", "v1beta1", "PeerAuthentication"},
                           {"networking.istio.io", "v1beta1", "ProxyConfig"},
                           {"security.istio.io", "v1beta1", "RequestAuthentication"},
                           {"networking.istio.io", "v1alpha3", "ServiceEntry"},
                           {"networking.istio.io", "v1alpha3", "Sidecar"},
                           {"telemetry.istio.io", "v1alpha1", "Telemetry"},
                           {"networking.istio.io", "v1alpha3", "VirtualService"},
                           {"extensions.istio.io", "v1alpha1", "WasmPlugin"},
                           {"networking.istio.io", "v1alpha3", "WorkloadEntry"},
                           {"networking.istio.io", "v1alpha3", "WorkloadGroup"}};

Json Ordered(const nlohmann::json& value) { return value; }

// istiod: pilot/pkg/config/kube/crd, ConvertConfig.
Json ObjectJson(const Kind& kind, const kube::Object& object) {
  Json metadata{{"name", object.meta.name}, {"namespace", object.meta.ns.empty() ? "default" : object.meta.ns}};
  const nlohmann::json& given = At(object.body, "metadata");
  for (const char* name : {"resourceVersion", "creationTimestamp", "labels", "annotations"}) {
    if (const nlohmann::json& value = At(given, name); !value.is_null()) metadata[name] = Ordered(value);
  }
  if (!metadata.contains("creationTimestamp")) metadata["creationTimestamp"] = nullptr;
  const nlohmann::json& spec = At(object.body, "spec");
  Json out{{"kind", kind.kind},
           {"apiVersion", std::string(kind.group) + "/" + kind.version},
           {"metadata", std::move(metadata)},
           {"spec", spec.is_null() ? Json::object() : Ordered(spec)}};
  if (const nlohmann::json& status = At(object.body, "status"); !status.is_null() && !status.empty()) {
    out["status"] = Ordered(status);
  }
  return out;
}

// Objects of a kind by namespace, each by creation, then name, as istiod lists them.
Json ByNamespace(const pilot::Istiod& istiod, std::string_view kind, bool annotations) {
  std::map<std::string, std::vector<kube::ObjectRef>> found;
  for (const kube::ObjectRef& object : istiod.config_objects().Objects()) {
    if (object->kind == kind) found[object->meta.ns].push_back(object);
  }
  if (found.empty()) return Json::object();
  Json out = Json::object();
  for (auto& [ns, objects] : found) {
    std::stable_sort(objects.begin(), objects.end(), [](const kube::ObjectRef& a, const kube::ObjectRef& b) {
      return Text(At(a->body, "metadata"), "creationTimestamp") < Text(At(b->body, "metadata"), "creationTimestamp");
    });
    Json& list = out[ns] = Json::array();
    for (const kube::ObjectRef& object : objects) {
      Json entry{{"name", object->meta.name}, {"namespace", ns}};
      if (annotations) {
        const nlohmann::json& given = At(object->body, {"metadata", "annotations"});
        entry["annotations"] = given.empty() ? Json() : Ordered(given);
      }
      const nlohmann::json& spec = At(object->body, "spec");
      entry["spec"] = spec.is_null() ? Json::object() : Ordered(spec);
      list.push_back(std::move(entry));
    }
  }
  return out;
}

Json PoliciesJson(const pilot::Istiod& istiod) {
  return {{"namespace_to_policies", ByNamespace(istiod, "AuthorizationPolicy", true)},
          {"root_namespace", istiod.mesh_config().root_namespace}};
}

}  // namespace

Json Configz(const pilot::Istiod& istiod) {
  const std::vector<kube::ObjectRef> objects = istiod.config_objects().Objects();
  Json out = Json::array();
  for (const Kind& kind : kKinds) {
    for (const kube::ObjectRef& object : objects) {
      if (object->kind == kind.kind) out.push_back(ObjectJson(kind, *object));
    }
  }
  return out;
}

Json Resourcesz() {
  Json out = Json::array();
  for (const Kind& kind : kKinds) {
    out.push_back({{"Group", kind.group}, {"Version", kind.version}, {"Kind", kind.kind}});
  }
  return out;
}

Json Mesh(const pilot::Istiod& istiod) { return config::MeshConfigJson(istiod.mesh_config()); }

Json Authorizationz(const pilot::Istiod& istiod) { return {{"authorization_policies", PoliciesJson(istiod)}}; }

Json Telemetryz(const pilot::Istiod& istiod) {
  return {{"telemetries",
           {{"namespace_to_telemetries", ByNamespace(istiod, "Telemetry", false)},
            {"root_namespace", istiod.mesh_config().root_namespace}}}};
}

// istiod: pilot/pkg/model/telemetry.go, applicableTelemetries(), as Go prints computedTelemetries.
Json TelemetryzOf(const pilot::Istiod& istiod, const pilot::Connection& connection) {
  const pilot::Proxy& proxy = connection.proxy();
  const std::string& root = istiod.mesh_config().root_namespace;
  const auto name = [](const Json* of) {
    return Json{{"Namespace", of == nullptr ? Json("") : of->at("namespace")},
                {"Name", of == nullptr ? Json("") : of->at("name")}};
  };
  // The place of a namespace's Telemetry among the names.
  const bool by_proxy = istiod.options().profile.Has(pilot::Change::kTelemetryByProxyNamespace);
  const std::string_view own = by_proxy ? "Proxy" : "Namespace";
  const auto names = [&] {
    Json out{{"Root", name(nullptr)}};
    if (by_proxy) out["Proxy"] = name(nullptr);
    out["Namespace"] = out["Workload"] = name(nullptr);
    return out;
  };
  Json out = names(), metrics = Json::array(), logging = Json::array(), tracing = Json::array();
  const auto add = [&](std::string_view level, const Json& telemetry) {
    out[std::string(level)] = name(&telemetry);
    const Json& spec = telemetry.at("spec");
    for (const Json& one : spec.value("metrics", Json::array())) metrics.push_back(one);
    for (const Json& one : spec.value("tracing", Json::array())) tracing.push_back(one);
    if (const Json logs = spec.value("accessLogging", Json::array()); !logs.empty()) {
      Json entry = names();
      if (level != "Proxy") entry[std::string(level)] = name(&telemetry);  // it names the Service's namespace there
      entry["Logging"] = logs;
      logging.push_back(std::move(entry));
    }
  };
  const auto labels_of = [](const Json& telemetry) {
    const Json selector = telemetry.at("spec").value("selector", Json::object());
    return selector.value("matchLabels", Json::object());
  };
  const Json all = ByNamespace(istiod, "Telemetry", false);
  const auto add_wide = [&](const std::string& ns, std::string_view level) {
    for (const Json& one : all.value(ns, Json::array())) {
      if (labels_of(one).empty()) return add(level, one);
    }
  };
  if (!root.empty()) add_wide(root, "Root");
  if (proxy.metadata.ns != root) add_wide(proxy.metadata.ns, own);
  for (const Json& one : all.value(proxy.metadata.ns, Json::array())) {
    const Json labels = labels_of(one);
    bool selects = !labels.empty();
    for (const auto& [key, value] : labels.items()) {
      const auto has = proxy.labels.find(key);
      selects &= has != proxy.labels.end() && has->second == value.get<std::string>();
    }
    if (!selects) continue;
    add("Workload", one);
    if (!istiod.options().profile.Has(pilot::Change::kTelemetriesAddUp)) break;
  }
  out["Metrics"] = std::move(metrics);
  out["Logging"] = std::move(logging);
  out["Tracing"] = std::move(tracing);
  return out;
}

Json PushContextz(const pilot::Istiod& istiod) {
  return {{"AuthorizationPolicies", PoliciesJson(istiod)}, {"NetworkGateways", Networkz(istiod)}};
}

Json Inject(const pilot::Istiod& istiod) {
  Json out = Json::object();
  const kube::ObjectRef map = istiod.injector_config();
  if (map == nullptr) return out;
  const auto data = kube::ConfigMapData(*map);
  const auto config = data.find("config");
  if (config == data.end()) return out;
  const absl::StatusOr<nlohmann::json> read = kube::ParseYaml(config->second, "config");
  if (!read.ok()) return out;
  const nlohmann::json& templates = At(*read, "templates");
  if (templates.is_object()) {
    for (const auto& [name, text] : templates.items()) out[name] = TextOf(text);
  }
  return out;
}

}  // namespace wavetank::debug
