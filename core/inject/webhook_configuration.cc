#include "core/inject/webhook_configuration.h"

#include <algorithm>

#include "core/base/status.h"
#include "core/inject/json_access.h"
#include "core/kube/label_selector.h"
#include "fmt/format.h"

namespace wavetank::pilot {
namespace {

using nlohmann::json;

json In(const char* key, const std::string& value) { return {{"key", key}, {"operator", "In"}, {"values", {value}}}; }
json NotIn(const char* key, std::initializer_list<const char*> values) {
  return {{"key", key}, {"operator", "NotIn"}, {"values", json(values)}};
}
json Absent(const char* key) { return {{"key", key}, {"operator", "DoesNotExist"}}; }

constexpr char kRevision[] = "istio.io/rev", kInjection[] = "istio-injection", kInject[] = "sidecar.istio.io/inject";

}  // namespace

json MakeMutatingWebhookConfiguration(const WebhookInstallation& installation) {
  const std::string revision = installation.revision.empty() ? "default" : installation.revision;
  const std::string suffix = installation.revision.empty() ? "" : "-" + installation.revision;
  json client = {{"service",
                  {{"name", "istiod" + suffix},
                   {"namespace", installation.ns},
                   {"path", installation.injection_path},
                   {"port", 443}}}};
  if (!installation.injection_url.empty()) client = {{"url", installation.injection_url}};
  json webhooks = json::array();
  const auto add = [&](const char* prefix, std::initializer_list<json> in_namespace,
                       std::initializer_list<json> in_pod) {
    webhooks.push_back(
        {{"name", std::string(prefix) + "sidecar-injector.istio.io"},
         {"clientConfig", client},
         {"sideEffects", "None"},
         {"rules",
          {{{"operations", {"CREATE"}}, {"apiGroups", {""}}, {"apiVersions", {"v1"}}, {"resources", {"pods"}}}}},
         {"failurePolicy", "Fail"},
         {"admissionReviewVersions", {"v1beta1", "v1"}},
         {"namespaceSelector", {{"matchExpressions", json(in_namespace)}}},
         {"objectSelector", {{"matchExpressions", json(in_pod)}}}});
  };
  add("rev.namespace.", {In(kRevision, revision), Absent(kInjection)}, {NotIn(kInject, {"false"})});
  add("rev.object.", {Absent(kRevision), Absent(kInjection)}, {NotIn(kInject, {"false"}), In(kRevision, revision)});
  if (installation.revision.empty()) {
    add("namespace.", {In(kInjection, "enabled")}, {NotIn(kInject, {"false"})});
    add("object.", {Absent(kInjection), Absent(kRevision)}, {In(kInject, "true"), Absent(kRevision)});
    if (installation.enable_namespaces_by_default) {
      add("auto.",
          {Absent(kInjection), Absent(kRevision),
           NotIn("kubernetes.io/metadata.name",
                 {"kube-system", "kube-public", "kube-node-lease", "local-path-storage"})},
          {Absent(kInject), Absent(kRevision)});
    }
  }
  const std::string place = installation.ns == "istio-system" ? "" : "-" + installation.ns;
  return {{"apiVersion", "admissionregistration.k8s.io/v1"},
          {"kind", "MutatingWebhookConfiguration"},
          {"metadata",
           {{"name", "istio-sidecar-injector" + suffix + place},
            {"labels", {{"istio.io/rev", revision}, {"app", "sidecar-injector"}}}}},
          {"webhooks", webhooks}};
}

bool ServesWebhook(std::string_view served, std::string_view path) {
  path = path.substr(0, path.find('?'));
  return path.starts_with(served) && (path.size() == served.size() || path[served.size()] == '/');
}

bool TakesNewPods(const json& webhook) {
  const auto holds = [](const json& list, std::initializer_list<std::string_view> any_of) {
    return std::any_of(list.begin(), list.end(), [&](const json& item) {
      return std::find(any_of.begin(), any_of.end(), TextOf(item)) != any_of.end();
    });
  };
  const json& rules = Items(At(webhook, "rules"));
  return std::any_of(rules.begin(), rules.end(), [&](const json& rule) {
    return holds(Items(At(rule, "operations")), {"*", "CREATE"}) && holds(Items(At(rule, "apiGroups")), {"*", ""}) &&
           holds(Items(At(rule, "apiVersions")), {"*", "v1"}) &&
           holds(Items(At(rule, "resources")), {"*", "*/*", "pods"}) && Text(rule, "scope", "*") != "Cluster";
  });
}

bool InjectsSidecars(const json& webhook) {
  const std::string service = Text(At(webhook, {"clientConfig", "service"}), "name");
  if (Text(webhook, "name").ends_with("istio.io") || service.starts_with("istio")) return true;
  const std::string url = Text(At(webhook, "clientConfig"), "url");
  const size_t host = url.find("://"), path = host == std::string::npos ? host : url.find('/', host + 3);
  return path != std::string::npos && ServesWebhook(kInjectPath, std::string_view(url).substr(path));
}

absl::StatusOr<std::optional<WebhookTarget>> TargetOfWebhook(const json& configuration, size_t index,
                                                             const kube::Labels& namespace_labels,
                                                             const kube::Labels& pod_labels, bool rules) {
  const json& webhook = Items(At(configuration, "webhooks")).at(index);
  if (rules && !TakesNewPods(webhook)) return std::nullopt;
  for (const auto& [field, labels] :
       {std::pair("namespaceSelector", &namespace_labels), std::pair("objectSelector", &pod_labels)}) {
    const auto selector = kube::LabelSelector::FromJson(At(webhook, field));
    if (!selector.ok()) {
      return absl::InvalidArgumentError(fmt::format("MutatingWebhookConfiguration/{}: webhooks[{}].{}: {}",
                                                    Text(At(configuration, "metadata"), "name"), index, field,
                                                    Message(selector.status())));
    }
    if (!selector->Matches(*labels)) return std::nullopt;
  }
  const json& client = At(webhook, "clientConfig");
  const json& service = At(client, "service");
  WebhookTarget target;
  target.webhook = Text(webhook, "name");
  target.url = Text(client, "url");
  target.service_namespace = Text(service, "namespace");
  target.service_name = Text(service, "name");
  target.path = Text(service, "path");
  if (const json& port = At(service, "port"); port.is_number_integer()) target.port = port.get<int>();
  target.fail_if_absent = Text(webhook, "failurePolicy") != "Ignore";
  return target;
}

absl::StatusOr<std::optional<WebhookTarget>> SelectWebhook(const json& configuration,
                                                           const kube::Labels& namespace_labels,
                                                           const kube::Labels& pod_labels, bool rules) {
  const json& webhooks = Items(At(configuration, "webhooks"));
  for (size_t i = 0; i < webhooks.size(); ++i) {
    if (!InjectsSidecars(webhooks[i])) continue;
    auto target = TargetOfWebhook(configuration, i, namespace_labels, pod_labels, rules);
    if (!target.ok() || target->has_value()) return target;
  }
  return std::nullopt;
}

}  // namespace wavetank::pilot
