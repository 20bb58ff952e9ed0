// Settings of the mesh as a whole: its config, its webhooks, the budgets that drains of nodes have to ask; and settings
// for workloads that are not there.
#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/duration.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/config/mesh/mesh_config.h"
#include "core/inject/webhook_configuration.h"
#include "core/kube/label_selector.h"
#include "core/kube/yaml.h"
#include "core/model/host_name.h"
#include "core/profile/image_release.h"
#include "core/profile/published_images.h"
#include "core/profile/releases.h"
#include "core/settings/istiod_settings.h"
#include "core/xds/discovery_server.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "re2/re2.h"
#include "scenarios/mesh/installer_files.h"

namespace wavetank::check {
namespace {

using nlohmann::json;

// ConfigMaps from which istiods read the mesh config: "istio", and "istio-REVISION".
template <class Fn>
void EachMeshConfig(const Mesh& mesh, Fn fn) {
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& map : mesh.List(*cluster, "ConfigMap", cluster->system_namespace)) {
      if (map->meta.name != "istio" && !map->meta.name.starts_with("istio-")) continue;
      const auto data = kube::ConfigMapData(*map);
      if (const auto text = data.find("mesh"); text != data.end()) fn(*cluster, *map, text->second);
    }
  }
}

// istiod: pkg/config/mesh, a watcher keeps the mesh config that it had.
void MeshConfigUnreadable(const Mesh& mesh, Findings& findings) {
  EachMeshConfig(mesh, [&](const MeshCluster& cluster, const kube::Object& map, const std::string& text) {
    const auto config = config::ApplyMeshConfigDefaults(text);
    if (!config.ok()) findings.Add(cluster, map, fmt::format("mesh: {}", Message(config.status())));
  });
}

// istiod: pilot/pkg/model/telemetry_logging.go, FileAccessLogFromMeshConfig: logs an error, and takes its own format.
void AccessLogFormatUnread(const Mesh& mesh, Findings& findings) {
  EachMeshConfig(mesh, [&](const MeshCluster& cluster, const kube::Object& map, const std::string& text) {
    const absl::StatusOr<json> config = kube::ParseYaml(text, "mesh");
    if (!config.ok() || Text(*config, "accessLogEncoding") != "JSON") return;
    const std::string format = Text(*config, "accessLogFormat");
    if (format.empty() || ParseJson(format).is_object()) return;
    findings.Add(cluster, map,
                 "mesh: accessLogEncoding is JSON, and accessLogFormat is no JSON object: istiod takes its own format");
  });
}

// istio: pkg/envoy/agent.go, terminate, sleeps for so long between "drain" and the proxy's end; 5s by default.
void DrainsNotAtAll(const Mesh& mesh, Findings& findings) {
  EachMeshConfig(mesh, [&](const MeshCluster& cluster, const kube::Object& map, const std::string& text) {
    const absl::StatusOr<json> config = kube::ParseYaml(text, "mesh");
    if (!config.ok()) return;
    const json& defaults = At(*config, "defaultConfig");
    const std::string drain = Text(defaults, "terminationDrainDuration");
    if (drain.empty() || Text(At(defaults, "proxyMetadata"), "EXIT_ON_ZERO_ACTIVE_CONNECTIONS") == "true") return;
    const std::optional<Duration> duration = ParseDuration(drain);
    if (!duration || *duration >= 1s) return;
    findings.Add(cluster, map,
                 fmt::format("mesh: defaultConfig.terminationDrainDuration is {}: a proxy ends with its "
                             "pod's first signal, and what it was answering with it",
                             drain));
  });
}

void NamespacesNotDiscovered(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    const MeshCluster* primary = mesh.Find(cluster->control_plane);
    if (primary == nullptr || primary->push == nullptr) continue;
    const json& selectors = primary->push->mesh().discovery_selectors;
    if (!selectors.is_array() || selectors.empty()) continue;
    std::map<std::string, int> outside;  // pods with proxies by namespace
    for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
      const kube::ObjectRef ns = mesh.Get(*cluster, "Namespace", "", pod->pod()->meta.ns);
      if (!pod->bootstrap() || ns == nullptr) continue;
      const bool read = std::any_of(selectors.begin(), selectors.end(), [&](const json& selector) {
        const auto parsed = kube::LabelSelector::FromJson(selector);
        return parsed.ok() && parsed->Matches(ns->meta.labels);
      });
      if (!read) ++outside[ns->meta.name];
    }
    if (outside.empty()) continue;
    int pods = 0;
    std::vector<std::string> namespaces;
    for (const auto& [ns, count] : outside) {
      namespaces.push_back(ns);
      pods += count;
    }
    findings.Add(*primary, MeshConfigMap(mesh, *primary),
                 fmt::format("discoverySelectors leave out namespace{} {} of {}, in which {} pod{} with a proxy: their "
                             "Services and endpoints are unknown to istiod",
                             namespaces.size() == 1 ? "" : "s", fmt::join(namespaces, ", "), cluster->name, pods,
                             pods == 1 ? " runs" : "s run"));
  }
}

// istiod's own are nobody's to mend: kube-system, the API server. istiod: pkg/model/cluster_local.go,
// defaultClusterLocalNamespaces
bool IsClusterLocalByItself(const pilot::Service& service) {
  return IsSystemNamespace(service.attributes.ns) ||
         (service.attributes.ns == "default" && service.attributes.name == "kubernetes");
}

// MeshConfig.serviceSettings.
void ClusterLocalHosts(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->push == nullptr || cluster->istiod == nullptr) continue;
    const kube::ObjectRef map = MeshConfigMap(mesh, *cluster);
    for (const json& setting : Items(At(cluster->istiod->mesh_config().raw, "serviceSettings"))) {
      for (const json& each : Items(At(setting, "hosts"))) {
        const std::string host = TextOf(each);
        const auto services = cluster->push->GetAllServices();
        const bool known = std::any_of(services.begin(), services.end(), [&](const pilot::ServiceRef& service) {
          return service->hostname == host || pilot::HostSubsetOf(service->hostname, host);
        });
        if (known || map == nullptr) continue;
        findings.Add(*cluster, map, fmt::format("serviceSettings: {} is no host that istiod knows", host));
        findings.Explain("the setting holds for nothing",
                         "write NAME.NAMESPACE.svc.cluster.local, or *.NAMESPACE.svc.cluster.local");
      }
    }
    for (const pilot::ServiceRef& service : cluster->push->GetAllServices()) {
      if (IsClusterLocalByItself(*service) || !cluster->push->IsClusterLocal(*service)) continue;
      const auto* shards = cluster->istiod->discovery().endpoints().Find(service->hostname, service->attributes.ns);
      if (shards == nullptr) continue;
      std::set<std::string> far;
      for (const auto& [shard, endpoints] : shards->shards) {
        if (shard.cluster.str() != cluster->name && !endpoints->empty()) far.insert(shard.cluster.str());
      }
      if (far.empty()) continue;
      findings.Add(*cluster, map,
                   fmt::format("serviceSettings make {} clusterLocal: its endpoints in {} get no request from {}",
                               service->hostname, fmt::join(far, ", "), cluster->name));
    }
  }
}

// Without it a sidecar sends mesh TLS to those alone for whom a DestinationRule says so (istiod: cluster_builder.go,
// buildAutoMtlsSettings).
void AutoMtlsOff(const Mesh& mesh, Findings& findings) {
  if (!HasSeveralNetworks(mesh)) return;
  for (const auto& cluster : mesh.clusters()) {
    if (!IsMeshPrimary(*cluster) || cluster->push->mesh().enable_auto_mtls || !HasClients(mesh, *cluster)) continue;
    const auto& rules = cluster->configs.DestinationRules();
    const bool for_all = std::any_of(rules.begin(), rules.end(), [](const config::DestinationRuleRef& rule) {
      return rule->spec.host.starts_with("*") && rule->spec.traffic_policy && rule->spec.traffic_policy->tls &&
             rule->spec.traffic_policy->tls->mode == config::ClientTlsSettings::Mode::kIstioMutual;
    });
    if (for_all) continue;
    findings.Add(*cluster, MeshConfigMap(mesh, *cluster),
                 fmt::format("enableAutoMtls is false, and no DestinationRule asks for ISTIO_MUTUAL towards all hosts: "
                             "clients of {} send to gateways of other networks in clear text, which close",
                             cluster->name));
  }
}

void WasmOutOfReach(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (!IsMeshPrimary(*cluster)) continue;
    for (const kube::ObjectRef& plugin : mesh.List(*cluster, "WasmPlugin.extensions.istio.io")) {
      const json& spec = At(plugin->body, "spec");
      const std::string url = Text(spec, "url"), secret = Text(spec, "imagePullSecret");
      if (!secret.empty() && !cluster->recorded && mesh.Get(*cluster, "Secret", plugin->meta.ns, secret) == nullptr) {
        findings.Add(*cluster, *plugin,
                     fmt::format("imagePullSecret {} is not in {}: the module is asked for without it", secret,
                                 plugin->meta.ns));
      }
      if (!url.starts_with("file://")) continue;
      const std::string path = url.substr(std::string_view("file://").size());
      const auto pods = mesh.ServedPods(*cluster);
      const kube::Labels selector = LabelsIn(WorkloadSelectorOf(*plugin));
      const auto without = std::find_if(pods.begin(), pods.end(), [&](const sim::PodProcess* pod) {
        return pod->bootstrap() && HoldsFor(*cluster, plugin->meta.ns, selector, *pod) && !SidecarHasFile(*pod, path);
      });
      if (without == pods.end() || (*without)->router()) continue;
      findings.Add(*cluster, *plugin,
                   fmt::format("url {}: nothing is mounted into the sidecar of {}", url, (*without)->name()));
    }
  }
}

// Whether its cluster's namespaces and pods are such that both of two configurations' webhooks are asked; the first
// such namespace.
std::string SelectedByBoth(const Mesh& mesh, const MeshCluster& cluster, const kube::Object& a, const kube::Object& b) {
  for (const kube::ObjectRef& ns : mesh.List(cluster, "Namespace")) {
    kube::Labels of_ns = ns->meta.labels;
    of_ns.emplace("kubernetes.io/metadata.name", ns->meta.name);
    for (const kube::ObjectRef& pod : mesh.List(cluster, "Pod", ns->meta.name)) {
      const auto first = pilot::SelectWebhook(a.body, of_ns, pod->meta.labels);
      const auto second = pilot::SelectWebhook(b.body, of_ns, pod->meta.labels);
      if (first.ok() && second.ok() && first->has_value() && second->has_value()) return ns->meta.name;
    }
  }
  return {};
}

// istiod: pkg/config/analysis/analyzers/webhook
void WebhooksOfNobody(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    for (const char* kind : {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}) {
      const bool injects = std::string_view(kind).starts_with('M');
      const std::string_view served = injects ? pilot::kInjectPath : pilot::kValidatePath;
      std::vector<kube::ObjectRef> injectors;
      for (const kube::ObjectRef& object : mesh.List(*cluster, kind)) {
        const bool istio = object->meta.labels.contains("istio.io/rev") || object->meta.name.starts_with("istio");
        if (!istio) continue;
        bool told = false;
        for (const json& webhook : Items(At(object->body, "webhooks"))) {
          const json& service = At(webhook, {"clientConfig", "service"});
          const std::string ns = Text(service, "namespace"), name = Text(service, "name");
          const std::string path = Text(service, "path");
          if (name.empty()) continue;
          if (mesh.Get(*cluster, "Service", ns, name) == nullptr) {
            findings.Add(
                *cluster, *object,
                fmt::format("webhook {} asks Service {}/{}, which is not there", Text(webhook, "name"), ns, name));
          } else if (!pilot::ServesWebhook(served, path)) {
            findings.Add(*cluster, *object,
                         fmt::format("webhook {} asks for path '{}', and istiod serves {}: the API server is answered "
                                     "that it could not find the requested resource",
                                     Text(webhook, "name"), path, served));
            findings.Explain({}, "install the webhook configuration of istiod's chart again");
          } else if (injects && !pilot::TakesNewPods(webhook)) {
            findings.Add(*cluster, *object,
                         fmt::format("webhook {}: its rules do not take the creation of pods", Text(webhook, "name")));
            findings.Explain("an API server asks a webhook about what its rules name alone",
                             "write rules: operations [CREATE], apiGroups [\"\"], apiVersions [v1], resources [pods]");
          } else {
            continue;
          }
          told = true;
          break;
        }
        if (told || !injects) continue;
        for (const kube::ObjectRef& other : injectors) {
          const std::string both = SelectedByBoth(mesh, *cluster, *other, *object);
          if (both.empty()) continue;
          findings.Add(*cluster, *object,
                       fmt::format("its webhooks select pods of {} that {} selects, too: they are injected twice", both,
                                   other->meta.name));
          findings.Explain("the second one works on what the first has made of the pod",
                           "delete the one that is left from an older installation");
        }
        injectors.push_back(object);
      }
    }
  }
}

std::string CountText(const json& value) { return value.is_string() ? TextOf(value) : JsonText(value); }

// By what it says, not by pods that happen to be unwell: as many must stay as there are to be
// (kubernetes: pkg/controller/disruption, whose result its status holds).
// As Istio's charts make it for what they install: one pod to begin with, of which an autoscaler may make more
// (manifests/charts, poddisruptionbudget.yaml and autoscale.yaml). Everybody who installs Istio as documented has it.
bool IsAsInstalled(const Mesh& mesh, const MeshCluster& cluster, const kube::Object& budget, const std::string& whose) {
  if (!budget.meta.labels.contains("operator.istio.io/component")) return false;
  if (NumberOf(At(budget.body, {"spec", "minAvailable"})) != 1) return false;
  const auto scalers = mesh.List(cluster, "HorizontalPodAutoscaler", budget.meta.ns);
  return std::any_of(scalers.begin(), scalers.end(), [&](const kube::ObjectRef& scaler) {
    const json& spec = At(scaler->body, "spec");
    const json& to = At(spec, "scaleTargetRef");
    return fmt::format("{} {}/{}", Text(to, "kind"), budget.meta.ns, Text(to, "name")) == whose &&
           NumberOf(At(spec, "maxReplicas")) > 1;
  });
}

void DrainsBlocked(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    // kubernetes: pkg/registry/core/pod/rest/eviction.go refuses to evict a pod of two budgets.
    std::set<std::string> told;
    for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
      std::vector<kube::ObjectRef> budgets;
      for (const kube::ObjectRef& budget : mesh.List(*cluster, "PodDisruptionBudget", pod->pod()->meta.ns)) {
        const auto selector = kube::LabelSelector::FromJson(At(budget->body, {"spec", "selector"}));
        if (selector.ok() && selector->Matches(pod->pod()->meta.labels)) budgets.push_back(budget);
      }
      if (budgets.size() < 2 || !told.insert(NameOf(*budgets[1])).second) continue;
      findings.Add(
          *cluster, *budgets[1],
          fmt::format("pods of {} have PodDisruptionBudget {}, too: such pods are not evicted at all (This pod "
                      "has more than one PodDisruptionBudget, which the eviction subresource does not support)",
                      NameOf(*OwnerOf(mesh, *cluster, *pod)), budgets[0]->meta.name));
      findings.Explain("a node's upgrade stands still until somebody deletes one of them", "leave one of the budgets");
    }
    for (const kube::ObjectRef& budget : mesh.List(*cluster, "PodDisruptionBudget")) {
      const json& spec = At(budget->body, "spec");
      const auto selector = kube::LabelSelector::FromJson(At(spec, "selector"));
      if (!selector.ok()) continue;
      int pods = 0;
      std::string whose;
      for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
        if (pod->pod()->meta.ns != budget->meta.ns || !selector->Matches(pod->pod()->meta.labels)) continue;
        if (pods++ == 0) whose = NameOf(*OwnerOf(mesh, *cluster, *pod));
      }
      const json& status = At(budget->body, "status");
      const int64_t expected = Number(status, "expectedPods"), desired = Number(status, "desiredHealthy");
      if (pods == 0 || expected == 0 || desired < expected) continue;
      if (expected == 1 && IsAsInstalled(mesh, *cluster, *budget, whose)) continue;
      const bool most = !At(spec, "maxUnavailable").is_null();
      const std::string says = most ? "maxUnavailable " + CountText(At(spec, "maxUnavailable"))
                                    : "minAvailable " + CountText(At(spec, "minAvailable"));
      findings.Add(
          *cluster, *budget,
          fmt::format("{} of {} pod{} ({}): no pod of them may be evicted, and `kubectl drain` of {} waits "
                      "for ever",
                      says, expected, expected == 1 ? "" : "s", whose, expected == 1 ? "its node" : "their nodes"));
      if (expected == 1) {
        findings.Explain("a node's upgrade stands still until somebody deletes the pod or the budget",
                         "run at least two replicas (of a HorizontalPodAutoscaler: minReplicas), or remove the budget");
      }
    }
  }
}

// Of what a drain would have to ask nobody asks.
void BudgetsOfNobody(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& budget : mesh.List(*cluster, "PodDisruptionBudget")) {
      const auto selector = kube::LabelSelector::FromJson(At(budget->body, {"spec", "selector"}));
      if (!selector.ok() || selector->empty()) continue;
      const auto pods = mesh.List(*cluster, "Pod", budget->meta.ns);
      bool any =
          std::any_of(pods.begin(), pods.end(), [&](const auto& pod) { return selector->Matches(pod->meta.labels); });
      EachWorkload(mesh, [&](const MeshCluster& at, const kube::Object& object, const json& pod) {
        any = any || (&at == cluster.get() && object.meta.ns == budget->meta.ns &&
                      selector->Matches(LabelsIn(At(pod, {"metadata", "labels"}))));
      });
      if (any) continue;
      findings.Add(*cluster, *budget,
                   fmt::format("selects no pod of {} ({})", budget->meta.ns,
                               LabelText(LabelsIn(At(budget->body, {"spec", "selector", "matchLabels"})))));
    }
  }
}

// Of a policy by targetRefs: why no proxy is one of them; empty: some is, or it has none. Without waypoints those of a
// Service hold for nobody. istiod: pilot/pkg/model/policyattachment.go
std::string TargetOfNobody(const Mesh& mesh, const MeshCluster& cluster, const kube::Object& object) {
  for (const json& target : Items(At(object.body, {"spec", "targetRefs"}))) {
    const std::string kind = Text(target, "kind"), name = Text(target, "name");
    const std::string ns = Text(target, "namespace", object.meta.ns);
    if (kind == "Gateway") {
      if (mesh.Get(cluster, "Gateway.gateway.networking.k8s.io", ns, name) == nullptr)
        return fmt::format("targetRefs names Gateway {}/{} of the Gateway API, which is not there", ns, name);
    } else if (kind == "Service") {
      if (mesh.Get(cluster, "Service", ns, name) == nullptr)
        return fmt::format("targetRefs names Service {}/{}, which is not there", ns, name);
      const auto gateways = mesh.List(cluster, "Gateway.gateway.networking.k8s.io");
      const bool waypoint = std::any_of(gateways.begin(), gateways.end(), [](const kube::ObjectRef& gateway) {
        return Text(At(gateway->body, "spec"), "gatewayClassName").find("waypoint") != std::string::npos;
      });
      if (!waypoint)
        return fmt::format("targetRefs names Service {}/{}, whose waypoint it is for, and there is none", ns, name);
    }
  }
  return {};
}

void NoWorkloads(const Mesh& mesh, Findings& findings) {
  static constexpr const char* kKinds[] = {"AuthorizationPolicy.security.istio.io",
                                           "DestinationRule.networking.istio.io",
                                           "EnvoyFilter.networking.istio.io",
                                           "Gateway.networking.istio.io",
                                           "PeerAuthentication.security.istio.io",
                                           "ProxyConfig.networking.istio.io",
                                           "RequestAuthentication.security.istio.io",
                                           "Sidecar.networking.istio.io",
                                           "Telemetry.telemetry.istio.io",
                                           "WasmPlugin.extensions.istio.io"};
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->istiod == nullptr) continue;  // who serves nobody selects nobody
    const auto pods = mesh.ServedPods(*cluster);
    for (const char* kind : kKinds) {
      for (const kube::ObjectRef& object : mesh.List(*cluster, kind)) {
        if (const std::string nobody = TargetOfNobody(mesh, *cluster, *object);
            !nobody.empty() && Has(*cluster, pilot::Change::kPolicyTargets)) {
          findings.Add(*cluster, *object, nobody);
          findings.Explain("it holds for nobody", "mend the name, or select pods (selector)");
        }
        const kube::Labels labels = LabelsIn(WorkloadSelectorOf(*object));
        if (labels.empty()) continue;
        // A Gateway's selector is for all namespaces.
        const bool any = std::any_of(pods.begin(), pods.end(), [&](const auto* pod) {
          return object->kind == "Gateway" ? Selects(labels, pod->pod()->meta.labels)
                                           : HoldsFor(*cluster, object->meta.ns, labels, *pod);
        });
        if (!any)
          findings.Add(*cluster, *object,
                       fmt::format("no pod that its istiod serves has the labels {}", LabelText(labels)));
      }
    }
  }
}

void IstiodSaysNothing(const Mesh& mesh, Findings& findings) {
  EachWorkload(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const json& pod) {
    if (object.meta.ns != cluster.system_namespace) return;
    for (const std::string& text : pilot::VariablesIstiodIgnores(pod, mesh.world().profile().istio))
      findings.Add(cluster, object, fmt::format("{}, is as if it were not there", text));
  });
}

// kind's and MetalLB's files, or a scenario, give addresses twice.
void RangesOverlap(const Mesh& mesh, Findings& findings) {
  std::vector<scenario::ClusterRanges> files;
  for (const scenario::ClusterSpec& cluster : mesh.scenario().clusters)
    files.push_back(scenario::ReadRanges(cluster).value_or(scenario::ClusterRanges()));
  for (const scenario::SharedRange& shared : scenario::SharedRanges(mesh.scenario(), files)) {
    // At the file of the last cluster of these where a file says the range.
    Place place;
    for (const size_t i : shared.clusters) {
      if (!files[i].file.empty()) place = {files[i].file, files[i].line};
    }
    findings.Add("", "", place, shared.text);
  }
}

// Line of a path of block mappings ("spec", "values", "global") in a file's document that begins at `from`; that line
// where the path is written otherwise.
int LineOfPath(const std::string& file, int from, const std::vector<std::string_view>& path) {
  std::ifstream in(file);
  std::string line;
  size_t depth = 0, parent = 0;
  size_t child = 0;  // where keys of the mapping at hand begin; npos: its first one tells
  for (int number = 1; std::getline(in, line) && depth < path.size(); ++number) {
    if (number < from) continue;
    const size_t indent = line.find_first_not_of(' ');
    if (indent == line.npos || line[indent] == '#') continue;
    if (line.starts_with("---")) {
      if (number > from) break;
      continue;
    }
    if (depth > 0 && indent <= parent) break;  // the mapping has ended, and it was not in there
    if (child == line.npos) child = indent;
    const std::string_view rest = std::string_view(line).substr(indent), key = path[depth];
    if (indent != child || !rest.starts_with(key) || rest.size() <= key.size() || rest[key.size()] != ':') continue;
    if (++depth == path.size()) return number;
    parent = indent;
    child = line.npos;
  }
  return from;
}

// A number's digits as YAML read them, too: tag: 1.20 is 1.2.
std::string ScalarOf(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_number() ? JsonText(value) : std::string();
}

// Release in a revision's name, "1.17.3" of "1-17-3" or "canary-1-17-3"; minor 0: it names none.
int MinorOfRevision(const std::string& revision) {
  static const re2::RE2* const release = new re2::RE2("(?:.*-)?1-(\\d{1,2})(?:-\\d{1,2})?");
  int minor = 0;
  return re2::RE2::FullMatch(revision, *release, &minor) ? minor : 0;
}

// What an IstioOperator says of hub, tag and revision, told where it says it (istio: operator/pkg/apis/istio/v1alpha1,
// IstioOperatorSpec; components' and Helm's own come before those of the whole).
void InstallationOfAnotherRelease(const Mesh& mesh, Findings& findings) {
  const int simulated = pilot::MinorOf(mesh.world().profile().istio);
  for (const BroughtObject& brought : mesh.operators()) {
    const json& spec = At(brought.object, "spec");
    const std::string name = Text(At(brought.object, "metadata"), "name");
    const std::string object = name.empty() ? "IstioOperator" : "IstioOperator " + name;
    struct Images {
      std::vector<std::string_view> at;
      const char* image;
    };
    static const std::vector<Images> all = {{{}, "pilot"},
                                            {{"values", "global"}, "proxyv2"},
                                            {{"values", "pilot"}, "pilot"},
                                            {{"values", "cni"}, "install-cni"},
                                            {{"components", "pilot"}, "pilot"},
                                            {{"components", "cni"}, "install-cni"}};
    const auto add = [&](std::vector<std::string_view> path, std::string message, std::string cause,
                         std::string remedy) {
      path.insert(path.begin(), "spec");
      const Place place =
          brought.line <= 0 ? Place() : Place{brought.file, LineOfPath(brought.file, brought.line, path)};
      findings.Add(brought.cluster, object, place, std::move(message));
      findings.Explain(std::move(cause), std::move(remedy));
    };
    const std::string hub_of_all = ScalarOf(At(spec, "hub"));
    int istiod = simulated;  // the release of its istiod
    for (const auto& [at, image] : all) {
      const json* here = &spec;
      for (const std::string_view key : at) here = &At(*here, key);
      const std::string own_hub = ScalarOf(At(*here, "hub")), tag = ScalarOf(At(*here, "tag"));
      const std::string hub = !own_hub.empty() ? own_hub : !hub_of_all.empty() ? hub_of_all : "docker.io/istio";
      const std::string whole =
          fmt::format("{}/{}:{}", hub, image, tag.empty() ? mesh.world().profile().istio : std::string_view(tag));
      std::string where = "spec";
      for (const std::string_view key : at) where += "." + std::string(key);
      std::vector<std::string_view> path = at;
      if (const std::string_view meant = pilot::HubMeant(whole); !own_hub.empty() && !meant.empty()) {
        path.push_back("hub");
        add(path, fmt::format("{}.hub {} is almost {}, Istio's own hub", where, own_hub, meant),
            "a hub that is not there has no images", fmt::format("write {}, if that is meant", meant));
        path.pop_back();
      }
      if (tag.empty()) continue;
      path.push_back("tag");
      const int minor = pilot::MinorOfImage(whole);
      if (minor != 0 && std::string_view(image) == "pilot") istiod = minor;
      const std::string never = pilot::NeverPublished(whole);
      if (!never.empty()) {
        add(path, fmt::format("{}.tag {}: {}", where, tag, never), "pods whose image nobody can pull never run",
            "write a release that there is");
      } else if (pilot::HasHalfARelease(whole)) {
        add(path, fmt::format("{}.tag {} is no release: those are X.Y.Z", where, tag),
            "Istio's hubs have no image of it, so that pods never run",
            "write the whole release, in quotes: YAML reads tag: 1.20 as the number 1.2");
      } else if (minor != 0 && minor != simulated) {
        add(path,
            fmt::format("{}.tag {} is of Istio 1.{}, and charts, injection template and the istiod that is simulated "
                        "are of {}",
                        where, tag, minor, mesh.world().profile().istio),
            "images of one release with the charts of another are installed by nobody else, and what they do "
            "differently is not told",
            "install each release with its own istioctl (and --profile here), and leave tag out");
      }
    }
    const std::string revision = ScalarOf(At(spec, "revision"));
    if (const int named = MinorOfRevision(revision); named != 0 && named != istiod) {
      add({"revision"},
          fmt::format("revision {} is called after Istio 1.{}, and what it installs is 1.{}", revision, named, istiod),
          "who moves a namespace to the revision gets another release than its name says",
          "call the revision after its release, or mend tag");
    }
  }
}

}  // namespace

const std::vector<Rule>& SettingRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"IST0127", "NoMatchingWorkloadsFound", Level::kWarning, "it holds for nothing",
       "mend the selector or the pods' labels", "fluxcd/flagger#1237", NoWorkloads},
      {"WT705", "DrainsBlocked", Level::kWarning,
       "a node's upgrade stands still until somebody deletes the pods or the budget",
       "keep minAvailable below the replicas, or maxUnavailable at 1 or more", "istio/istio#12602", DrainsBlocked},
      {"WT727", "IstiodVariable", Level::kWarning, "istiod goes on with the variable's default, and says nothing",
       "mend its name or value: `wavetank istiod-variables` lists them; Go writes durations as 100ms or 1m30s",
       "istio/istio#18115", IstiodSaysNothing, false},
      {"WT729", "RangesOverlap", Level::kWarning, "an address that two things have leads to one of them",
       "give each a range of its own: podSubnet and serviceSubnet of kind, addresses of IPAddressPools",
       "vexxhost/magnum-cluster-api#70", RangesOverlap, false},
      {"WT741", "InstallationOfAnotherRelease", Level::kWarning, "the images are another release's than the rest",
       "mend hub, tag or revision", "istio/istio#33834, #53323", InstallationOfAnotherRelease, false},
      {"WT744", "AccessLogFormatUnread", Level::kWarning, "logs look otherwise than what reads them expects",
       "write a JSON object of fields, or accessLogEncoding: TEXT", "istio/istio#13642", AccessLogFormatUnread, false},
      {"WT748", "DrainsNotAtAll", Level::kWarning,
       "endpoints reach other proxies later than the signal reaches the pod: each rollout and scale-down fails "
       "requests",
       "leave it out (5s), or let it be as long as requests take", "", DrainsNotAtAll, false},
      {"WT722", "BudgetOfNobody", Level::kWarning, "a drain takes all of the pods that were meant at once",
       "mend the selector or the pods' labels", "bank-vaults/vault-operator#1064, bitnami/charts#34544",
       BudgetsOfNobody, false},
      {"WT715", "AutoMtlsOff", Level::kError, "between networks there is nothing but mesh TLS",
       "leave meshConfig.enableAutoMtls out, or write a DestinationRule of ISTIO_MUTUAL for *.local", "", AutoMtlsOff},
      {"WT578", "WasmOutOfReach", Level::kWarning,
       "a proxy whose module cannot be fetched refuses requests (failStrategy)",
       "create the Secret in the plugin's namespace; mount a file by sidecar.istio.io/userVolumeMount",
       "networking-incubator/coraza-kubernetes-operator#232", WasmOutOfReach},
      {"WT706", "MeshConfigUnreadable", Level::kError, "istiod goes on with what it had, and one that starts does not",
       "mend the field", "istio/istio#61563, #48991", MeshConfigUnreadable},
      {"WT707", "NamespaceNotDiscovered", Level::kError, "what istiod does not read, no proxy is told of",
       "label the namespace so that a selector of meshConfig.discoverySelectors fits", "istio/istio#34438, #33586",
       NamespacesNotDiscovered},
      {"WT412", "ClusterLocalHost", Level::kInfo, "a host that is clusterLocal is answered in the client's own cluster",
       "take it out of meshConfig.serviceSettings if other clusters shall answer, too", "istio/istio#52367",
       ClusterLocalHosts},
      {"IST0139", "InvalidWebhook", Level::kError, "pods that it selects are refused, or run without a sidecar",
       "install that revision, or delete the webhook configuration (`istioctl tag remove`)", "istio/istio#47151",
       WebhooksOfNobody},
  };
  return *rules;
}

}  // namespace wavetank::check
