#include "sim/upgrade/control_plane.h"

#include <utility>
#include <vector>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/inject/injection_config.h"
#include "core/inject/webhook_configuration.h"
#include "core/kube/yaml.h"
#include "fmt/format.h"
#include "sim/upgrade/release_of_pod.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;

constexpr char kRevisionKey[] = "istio.io/rev", kWebhookConfigurations[] = "MutatingWebhookConfiguration";

json TemplateOf(const kube::Object& deployment) { return At(deployment.body, {"spec", "template"}); }

// Of the pods that it makes; empty: the default one.
std::string RevisionOfIstiods(const kube::Object& deployment) {
  for (const json& container : Items(At(deployment.body, {"spec", "template", "spec", "containers"}))) {
    for (const json& variable : Items(At(container, "env"))) {
      if (Text(variable, "name") != "REVISION") continue;
      const std::string revision = Text(variable, "value");
      return revision == "default" ? "" : revision;
    }
  }
  return {};
}

std::vector<kube::ObjectRef> DeploymentsOfIstiod(const fakekube::ApiServer& api) {
  std::vector<kube::ObjectRef> out;
  for (const kube::ObjectRef& object : api.List("Deployment")) {
    if (Text(At(TemplateOf(*object), {"metadata", "labels"}), "app") == "istiod") out.push_back(object);
  }
  return out;
}

// A recorded installation may be a Pod alone, or none at all that a Deployment made.
absl::Status NoIstiod() {
  return absl::NotFoundError(
      "no Deployment of istiod (label app: istiod) is there: an upgrade changes the one that is there");
}

std::string Suffixed(std::string_view name, std::string_view revision) {
  return revision.empty() ? std::string(name) : fmt::format("{}-{}", name, revision);
}

// The injector's Helm values with another tag; null: they are no mapping, and stay as they are.
json ValuesWithTag(const kube::Object& injector, std::string_view release) {
  absl::StatusOr<json> values = kube::ParseYaml(Text(At(injector.body, "data"), "values"), injector.Key());
  if (!values.ok() || !values->is_object()) return {};
  json& global = (*values)["global"];
  if (!global.is_object()) global = json::object();
  global["tag"] = TagOfRelease(Text(global, "tag"), release);
  return *std::move(values);
}

// metadata of a copy: its own name and labels, nothing that an API server wrote.
json MetadataOf(const std::string& ns, const std::string& name, json labels) {
  return {{"name", name}, {"namespace", ns}, {"labels", std::move(labels)}};
}

void SetRevisionVariable(std::string_view revision, json* pod) {
  for (json& container : (*pod)["spec"]["containers"]) {
    json env = json::array();
    for (const json& variable : Items(At(container, "env"))) {
      if (Text(variable, "name") != "REVISION") env.push_back(variable);
    }
    env.push_back({{"name", "REVISION"}, {"value", revision}});
    container["env"] = std::move(env);
  }
}

// The mesh configuration of a revision: proxies find its istiod by defaultConfig.discoveryAddress (manifests/charts/
// istio-control/istio-discovery/templates/configmap.yaml).
absl::StatusOr<json> MeshOf(const fakekube::ApiServer& api, const std::string& ns, std::string_view of,
                            std::string_view revision, const std::string& mesh_config) {
  const std::string name = Suffixed("istio", of);
  const kube::ObjectRef before = api.Get("ConfigMap", {ns, name});
  json data = before == nullptr ? json::object() : At(before->body, "data");
  if (!data.is_object()) data = json::object();
  absl::StatusOr<json> mesh =
      kube::ParseYaml(data.contains("mesh") ? Text(data, "mesh") : mesh_config, "ConfigMap " + name + ": mesh");
  if (!mesh.ok()) return mesh.status();
  if (!mesh->is_object()) *mesh = json::object();
  json& proxies = (*mesh)["defaultConfig"];
  if (!proxies.is_object()) proxies = json::object();
  proxies["discoveryAddress"] = fmt::format("istiod-{}.{}.svc:15012", revision, ns);
  data["mesh"] = JsonText(*mesh);
  return data;
}

}  // namespace

absl::Status SetInjectedRelease(fakekube::ApiServer& api, std::string_view release) {
  for (const kube::ObjectRef& map : api.List("ConfigMap")) {
    if (!map->meta.name.starts_with(pilot::kInjectorConfigMap)) continue;
    const json values = ValuesWithTag(*map, release);
    if (values.is_null()) continue;
    const json patch = {{"data", {{"values", JsonText(values)}}}};
    if (auto done = api.Patch("ConfigMap", {map->meta.ns, map->meta.name}, patch); !done.ok()) return done.status();
  }
  return absl::OkStatus();
}

absl::Status UpgradeInPlace(fakekube::ApiServer& api, const pilot::Profile& profile) {
  const std::vector<kube::ObjectRef> deployments = DeploymentsOfIstiod(api);
  if (deployments.empty()) return NoIstiod();
  if (absl::Status status = SetInjectedRelease(api, profile.istio); !status.ok()) return status;
  for (const kube::ObjectRef& deployment : deployments) {
    json pods = TemplateOf(*deployment);
    GiveIstiodRelease(profile, &pods);
    const json patch = {{"spec", {{"template", std::move(pods)}}}};
    if (auto done = api.Patch("Deployment", {deployment->meta.ns, deployment->meta.name}, patch); !done.ok()) {
      return done.status();
    }
  }
  return absl::OkStatus();
}

absl::Status InstallRevision(fakekube::ApiServer& api, const pilot::Profile& profile, std::string_view revision,
                             const std::string& mesh_config) {
  kube::ObjectRef before;
  for (const kube::ObjectRef& deployment : DeploymentsOfIstiod(api)) {
    if (RevisionOfIstiods(*deployment) == revision) {
      return absl::AlreadyExistsError(fmt::format("istiod of revision {} is there already", revision));
    }
    if (before == nullptr) before = deployment;
  }
  if (before == nullptr) return NoIstiod();
  const std::string& ns = before->meta.ns;  // beside the one that is there
  const std::string old = RevisionOfIstiods(*before), name = Suffixed("istiod", revision);
  const json selector = {{"app", "istiod"}, {kRevisionKey, revision}};

  absl::StatusOr<json> mesh = MeshOf(api, ns, old, revision, mesh_config);
  if (!mesh.ok()) return mesh.status();
  json config = {{"apiVersion", "v1"},
                 {"kind", "ConfigMap"},
                 {"metadata", MetadataOf(ns, Suffixed("istio", revision), {{kRevisionKey, revision}})},
                 {"data", *std::move(mesh)}};
  const kube::ObjectRef injector_before = api.Get("ConfigMap", {ns, pilot::InjectorConfigMapName(old)});
  if (injector_before == nullptr) {
    return absl::NotFoundError(fmt::format("ConfigMap {}/{} is not there, whose copy the revision's injector would be",
                                           ns, pilot::InjectorConfigMapName(old)));
  }
  json data = At(injector_before->body, "data");
  if (json values = ValuesWithTag(*injector_before, profile.istio); !values.is_null()) {
    values["revision"] = revision;
    data["values"] = JsonText(values);
  }
  json injector = {{"apiVersion", "v1"},
                   {"kind", "ConfigMap"},
                   {"metadata", MetadataOf(ns, pilot::InjectorConfigMapName(revision), {{kRevisionKey, revision}})},
                   {"data", std::move(data)}};

  json deployment = {{"apiVersion", "apps/v1"},
                     {"kind", "Deployment"},
                     {"metadata", MetadataOf(ns, name, selector)},
                     {"spec", At(before->body, "spec")}};
  json& pods = deployment["spec"]["template"];
  // The default revision's Service selects istio: pilot, so that it never leads to another's pods (the chart's
  // templates/deployment.yaml).
  pods["metadata"]["labels"]["istio"] = "istiod";
  pods["metadata"]["labels"][kRevisionKey] = revision;
  SetRevisionVariable(revision, &pods);
  GiveIstiodRelease(profile, &pods);
  deployment["spec"]["selector"] = {{"matchLabels", selector}};

  json service = {{"apiVersion", "v1"}, {"kind", "Service"}, {"metadata", MetadataOf(ns, name, selector)}};
  json ports = json::array();
  if (const kube::ObjectRef its = api.Get("Service", {ns, Suffixed("istiod", old)}); its != nullptr) {
    for (json port : Items(At(its->body, {"spec", "ports"}))) {
      port.erase("nodePort");
      ports.push_back(std::move(port));
    }
  }
  service["spec"] = {{"selector", selector}, {"ports", std::move(ports)}};

  pilot::WebhookInstallation webhooks;
  webhooks.ns = ns;
  webhooks.revision = revision;
  for (json& object : std::vector<json>{std::move(config), std::move(injector), std::move(deployment),
                                        std::move(service), pilot::MakeMutatingWebhookConfiguration(webhooks)}) {
    if (auto applied = api.Apply(std::move(object)); !applied.ok()) return applied.status();
  }
  return absl::OkStatus();
}

absl::Status RemoveOtherRevisions(fakekube::ApiServer& api, std::string_view revision) {
  std::vector<std::pair<std::string, std::string>> gone;  // namespace, revision
  for (const kube::ObjectRef& deployment : DeploymentsOfIstiod(api)) {
    if (RevisionOfIstiods(*deployment) == revision) continue;
    gone.emplace_back(deployment->meta.ns, RevisionOfIstiods(*deployment));
    if (absl::Status status = api.Delete("Deployment", {deployment->meta.ns, deployment->meta.name}); !status.ok()) {
      return status;
    }
  }
  for (const auto& [ns, old] : gone) {
    const std::pair<const char*, std::string> objects[] = {{"Service", Suffixed("istiod", old)},
                                                           {"ConfigMap", pilot::InjectorConfigMapName(old)},
                                                           {"ConfigMap", Suffixed("istio", old)}};
    for (const auto& [kind, name] : objects) {
      if (api.Get(kind, {ns, name}) == nullptr) continue;
      if (absl::Status status = api.Delete(kind, {ns, name}); !status.ok()) return status;
    }
    for (const kube::ObjectRef& webhook : api.List(kWebhookConfigurations)) {
      const auto its = webhook->meta.labels.find(kRevisionKey);
      const std::string of = its == webhook->meta.labels.end() || its->second == "default" ? "" : its->second;
      if (of != old) continue;
      if (absl::Status status = api.Delete(kWebhookConfigurations, {"", webhook->meta.name}); !status.ok())
        return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace wavetank::sim
