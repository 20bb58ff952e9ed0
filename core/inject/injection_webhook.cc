#include "core/inject/injection_webhook.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/base/text/parse_bool.h"
#include "core/inject/annotation_validation.h"
#include "core/inject/app_probe.h"
#include "core/inject/injection_templates.h"
#include "core/inject/json_access.h"
#include "core/inject/proxy_config.h"
#include "core/kube/quantity.h"
#include "core/kube/strategic_merge.h"
#include "core/kube/types.h"
#include "core/kube/yaml.h"
#include "core/model/labels.h"
#include "fmt/format.h"

namespace wavetank::pilot {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr char kProxyContainer[] = "istio-proxy";
constexpr char kStatusAnnotation[] = "sidecar.istio.io/status", kOverridesAnnotation[] = "proxy.istio.io/overrides";
constexpr const char* kContainerLists[] = {"containers", "initContainers"};

json& Object(json& parent, const char* name) {
  json& child = parent[name];
  if (!child.is_object()) child = json::object();
  return child;
}

// "prometheus.io/port" and "prometheus-io/port" are the same to Prometheus.
std::string SanitizeLabelName(std::string text) {
  for (char& c : text) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return text;
}

struct PrometheusAnnotations {
  std::string scrape, path, port;
  bool has_port = false;
};

PrometheusAnnotations ReadPrometheus(const json& annotations) {
  PrometheusAnnotations out;
  for (const auto& [name, value] : TextMap(annotations)) {
    const std::string plain = SanitizeLabelName(name);
    if (plain == "prometheus_io_scrape") out.scrape = value;
    if (plain == "prometheus_io_path") out.path = value;
    if (plain == "prometheus_io_port") {
      out.port = value;
      out.has_port = true;
    }
  }
  return out;
}

void ClearPrometheus(json& annotations) {
  for (const auto& [name, value] : TextMap(annotations)) {
    const std::string plain = SanitizeLabelName(name);
    if (plain == "prometheus_io_scrape" || plain == "prometheus_io_path" || plain == "prometheus_io_port") {
      annotations.erase(name);
    }
  }
}

enum class Place : uint8_t { kFirst, kLast, kGone };

void MoveContainer(json& spec, const char* list_name, std::string_view container, Place place) {
  const auto list = spec.find(list_name);
  if (list == spec.end() || !list->is_array()) return;
  json match, rest = json::array();
  for (json& item : *list) {
    if (Text(item, "name") == container) {
      match = std::move(item);
    } else {
      rest.push_back(std::move(item));
    }
  }
  if (!match.is_null() && place == Place::kFirst) rest.insert(rest.begin(), std::move(match));
  if (!match.is_null() && place == Place::kLast) rest.push_back(std::move(match));
  *list = std::move(rest);
}

// A proxy's container that the pod has among its containers, and the template among the init containers.
void FollowTheTemplate(json& pod, const json& overlay) {
  json& spec = Object(pod, "spec");
  json* const container = FindNamed(spec["containers"], kProxyContainer);
  if (container == nullptr || FindNamed(At(At(overlay, "spec"), "initContainers"), kProxyContainer) == nullptr) return;
  spec["initContainers"].push_back(*container);
  MoveContainer(spec, "containers", kProxyContainer, Place::kGone);
}

bool Names(const json& list, std::string_view name) {
  return list.is_array() && std::find(list.begin(), list.end(), name) != list.end();
}

// The pod as it was before an earlier injection, for the template to look at.
absl::StatusOr<json> StripPod(json pod, const std::string& status_port) {
  json& annotations = Object(Object(pod, "metadata"), "annotations");
  json& spec = Object(pod, "spec");
  if (const std::string text = Text(annotations, kStatusAnnotation); !text.empty()) {
    if (const json status = ParseJson(text); status.is_object()) {
      for (const char* list : kContainerLists) {
        const json& names = At(status, list);
        if (!names.is_array()) continue;
        for (const json& name : names) MoveContainer(spec, list, Print(name), Place::kGone);
      }
      if (ReadPrometheus(annotations).port == status_port) ClearPrometheus(annotations);
      annotations.erase(kStatusAnnotation);
    }
  }
  if (const std::string text = Text(annotations, kOverridesAnnotation); !text.empty()) {
    const json overrides = ParseJson(text);
    if (!overrides.is_object()) {
      return absl::InvalidArgumentError(fmt::format("annotation {} is no JSON object", kOverridesAnnotation));
    }
    for (const char* list : kContainerLists) {
      const json& items = At(overrides, list);
      if (!items.is_array()) continue;
      for (const json& item : items) {
        if (FindNamed(At(spec, list), Text(item, "name")) == nullptr) spec[list].push_back(item);
      }
    }
  }
  return pod;
}

// A container that both the pod and the template have is a pod's own wish: it goes on top, but for image "auto".
// What was wished is kept in an annotation, since a second injection could not tell it from the template's part.
absl::Status ReapplyOverwritten(json& pod, const json& original, const json& injected) {
  const json& annotations = At(At(original, "metadata"), "annotations");
  const json existing = ParseJson(Text(annotations, kOverridesAnnotation));
  const bool already_injected = At(annotations, kStatusAnnotation).is_string();
  const json status = ParseJson(Text(annotations, kStatusAnnotation));
  json overrides = json::object();
  for (const char* list : kContainerLists) {
    const json& added = At(At(injected, "spec"), list);
    if (!added.is_array()) continue;
    for (const json& container : added) {
      const std::string name = Text(container, "name");
      if (Names(At(status, list), name)) continue;
      const json* wish = FindNamed(At(existing, list), name);
      if (wish == nullptr) wish = FindNamed(At(At(original, "spec"), list), name);
      // A wish about the proxy stands among the containers, also where the proxy is a native sidecar.
      if (wish == nullptr && name == kProxyContainer) wish = FindProxyContainer(At(original, "spec"));
      if (wish == nullptr) continue;
      json overlay = *wish;
      if (Text(overlay, "image") == "auto") overlay.erase("image");
      absl::Status merged = kube::StrategicMerge(pod, {{"spec", {{list, json::array({overlay})}}}});
      if (!merged.ok()) return merged;
      overrides[list].push_back(std::move(overlay));
    }
  }
  if (!already_injected && !overrides.empty()) {
    Object(Object(pod, "metadata"), "annotations")[kOverridesAnnotation] = JsonText(overrides);
  }
  return absl::OkStatus();
}

std::string InjectionStatus(const json& injected_spec, const std::string& revision) {
  ordered_json out;
  for (const char* field : {"initContainers", "containers", "volumes", "imagePullSecrets"}) {
    out[field] = nullptr;
    const json& list = At(injected_spec, field);
    if (!list.is_array()) continue;
    for (const json& item : list) out[field].push_back(Text(item, "name"));
  }
  out["revision"] = revision.empty() ? "default" : revision;
  return JsonText(out);
}

void SetClusterEnv(json& spec, const std::map<std::string, std::string>& proxy_env) {
  json* proxy = FindProxyContainer(spec);
  if (proxy == nullptr || proxy_env.empty()) return;
  json env = json::array();
  if (const json& old = At(*proxy, "env"); old.is_array()) {
    for (const json& item : old) {
      if (!proxy_env.contains(Text(item, "name"))) env.push_back(item);
    }
  }
  for (const auto& [name, value] : proxy_env) env.push_back({{"name", name}, {"value", value}});
  (*proxy)["env"] = std::move(env);
}

void MergePrometheus(json& pod, bool enabled_in_mesh, const std::string& status_port) {
  json& annotations = Object(Object(pod, "metadata"), "annotations");
  const PrometheusAnnotations have = ReadPrometheus(annotations);
  if (!ParseBool(have.scrape).value_or(true)) return;
  if (!ParseBool(Text(annotations, "prometheus.istio.io/merge-metrics")).value_or(enabled_in_mesh)) return;
  if (have.has_port && have.port == status_port) return;  // somebody's own choice, or an earlier injection's
  json* proxy = FindProxyContainer(pod["spec"]);
  if (proxy != nullptr && !(have.scrape.empty() && have.path.empty() && have.port.empty())) {
    ordered_json scrape = {{"scrape", have.scrape}, {"path", have.path}, {"port", have.port}};
    (*proxy)["env"].push_back({{"name", "ISTIO_PROMETHEUS_ANNOTATIONS"}, {"value", JsonText(scrape)}});
  }
  ClearPrometheus(annotations);
  annotations["prometheus.io/port"] = status_port;
  annotations["prometheus.io/path"] = "/stats/prometheus";
  annotations["prometheus.io/scrape"] = "true";
}

void RewriteProbes(json& pod, bool enabled_in_values, int status_port) {
  const json& annotations = At(At(pod, "metadata"), "annotations");
  json* proxy = FindProxyContainer(pod["spec"]);
  if (proxy == nullptr) return;
  if (!ParseBool(Text(annotations, "sidecar.istio.io/rewriteAppHTTPProbers")).value_or(enabled_in_values)) return;
  if (json probers = DumpAppProbers(pod["spec"], status_port); !probers.is_null()) {
    constexpr char kName[] = "ISTIO_KUBE_APP_PROBERS";
    json& env = (*proxy)["env"];
    if (!At(annotations, kStatusAnnotation).is_string()) {
      env.push_back({{"name", kName}, {"value", JsonText(probers)}});
    } else if (json* have = FindNamed(env, kName); have != nullptr) {
      const json old = ParseJson(Text(*have, "value"));
      if (old.is_object()) probers.update(old);
      if (old.is_object()) (*have)["value"] = JsonText(probers);
    }
  }
  int port = status_port;
  if (const std::string text = Text(annotations, "status.sidecar.istio.io/port"); !text.empty()) {
    port = std::atoi(text.c_str());
  }
  RewriteAppProbes(pod["spec"], port);
}

// Numbers of the Helm values are Go's float64, as YAML is read into map[string]any.
json WithRealNumbers(json in) {
  if (in.is_number_integer()) return in.get<double>();
  if (in.is_structured()) {
    for (json& member : in) member = WithRealNumbers(std::move(member));
  }
  return in;
}

// What a template of the injector sees (istiod: pkg/kube/inject/inject.go, SidecarTemplateData).
gotemplate::Value TemplateData(const InjectionTemplateData& data, const json& values) {
  json proxy_config = data.proxy_config.is_object() ? data.proxy_config : json::object();
  json mesh = data.mesh.raw.is_object() ? data.mesh.raw : json::object();
  // Zero values that are words.
  if (!proxy_config.contains("interceptionMode")) proxy_config["interceptionMode"] = "REDIRECT";
  mesh["trustDomain"] = data.mesh.trust_domain;
  mesh["rootNamespace"] = data.mesh.root_namespace;
  const json& metadata = At(data.pod, "metadata");
  const json& spec = At(data.pod, "spec");
  return {{{"TypeMeta", {{"kind", data.workload.kind}, {"apiVersion", data.workload.api_version}}},
           {"DeploymentMeta", {{"name", data.workload.name}, {"namespace", Text(metadata, "namespace")}}},
           {"ObjectMeta", metadata.is_object() ? metadata : json::object()},
           {"Spec", spec.is_object() ? spec : json::object()},
           {"ProxyConfig", std::move(proxy_config)},
           {"MeshConfig", std::move(mesh)},
           {"Values", values},
           {"Revision", data.revision},
           {"ProxyImage", ProxyImageOf(data)},
           {"NativeSidecars", data.native_sidecar},
           {"ProxyUID", nullptr},
           {"ProxyGID", nullptr},
           {"InboundTrafficPolicyMode", ""},
           {"CompliancePolicy", ""}},
          gotemplate::Value::Kind::kStruct};
}

// "emptyDir:" with nothing behind it is no source, and a volume without one is an empty folder to the API server
// (kubernetes: pkg/apis/core/v1/defaults.go, SetDefaults_Volume).
void FillVolumes(json& overlay) {
  json* const volumes = overlay.contains("spec") && overlay["spec"].is_object() && overlay["spec"].contains("volumes")
                            ? &overlay["spec"]["volumes"]
                            : nullptr;
  if (volumes == nullptr || !volumes->is_array()) return;
  for (json& volume : *volumes) {
    if (!volume.is_object()) continue;
    const bool sourced = std::any_of(volume.items().begin(), volume.items().end(), [](const auto& field) {
      return field.key() != "name" && !field.value().is_null();
    });
    if (!sourced) volume["emptyDir"] = json::object();
  }
}

// What a template makes of a pod, to be merged into it. `values`: those of the configuration, as templates see them.
absl::StatusOr<json> Overlay(const InjectionConfig& config, const json& values, const std::string& name,
                             const InjectionTemplateData& data) {
  const auto own = config.templates.find(name);
  if (own != config.templates.end()) {
    const absl::StatusOr<std::string> text = own->second.Execute(TemplateData(data, values));
    if (!text.ok()) return text.status();
    absl::StatusOr<json> overlay = kube::ParseYaml(*text, fmt::format("template \"{}\"", name));
    if (overlay.ok() && overlay->is_null()) return json::object();
    if (overlay.ok() && overlay->is_object()) {
      FillVolumes(*overlay);
      return overlay;
    }
    return absl::InvalidArgumentError(fmt::format(
        "failed parsing generated injected YAML (check Istio sidecar injector configuration): {}",
        overlay.ok() ? std::string_view("it must be a mapping: a part of a pod") : Message(overlay.status())));
  }
  if (name == "sidecar") return SidecarTemplate(data);
  if (name == "gateway") return GatewayTemplate(data);
  if (name == "grpc-agent") return GrpcAgentTemplate(data);
  if (name == "grpc-simple") return GrpcSimpleTemplate(data);
  std::set<std::string> known = {"gateway", "grpc-agent", "grpc-simple", "sidecar"};
  for (const auto& [other, text] : config.templates) known.insert(other);
  return absl::InvalidArgumentError(
      fmt::format("requested template \"{}\" not found; have {}", name, absl::StrJoin(known, ", ")));
}

// What annotations (sidecar.istio.io/proxyCPU) and values give the proxy has to be a quantity: the merged pod is read
// as one. istiod: pkg/kube/inject/webhook.go, applyOverlayYAML
absl::Status CheckQuantities(const json& overlay) {
  for (const char* list : {"initContainers", "containers"}) {
    for (const json& container : Items(At(At(overlay, "spec"), list))) {
      for (const char* part : {"requests", "limits"}) {
        for (const auto& [name, quantity] : At(At(container, "resources"), part).items()) {
          if (quantity.is_null() || kube::QuantityNanos(quantity)) continue;
          return absl::InvalidArgumentError(
              "failed to run injection template: failed parsing generated injected YAML (check Istio sidecar injector "
              "configuration): unmarshal patched pod: quantities must match the regular expression "
              "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
        }
      }
    }
  }
  return absl::OkStatus();
}

// What decides over the patch of a pod that a controller made: all of it but its name, which only a pod of its own
// gives to its workload (kube::WorkloadOf).
std::optional<std::string> WhatReplicasShare(const json& pod, const json& metadata, std::string_view path,
                                             NativeSidecar native) {
  const json& owners = Items(At(metadata, "ownerReferences"));
  if (Text(metadata, "name").empty() || Text(metadata, "generateName").empty() || owners.size() != 1) return {};
  if (At(owners[0], "controller") != true || Text(owners[0], "name").empty()) return {};
  std::string out = fmt::format("{} {} {}", path, static_cast<int>(native), JsonText(At(metadata, "namespace")));
  const auto add = [&](const std::string& key, const json& value) {
    absl::StrAppend(&out, "\n", key.size(), " ", key, " ", JsonText(value));
  };
  for (const auto& [key, value] : pod.items()) {
    if (key != "metadata") {
      add(key, value);
      continue;
    }
    for (const auto& [field, said] : value.items()) {
      if (field != "name") add(field, said);
    }
    add("", nullptr);  // its end
  }
  return out;
}

}  // namespace

std::map<std::string, std::string> ParseInjectPath(std::string_view path) {
  std::map<std::string, std::string> out;
  if (path.ends_with('/')) path.remove_suffix(1);
  const std::string whole(path);
  const std::vector<std::string> parts = absl::StrSplit(whole, absl::MaxSplits('/', 2));
  if (parts.size() < 3) return out;
  const auto set = [&](const std::string& name, const std::string& value) {
    const std::string variable = name == "cluster" ? "ISTIO_META_CLUSTER_ID"
                                 : name == "net"   ? "ISTIO_META_NETWORK"
                                                   : absl::AsciiStrToUpper(name);
    if (!variable.empty()) out[variable] = value;
  };
  if (absl::StartsWith(parts[2], ":ENV:")) {  // the old form: ":ENV:name=value:ENV:name=value"
    for (const std::string& pair : std::vector<std::string>(absl::StrSplit(parts[2], ":ENV:"))) {
      const size_t equals = pair.find('=');
      if (equals != std::string::npos && equals > 0) set(pair.substr(0, equals), pair.substr(equals + 1));
    }
    return out;
  }
  const std::vector<std::string> words = absl::StrSplit(parts[2], '/');
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    set(words[i], absl::StrReplaceAll(words[i + 1], {{"--slash--", "/"}}));
  }
  return out;
}

InjectionWebhook::InjectionWebhook(std::string revision) : revision_(std::move(revision)) {
  SetConfig(InjectionConfig::Default());
}

std::string InjectionWebhook::ClusterOf(std::string_view path) const {
  const std::map<std::string, std::string> said = ParseInjectPath(path);
  const auto named = said.find("ISTIO_META_CLUSTER_ID");
  if (named != said.end() && !named->second.empty()) return named->second;
  return Print(AtPath(At(config_.values, "global"), "multiCluster.clusterName"));
}

absl::StatusOr<json> InjectionWebhook::Inject(const json& pod, std::string_view path, NativeSidecar told) const {
  const json& metadata = At(pod, "metadata");
  const kube::Labels labels = TextMap(At(metadata, "labels")), annotations = TextMap(At(metadata, "annotations"));
  if (absl::Status status = ValidateInjectionAnnotations(annotations); !status.ok()) return status;

  // Cluster and network: Helm values, over them the request's path, over it the pod's label.
  std::map<std::string, std::string> proxy_env = ParseInjectPath(path);
  const json& global = At(config_.values, "global");
  const auto fall_back = [&](const char* name, const std::string& value) {
    std::string& slot = proxy_env[name];
    if (slot.empty()) slot = value;
    if (slot.empty()) proxy_env.erase(name);
  };
  fall_back("ISTIO_META_CLUSTER_ID", Print(AtPath(global, "multiCluster.clusterName")));
  fall_back("ISTIO_META_NETWORK", Print(At(global, "network")));
  if (const auto it = labels.find(kNetworkLabel); it != labels.end() && !it->second.empty()) {
    proxy_env["ISTIO_META_NETWORK"] = it->second;
  }

  const auto annotation = annotations.find(kProxyConfigAnnotation);
  const json& mesh_default = At(mesh_->raw, "defaultConfig");
  const json proxy_config =
      EffectiveProxyConfig(mesh_default, proxy_configs_, mesh_->root_namespace, Text(metadata, "namespace"), labels,
                           annotation == annotations.end() ? nullptr : &annotation->second);
  json mesh_proxy_config = DefaultProxyConfig();
  OverlayProxyConfig(mesh_proxy_config, mesh_default);
  const json& port = At(mesh_proxy_config, "statusPort");
  const int status_port = port.is_number_integer() ? port.get<int>() : 15020;

  const absl::StatusOr<json> stripped = StripPod(pod, std::to_string(status_port));
  if (!stripped.ok()) return stripped.status();
  json typed = *stripped;
  typed["apiVersion"] = "v1";
  typed["kind"] = "Pod";
  json& typed_metadata = Object(typed, "metadata");
  if (Text(typed_metadata, "name").empty()) typed_metadata["name"] = "";
  const absl::StatusOr<kube::ObjectRef> object = kube::Object::FromJson(typed);
  kube::WorkloadReference workload;
  if (object.ok()) {
    workload = kube::WorkloadOf(**object, kube::ParsePod(**object));
  } else if (!Text(typed_metadata, "name").empty()) {
    return object.status();
  }
  bool native = told == NativeSidecar::kYes;
  if (const auto it = annotations.find("sidecar.istio.io/nativeSidecar");
      told != NativeSidecar::kUnknown && it != annotations.end()) {
    native = it->second != "false";
  }
  // The charts' templates look at the annotation themselves.
  const bool of_charts = config_.templates.contains("sidecar");
  const InjectionTemplateData data{*stripped,
                                   workload,
                                   proxy_config,
                                   *mesh_,
                                   config_.values,
                                   revision_,
                                   of_charts ? told == NativeSidecar::kYes : native};

  std::vector<std::string> wanted = config_.default_templates;
  if (const auto it = annotations.find("inject.istio.io/templates"); it != annotations.end()) {
    wanted.clear();
    for (const std::string& name : std::vector<std::string>(absl::StrSplit(it->second, ','))) {
      wanted.emplace_back(absl::StripAsciiWhitespace(name));
    }
  }
  json merged = pod, injected = json::object();
  for (const std::string& name : wanted) {
    const auto alias = config_.aliases.find(name);
    for (const std::string& one : alias == config_.aliases.end() ? std::vector<std::string>{name} : alias->second) {
      absl::StatusOr<json> overlay = Overlay(config_, template_values_, one, data);
      if (!overlay.ok()) return overlay.status();
      if (absl::Status status = CheckQuantities(*overlay); !status.ok()) return status;
      // What the pod wishes of a proxy stands among its containers; the template's proxy may not. istiod: RunTemplate.
      if (native) FollowTheTemplate(merged, *overlay);
      for (json* into : {&merged, &injected}) {
        if (absl::Status status = kube::StrategicMerge(*into, *overlay); !status.ok()) return status;
      }
    }
  }
  if (absl::Status status = ReapplyOverwritten(merged, pod, injected); !status.ok()) return status;

  json& spec = Object(merged, "spec");
  SetClusterEnv(spec, proxy_env);
  MergePrometheus(merged, mesh_->enable_prometheus_merge, std::to_string(status_port));
  RewriteProbes(merged, AtPath(config_.values, "sidecarInjectorWebhook.rewriteAppHTTPProbe") == true, status_port);

  json& merged_metadata = Object(merged, "metadata");
  if (const auto it = proxy_env.find("ISTIO_META_NETWORK"); it != proxy_env.end()) {
    Object(merged_metadata, "labels")[std::string(kNetworkLabel)] = it->second;
  }
  json& merged_annotations = Object(merged_metadata, "annotations");
  merged_annotations[kStatusAnnotation] = InjectionStatus(At(injected, "spec"), revision_);
  for (const auto& [name, value] : config_.injected_annotations) merged_annotations[name] = value;

  // The proxy last, so that kubectl exec finds the application; first if applications wait for it.
  json hold = mesh_proxy_config;
  if (annotation != annotations.end()) {
    if (absl::Status s = OverlayProxyConfigYaml(hold, annotation->second, kProxyConfigAnnotation); !s.ok()) return s;
  }
  const bool first = At(hold, "holdApplicationUntilProxyStarts") == true ||
                     AtPath(global, "proxy.holdApplicationUntilProxyStarts") == true;
  MoveContainer(spec, "containers", kProxyContainer, first ? Place::kFirst : Place::kLast);
  if (FindNamed(At(spec, "initContainers"), kProxyContainer) != nullptr) {
    // Behind what redirects traffic, before the application's own: these are within the mesh. istiod: reorderPod.
    for (const char* name : {"enable-core-dump", kProxyContainer, "istio-validation", "istio-init"}) {
      MoveContainer(spec, "initContainers", name, Place::kFirst);
    }
    return merged;
  }
  MoveContainer(spec, "initContainers", "istio-validation", Place::kFirst);
  MoveContainer(spec, "initContainers", "istio-init", Place::kLast);
  MoveContainer(spec, "initContainers", "enable-core-dump", Place::kLast);
  return merged;
}

void InjectionWebhook::SetConfig(InjectionConfig config) {
  config_ = std::move(config);
  template_values_ = WithRealNumbers(config_.values);
  patches_.clear();
}

void InjectionWebhook::SetMeshConfig(config::MeshConfigRef mesh) {
  mesh_ = std::move(mesh);
  patches_.clear();
}

void InjectionWebhook::SetProxyConfigs(std::vector<kube::ObjectRef> resources) {
  if (resources == proxy_configs_) return;
  proxy_configs_ = std::move(resources);
  patches_.clear();
}

json InjectionWebhook::Admit(const json& review, std::string_view path, NativeSidecar native) const {
  json answer = {{"kind", "AdmissionReview"}, {"apiVersion", "admission.k8s.io/v1"}};
  if (const std::string version = Text(review, "apiVersion"); !version.empty()) answer["apiVersion"] = version;
  json& response = answer["response"];
  response = {{"uid", ""}, {"allowed", false}};
  const auto refuse = [&](std::string_view why) {
    response["status"] = {{"metadata", json::object()}, {"message", why}};
    return answer;
  };
  const json& request = At(review, "request");
  if (!request.is_object()) return refuse("the review holds no request");
  response["uid"] = Text(request, "uid");
  const json& original = At(request, "object");
  if (!original.is_object()) return refuse("the request holds no object");
  // As the templates see it; mostly what came in.
  std::optional<json> changed;
  if (const json& said = At(original, "metadata"); said.contains("managedFields") || Text(said, "namespace").empty()) {
    json& metadata = Object(changed.emplace(original), "metadata");
    metadata.erase("managedFields");
    if (Text(metadata, "namespace").empty()) metadata["namespace"] = Text(request, "namespace");
  }
  const json& pod = changed ? *changed : original;

  response["allowed"] = true;
  if (!InjectionRequired(config_, pod)) return answer;
  const std::optional<std::string> alike = WhatReplicasShare(original, At(pod, "metadata"), path, native);
  const auto known = alike ? patches_.find(*alike) : patches_.end();
  std::string patch = known == patches_.end() ? "" : known->second;
  if (patch.empty()) {
    const absl::StatusOr<json> injected = Inject(pod, path, native);
    response["allowed"] = injected.ok();
    if (!injected.ok()) return refuse(Message(injected.status()));
    absl::Base64Escape(JsonText(json::diff(original, *injected)), &patch);
    if (patches_.size() == kMostPatches) patches_.clear();
    if (alike) patches_[*alike] = patch;
  }
  response["patchType"] = "JSONPatch";
  response["patch"] = std::move(patch);
  return answer;
}

}  // namespace wavetank::pilot
