#include "sim/mending/installation.h"

#include <memory>

#include "absl/strings/numbers.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/inject/injection_config.h"
#include "core/inject/webhook_configuration.h"
#include "core/kube/types.h"
#include "core/security/namespace_controller.h"
#include "core/security/remote_secret.h"
#include "fmt/format.h"

namespace wavetank::sim {

using nlohmann::json;

namespace {

constexpr const char* kWebhookKind = "MutatingWebhookConfiguration";

// Creates the object unless one of its kind and name is there.
absl::Status Ensure(fakekube::ApiServer& api, json object) {
  const json& meta = At(object, "metadata");
  if (api.Get(Text(object, "kind"), {Text(meta, "namespace"), Text(meta, "name")}) != nullptr) {
    return absl::OkStatus();
  }
  return api.Apply(std::move(object)).status();
}

json Named(const char* api_version, const char* kind, const char* name, const std::string& ns = kSystemNamespace) {
  return {{"apiVersion", api_version}, {"kind", kind}, {"metadata", {{"name", name}, {"namespace", ns}}}};
}

absl::Status EnsureBase(fakekube::ApiServer& api, const std::string& system) {
  json ns = {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", system}}}};
  if (absl::Status status = Ensure(api, std::move(ns)); !status.ok()) return status;
  return Ensure(api, Named("v1", "ServiceAccount", std::string(security::kReaderServiceAccount).c_str(), system));
}

// What is said of istiods' pods, with the namespace, by what is there.
void ForEachIstiod(const fakekube::ApiServer& api,
                   const std::function<void(const json& pod, const std::string& ns)>& tell) {
  for (const char* kind : {"Deployment", "Pod"}) {
    for (const kube::ObjectRef& object : api.List(kind)) {
      const json& pod = kind[0] == 'P' ? object->body : At(object->body, {"spec", "template"});
      if (IsIstiod(pod, object->meta.ns)) tell(pod, object->meta.ns);
    }
  }
}

bool HasIstiod(const fakekube::ApiServer& api) {
  bool found = false;
  ForEachIstiod(api, [&](const json&, const std::string&) { found = true; });
  return found;
}

// Some webhook configuration leads to an injector that is there: others, a revision's that is gone or another
// program's, inject nothing.
bool HasInjector(const fakekube::ApiServer& api) {
  for (const kube::ObjectRef& object : api.List(kWebhookKind)) {
    const bool istio = object->meta.labels.count("istio.io/rev") != 0 || object->meta.name.starts_with("istio");
    for (const json& webhook : Items(At(object->body, "webhooks"))) {
      const json& client = At(webhook, "clientConfig");
      const json& service = At(client, "service");
      const bool there =
          service.is_null() || api.Get("Service", {Text(service, "namespace"), Text(service, "name")}) != nullptr;
      if (istio && there) return true;
    }
  }
  return false;
}

json PortOf(const char* name, int port, int target) {
  return {{"name", name}, {"port", port}, {"targetPort", target}, {"protocol", "TCP"}};
}

}  // namespace

bool IsIstiod(const json& pod, std::string_view ns) {
  if (At(pod, {"metadata", "labels", "app"}) != "istiod") return false;
  if (ns == kSystemNamespace) return true;
  for (const json& container : Items(At(pod, {"spec", "containers"}))) {
    if (Text(container, "name") == "discovery") return true;
  }
  return false;
}

std::string SystemNamespaceOf(const fakekube::ApiServer& api) {
  std::string out;
  ForEachIstiod(api, [&](const json&, const std::string& ns) {
    if (out.empty() || ns == kSystemNamespace) out = ns;
  });
  if (!out.empty()) return out;
  const std::string annotation(security::kControlPlaneClustersAnnotation);
  for (const kube::ObjectRef& ns : api.List("Namespace")) {
    if (ns->meta.annotations.count(annotation) != 0) return ns->meta.name;
  }
  return kSystemNamespace;
}

bool IsSketch(const fakekube::ApiServer& api) {
  bool stub = false, told = false;  // an istiod that is told nothing, or something
  ForEachIstiod(api, [&](const json& pod, const std::string&) {
    stub = true;
    for (const json& container : Items(At(pod, {"spec", "containers"}))) {
      if (Text(container, "name") != "discovery") continue;
      // What an installation always tells; a sketch may turn a switch of istiod's and leave the rest to be filled in
      // (istiod: manifests/charts/istio-control/istio-discovery/templates/deployment.yaml).
      for (const json& variable : Items(At(container, "env"))) {
        const std::string name = Text(variable, "name");
        told = told || name == "CLUSTER_ID" || name == "POD_NAMESPACE" || name == "REVISION";
      }
    }
  });
  if (told) return false;
  return stub || (api.List(kWebhookKind).empty() && api.Get("Service", {kSystemNamespace, "istiod"}) == nullptr);
}

absl::Status InstallPrimary(fakekube::ApiServer& api, const Installation& what) {
  if (!what.mending.Does(Mend::kIstiod, IsSketch(api))) return absl::OkStatus();
  what.mended(Mend::kIstiod);
  const std::string system = SystemNamespaceOf(api);
  if (absl::Status status = EnsureBase(api, system); !status.ok()) return status;
  // The Helm values: what injection writes into proxies, and what `istioctl analyze` reads of them.
  json values = pilot::InjectionConfig::Default(what.cluster, what.network, "mesh1", what.profile).values;
  values["global"]["istioNamespace"] = system;
  json injector = Named("v1", "ConfigMap", std::string(pilot::InjectorConfigMapName("")).c_str(), system);
  injector["data"] = {{"config", "policy: enabled\n"}, {"values", JsonText(values)}};
  // istiod does without it, istioctl does not; elsewhere istiod's address is another than the usual one.
  json mesh = Named("v1", "ConfigMap", "istio", system);
  std::string says = fmt::format("rootNamespace: {}\n", system);
  if (system != kSystemNamespace)
    says += fmt::format("defaultConfig: {{discoveryAddress: 'istiod.{}.svc:15012'}}\n", system);
  mesh["data"] = {{"mesh", what.mesh_config.empty() ? says : what.mesh_config}};
  for (json& map : std::vector<json>{std::move(injector), std::move(mesh)}) {
    if (absl::Status status = Ensure(api, std::move(map)); !status.ok()) return status;
  }
  if (!HasIstiod(api)) {
    // As the chart labels them; istioctl 1.30 looks for its revision's istiods alone (istio:
    // istioctl/pkg/cli/context.go, RevisionOrDefault).
    const json labels = {
        {"app", "istiod"}, {"istio", "pilot"}, {"istio.io/rev", "default"}, {"sidecar.istio.io/inject", "false"}};
    const json selector = {{"app", "istiod"}, {"istio", "pilot"}};
    json deployment = Named("apps/v1", "Deployment", "istiod");
    deployment["spec"] = {
        {"replicas", 1},
        {"selector", {{"matchLabels", selector}}},
        {"template",
         {{"metadata", {{"labels", labels}}},
          {"spec",
           {{"serviceAccountName", "istiod"},
            {"containers", json::array({{{"name", "discovery"},
                                         {"image", fmt::format("example/pilot:{}", what.profile.istio)}}})}}}}}};
    json service = Named("v1", "Service", "istiod");
    service["metadata"]["labels"] = selector;
    service["spec"] = {{"selector", selector},
                       {"ports",
                        {PortOf("grpc-xds", 15010, 15010), PortOf("https-dns", 15012, 15012),
                         PortOf("https-webhook", 443, 15017), PortOf("http-monitoring", 15014, 15014)}}};
    for (json& object : std::vector<json>{Named("v1", "ServiceAccount", "istiod"), deployment, service}) {
      if (absl::Status status = Ensure(api, std::move(object)); !status.ok()) return status;
    }
  }
  if (HasInjector(api)) return absl::OkStatus();
  pilot::WebhookInstallation webhook;
  webhook.ns = system;
  return Ensure(api, pilot::MakeMutatingWebhookConfiguration(webhook));
}

absl::Status InstallRemote(fakekube::ApiServer& api, const Installation& what) {
  const bool sketch = IsSketch(api);
  const std::string annotation(security::kControlPlaneClustersAnnotation);
  const bool installs = what.mending.Does(Mend::kIstiod, sketch);
  if (installs) {
    if (absl::Status status = EnsureBase(api, kSystemNamespace); !status.ok()) return status;
  }
  const kube::ObjectRef ns = api.Get("Namespace", {"", kSystemNamespace});
  if (what.mending.Does(Mend::kControlPlane, sketch) && ns != nullptr && ns->meta.annotations.count(annotation) == 0) {
    const json patch = {{"metadata", {{"annotations", {{annotation, what.control_plane}}}}}};
    if (auto patched = api.Patch("Namespace", {"", kSystemNamespace}, patch); !patched.ok()) return patched.status();
    what.mended(Mend::kControlPlane);
  }
  if (!installs) return absl::OkStatus();
  what.mended(Mend::kIstiod);
  json service = Named("v1", "Service", "istiod");
  service["spec"] = {{"ports",
                      {{{"name", "tcp-istiod"}, {"port", 15012}, {"protocol", "TCP"}},
                       {{"name", "tcp-webhook"}, {"port", 443}, {"targetPort", 15017}, {"protocol", "TCP"}}}}};
  if (absl::Status status = Ensure(api, std::move(service)); !status.ok()) return status;
  if (HasInjector(api)) return absl::OkStatus();
  pilot::WebhookInstallation webhook;
  webhook.injection_path = fmt::format("/inject/cluster/{}/net/{}", what.cluster, what.network);
  return Ensure(api, pilot::MakeMutatingWebhookConfiguration(webhook));
}

Subscription ConnectRemoteWhenExposed(fakekube::ApiServer& primary, fakekube::ApiServer& remote) {
  auto connected = std::make_shared<bool>(false);
  const auto look = [&remote, connected](const kube::Object& object) {
    const auto gateway = object.meta.labels.find("istio");
    if (*connected || gateway == object.meta.labels.end() || gateway->second != "eastwestgateway") return;
    const kube::Service& service = kube::ParseService(object);
    if (service.ingress.empty()) return;
    *connected = true;
    if (remote.Get("Endpoints", {kSystemNamespace, "istiod"}) != nullptr) return;
    if (!service.ingress.front().ip.empty()) {
      json endpoints = Named("v1", "Endpoints", "istiod");
      endpoints["subsets"] = json::array({{{"addresses", json::array({{{"ip", service.ingress.front().ip}}})},
                                           {"ports",
                                            {{{"name", "tcp-istiod"}, {"port", 15012}, {"protocol", "TCP"}},
                                             {{"name", "tcp-webhook"}, {"port", 15017}, {"protocol", "TCP"}}}}}});
      remote.Apply(std::move(endpoints)).IgnoreError();
      return;
    }
    // A host name: the Service becomes an alias of it, which changes no port: the webhook names the alias's own
    // (kube-apiserver: apiserver/pkg/util/proxy, ResolveCluster).
    const std::string& hostname = service.ingress.front().hostname;
    remote
        .Patch(
            "Service", {kSystemNamespace, "istiod"},
            {{"spec",
              {{"type", "ExternalName"}, {"externalName", hostname}, {"clusterIP", nullptr}, {"clusterIPs", nullptr}}}})
        .IgnoreError();
    for (const kube::ObjectRef& configuration : remote.List(kWebhookKind)) {
      json webhooks = Items(At(configuration->body, "webhooks"));
      for (json& webhook : webhooks) {
        if (!At(webhook, {"clientConfig", "service"}).is_object()) continue;
        webhook["clientConfig"]["service"]["port"] = 15017;
      }
      remote.Patch(kWebhookKind, {"", configuration->meta.name}, {{"webhooks", std::move(webhooks)}}).IgnoreError();
    }
  };
  for (const kube::ObjectRef& service : primary.List("Service", kSystemNamespace)) look(*service);
  return primary.Observe("Service", [look](const fakekube::Change& change) { look(*change.object); });
}

absl::Status ParseWebhookUrl(std::string_view url, std::string* host, uint16_t* port, std::string* path) {
  constexpr std::string_view kScheme = "https://";
  if (url.substr(0, kScheme.size()) != kScheme) {
    return absl::InvalidArgumentError(fmt::format("webhook URL '{}' does not begin with https://", url));
  }
  url.remove_prefix(kScheme.size());
  const size_t slash = url.find('/');
  *path = slash == std::string_view::npos ? "/" : std::string(url.substr(slash));
  std::string_view authority = url.substr(0, slash);
  *port = 443;
  if (const size_t colon = authority.rfind(':'); colon != std::string_view::npos) {
    int32_t number = 0;
    if (!absl::SimpleAtoi(std::string(authority.substr(colon + 1)), &number) || number < 1 || number > 65535) {
      return absl::InvalidArgumentError("the webhook URL's port is none");
    }
    *port = static_cast<uint16_t>(number);
    authority = authority.substr(0, colon);
  }
  *host = std::string(authority);
  return absl::OkStatus();
}

}  // namespace wavetank::sim
