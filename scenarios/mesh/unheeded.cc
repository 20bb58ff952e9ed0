#include "scenarios/mesh/unheeded.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/config/mesh/mesh_fields.h"
#include "core/gateway_api/objects.h"
#include "core/inject/injection_config.h"
#include "core/inject/proxy_config.h"
#include "core/inject/webhook_configuration.h"
#include "core/kube/yaml.h"
#include "core/settings/istiod_settings.h"
#include "fakes/kube/objects/kinds.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "scenarios/mesh/field_hints.h"
#include "scenarios/mesh/unheeded_gateway_api.h"
#include "sim/signing/istio_csr_settings.h"

namespace wavetank::scenario {
namespace {

using nlohmann::json;

// A field that nothing reads. `usual`: the text that says what is so anyway.
struct UnreadField {
  std::string_view name, usual;
};
constexpr UnreadField kOfPods[] = {{"activeDeadlineSeconds", ""}, {"dnsConfig", ""},
                                   {"imagePullSecrets", ""},      {"dnsPolicy", "ClusterFirst"},
                                   {"hostAliases", ""},           {"priorityClassName", ""},
                                   {"runtimeClassName", ""},      {"topologySpreadConstraints", ""}};
constexpr UnreadField kOfContainers[] = {
    {"lifecycle", ""}, {"livenessProbe", ""}, {"readinessProbe", ""}, {"startupProbe", ""}};
constexpr UnreadField kOfAutoscalers[] = {{"behavior", ""}, {"metrics", ""}, {"targetCPUUtilizationPercentage", ""}};
constexpr UnreadField kOfServices[] = {
    {"loadBalancerClass", ""}, {"loadBalancerSourceRanges", ""}, {"sessionAffinity", "None"}};

// In a real cluster these change who runs or who reaches whom; here they are stored, and nothing acts upon them.
bool WithoutActors(const fakekube::GroupKind& kind) {
  const std::string_view group = kind.group, name = kind.kind;
  const bool mcs = name == "ServiceExport" || name == "ServiceImport";
  return (group == "multicluster.x-k8s.io" && !mcs) || group == "install.istio.io" ||
         (group == "autoscaling" && name != "HorizontalPodAutoscaler") ||
         (group == "metallb.io" && name != "IPAddressPool" && name != "L2Advertisement" && name != "BGPAdvertisement" &&
          name != "BGPPeer") ||
         (group == "cert-manager.io" && name != "Certificate" && name != "CertificateRequest" && name != "Issuer" &&
          name != "ClusterIssuer") ||
         group == "scheduling.k8s.io" || group == "storage.k8s.io" ||
         (group.empty() && name == "PersistentVolumeClaim");
}

bool IsIstios(std::string_view group) { return group.ends_with(".istio.io"); }

// A custom kind whose operator runs pods, scales them or moves their traffic: any that holds a template of pods, and
// those whose pods their operator thinks out.
bool RunsPods(const fakekube::GroupKind& kind, const json& object) {
  static constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"flagger.app", "Canary"},
      {"keda.sh", "ScaledObject"},
      {"monitoring.coreos.com", "Alertmanager"},
      {"monitoring.coreos.com", "Prometheus"},
      {"monitoring.coreos.com", "PrometheusAgent"},
      {"monitoring.coreos.com", "ThanosRuler"},
      {"kafka.strimzi.io", "Kafka"},
      {"kafka.strimzi.io", "KafkaConnect"},
      {"kafka.strimzi.io", "KafkaNodePool"},
      {"postgresql.cnpg.io", "Cluster"},
      {"postgresql.cnpg.io", "Pooler"},
      {"elasticsearch.k8s.elastic.co", "Elasticsearch"},
      {"kibana.k8s.elastic.co", "Kibana"},
      {"rabbitmq.com", "RabbitmqCluster"},
      {"opentelemetry.io", "OpenTelemetryCollector"},
      {"jaegertracing.io", "Jaeger"},
      {"kiali.io", "Kiali"}};
  const std::pair<std::string_view, std::string_view> wanted{kind.group, kind.kind};
  return At(object, {"spec", "template", "spec", "containers"}).is_array() ||
         std::find(std::begin(kKinds), std::end(kKinds), wanted) != std::end(kKinds);
}

bool Says(const json& in, const UnreadField& field) {
  const json& value = At(in, field.name);
  if (value.is_null() || value == "" || (value.is_structured() && value.empty())) return false;
  return field.usual.empty() || TextOf(value) != field.usual;
}

void AddFields(const std::string& kind, const std::string& path, const json& in, const auto& fields,
               std::vector<std::string>* out) {
  for (const UnreadField& field : fields) {
    if (!Says(in, field)) continue;
    out->push_back(fmt::format("{}: {}{} has no effect here", kind, path, field.name));
  }
}

// Of an injector's ConfigMap that cannot be read; empty: it can, or is none.
std::string UnreadInjector(const json& object) {
  if (Text(object, "kind") != "ConfigMap") return {};
  if (!Text(At(object, "metadata"), "name").starts_with(pilot::InjectorConfigMapName(""))) return {};
  const absl::StatusOr<kube::ObjectRef> map = kube::Object::FromJson(object);
  if (!map.ok()) return {};
  const absl::StatusOr<pilot::InjectionConfig> read = pilot::InjectionConfig::FromConfigMap(**map, {});
  if (read.ok()) return {};
  const std::string why(Message(read.status()));
  // What is no injector in reality either keeps istiod down, which says so itself (sim/istiod_run.cc, CheckInjector).
  if (!pilot::InjectionConfig::LacksFunction(read.status()))
    return why + "; an istiod that injects by it does not start";
  return why + "; the built-in templates inject, and it has no effect here";
}

// Words that are no field of a `message`, whose YAML `text` is; what cannot be read istiod says itself.
void AddMeshWords(const std::string& where, std::string_view message, const std::string& text,
                  std::vector<std::string>* out) {
  if (text.empty()) return;
  const absl::StatusOr<json> document = kube::ParseYaml(text, where);
  if (!document.ok()) return;
  for (const config::UnknownMeshField& field : config::UnknownMeshFields(message, *document)) {
    std::string hint = NearestHint(field.path.back(), field.known);
    if (!field.elsewhere.empty()) hint = fmt::format("it stands within {}", field.elsewhere);
    if (field.at_root) hint = fmt::format("it stands at the root of the {}", message);
    out->push_back(fmt::format("{}: {}: {} has no such field, and istiod reads on without it{}{}", where,
                               fmt::join(field.path, "."), field.message, hint.empty() ? "" : "; ", hint));
  }
}

}  // namespace

std::vector<std::string> UnheededIn(const json& object) {
  std::vector<std::string> out = UnheededOfAmbient(object);
  const std::string kind = Text(object, "kind"), api_version = Text(object, "apiVersion");
  if (std::string why = UnreadInjector(object); !why.empty()) out.push_back(std::move(why));
  const fakekube::GroupKind group_kind{kind, fakekube::GroupOf(api_version)};
  if (group_kind.group == gatewayapi::kGroup) {
    for (std::string& what : UnheededOfGatewayApi(object)) out.push_back(std::move(what));
    return out;
  }
  if (kind == "ServiceEntry" && Text(At(object, "spec"), "resolution") == "DYNAMIC_DNS") {
    out.push_back(
        fmt::format("{}: resolution DYNAMIC_DNS came after Istio 1.18, for sidecars with 1.30; of effect "
                    "with profiles of releases that read it",
                    kind));
    return out;
  }
  if (WithoutActors(group_kind)) {
    out.push_back(fmt::format("{} ({}) is stored here, and has no effect", group_kind.kind,
                              group_kind.group.empty() ? "core" : group_kind.group));
    return out;
  }
  if (!fakekube::KubernetesOwn(group_kind) && !IsIstios(group_kind.group) && RunsPods(group_kind, object)) {
    out.push_back(fmt::format("{} ({}) is stored here, and has no effect", group_kind.kind, group_kind.group));
    return out;
  }
  if (group_kind.group == "autoscaling") {
    // Its bounds hold.
    AddFields(kind, "spec.", At(object, "spec"), kOfAutoscalers, &out);
    return out;
  }
  // istiod: pkg/config/mesh/kubemesh/watcher.go; ConfigMap istio of the default revision, istio-REVISION of another.
  if (const std::string name = Text(At(object, "metadata"), "name");
      kind == "ConfigMap" && (name == "istio" || name.starts_with("istio-"))) {
    AddMeshWords(Named(object) + ": mesh", "MeshConfig", Text(At(object, "data"), "mesh"), &out);
    AddMeshWords(Named(object) + ": meshNetworks", "MeshNetworks", Text(At(object, "data"), "meshNetworks"), &out);
  }
  if (kind == "MutatingWebhookConfiguration") {
    for (const json& webhook : Items(At(object, "webhooks"))) {
      if (pilot::InjectsSidecars(webhook) || !pilot::TakesNewPods(webhook)) continue;
      out.push_back(fmt::format("{}: what webhook {} would change of pods has no effect here", Named(object),
                                Text(webhook, "name")));
    }
  }
  if (kind == "Service" && group_kind.group.empty()) AddFields(kind, "spec.", At(object, "spec"), kOfServices, &out);
  const bool templated = At(object, {"spec", "template", "spec"}).is_object();
  if (!templated && kind != "Pod") return out;
  const json& pod = templated ? At(object, {"spec", "template"}) : object;
  const std::string path = templated ? "spec.template.spec." : "spec.";
  AddMeshWords(fmt::format("{}: annotation {}", Named(object), pilot::kProxyConfigAnnotation), "ProxyConfig",
               Text(At(pod, {"metadata", "annotations"}), pilot::kProxyConfigAnnotation), &out);
  AddFields(kind, path, At(pod, "spec"), kOfPods, &out);
  const bool istiod = At(pod, {"metadata", "labels", "app"}) == "istiod";
  const std::optional<sim::IstioCsrSettings> csr = sim::IstioCsrSettings::Of(pod);
  for (const json& container : Items(At(pod, {"spec", "containers"}))) {
    // The readiness of these is simulated: istiod's and istio-csr's are their own, the proxy's its Envoy's.
    const std::string name = Text(container, "name");
    if (name == "istio-proxy" || (istiod && name == "discovery") || (csr && name == csr->container)) continue;
    AddFields(kind, path + "containers[].", container, kOfContainers, &out);
  }
  if (csr) {
    for (const std::string& argument : csr->unheeded)
      out.push_back(fmt::format("{}: {} has no effect here", Named(object), argument));
  }
  if (!istiod) return out;
  for (const std::string& what : pilot::UnheededSettings(pod))
    out.push_back(fmt::format("{}: {} has no effect here", Named(object), what));
  return out;
}

bool IsUnheeded(std::string_view note) {
  return note.ends_with(" has no effect here") || note.ends_with(" is stored here, and has no effect");
}

}  // namespace wavetank::scenario
