#include "check/rules/look.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "core/base/ip.h"
#include "core/base/json/json_read.h"
#include "core/base/json_access.h"
#include "core/inject/injection_config.h"
#include "core/inject/webhook_configuration.h"
#include "core/istiod/istiod.h"
#include "core/kube/secret.h"
#include "core/model/host_name.h"
#include "core/model/labels.h"
#include "core/push/host_match.h"
#include "core/registry/service_conversion.h"
#include "core/security/remote_secret.h"
#include "fakes/envoy/config/cluster_config.h"
#include "fakes/envoy/envoy.h"
#include "fakes/envoy/lb/endpoint_table.h"
#include "fmt/format.h"
#include "sim/signing/istio_csr_settings.h"
#include "sim/world_site.h"

namespace wavetank::check {

bool IsSystemNamespace(std::string_view ns) {
  return ns == kSystemNamespace || ns == "kube-system" || ns == "kube-public" || ns == "kube-node-lease";
}

bool IsSystemNamespace(const Mesh& mesh, std::string_view ns) {
  return IsSystemNamespace(ns) || mesh.HoldsControlPlane(ns);
}

kube::ObjectRef SystemNamespace(const Mesh& mesh, const MeshCluster& cluster) {
  return mesh.Get(cluster, "Namespace", "", cluster.system_namespace);
}

kube::ObjectRef MeshConfigMap(const Mesh& mesh, const MeshCluster& cluster) {
  // Of a cluster whose proxies another's istiod serves there is none, or one that no istiod reads.
  const std::string revision =
      cluster.istiod == nullptr || !cluster.primary ? std::string() : cluster.istiod->options().revision;
  const bool named = !revision.empty() && revision != "default";
  return mesh.Get(cluster, "ConfigMap", cluster.system_namespace, named ? "istio-" + revision : "istio");
}

bool Has(const MeshCluster& cluster, pilot::Change change) {
  return cluster.istiod != nullptr && cluster.istiod->options().profile.Has(change);
}

bool Selects(const kube::Labels& selector, const kube::Labels& labels) {
  for (const auto& [key, value] : selector) {
    const auto it = labels.find(key);
    if (it == labels.end() || it->second != value) return false;
  }
  return true;
}

bool HoldsIn(const MeshCluster& primary, std::string_view of, std::string_view ns) {
  return of == primary.root_namespace || of == ns;
}

bool HoldsFor(const MeshCluster& primary, std::string_view of, const kube::Labels& selector,
              const sim::PodProcess& pod) {
  const kube::ObjectMeta& meta = pod.pod()->meta;
  return HoldsIn(primary, of, meta.ns) && Selects(selector, meta.labels);
}

bool HoldsFor(const MeshCluster& primary, std::string_view of, const std::optional<kube::Labels>& selector,
              const sim::PodProcess& pod) {
  static const auto* const kAll = new kube::Labels;
  return HoldsFor(primary, of, selector ? *selector : *kAll, pod);
}

bool IsTold(const nlohmann::json& container, int64_t port) {
  const std::string digits = std::to_string(port);
  const auto says = [&](const std::string& text) {
    for (size_t at = text.find(digits); at != text.npos; at = text.find(digits, at + 1)) {
      const size_t after = at + digits.size();
      const bool begins = at == 0 || !absl::ascii_isdigit(static_cast<unsigned char>(text[at - 1]));
      const bool ends = after == text.size() || !absl::ascii_isdigit(static_cast<unsigned char>(text[after]));
      if (begins && ends) return true;
    }
    return false;
  };
  for (const char* words : {"command", "args"}) {
    for (const nlohmann::json& word : Items(At(container, words))) {
      if (says(TextOf(word))) return true;
    }
  }
  const nlohmann::json& variables = Items(At(container, "env"));
  return std::any_of(variables.begin(), variables.end(),
                     [&](const nlohmann::json& v) { return says(Text(v, "value")); });
}

const nlohmann::json& WorkloadSelectorOf(const kube::Object& object) {
  const nlohmann::json& spec = At(object.body, "spec");
  if (object.kind == "Gateway") return At(spec, "selector");
  if (object.kind == "Sidecar" || object.kind == "EnvoyFilter") return At(spec, {"workloadSelector", "labels"});
  if (object.kind == "DestinationRule") return At(spec, {"workloadSelector", "matchLabels"});
  return At(spec, {"selector", "matchLabels"});
}

bool IsRemoteSecret(const MeshCluster& cluster, const kube::Object& secret) {
  const auto label = secret.meta.labels.find(security::kMultiClusterLabel);
  return label != secret.meta.labels.end() && label->second == "true" && secret.meta.ns == cluster.system_namespace;
}

const MeshCluster* LeadsTo(const Mesh& mesh, const kube::KubeConfig& config) {
  for (const auto& cluster : mesh.clusters()) {
    if (config.server == sim::ApiServerUrl(cluster->name)) return cluster.get();
  }
  return nullptr;
}

std::vector<sim::UnreadCluster> UnreadBy(const Mesh& mesh, const MeshCluster& cluster) {
  const sim::World::Site* const site = mesh.world().FindSite(cluster.name);
  if (site == nullptr) return {};
  std::vector<sim::UnreadCluster> out = site->Unread();
  std::erase_if(out, [](const auto& unread) { return unread.why.find(" is forbidden: User ") != unread.why.npos; });
  return out;
}

bool DisablesMtls(const config::PeerAuthentication& policy) {
  constexpr auto kDisable = config::PeerAuthentication::Mode::kDisable;
  return policy.mtls == kDisable || std::any_of(policy.port_level_mtls.begin(), policy.port_level_mtls.end(),
                                                [](const auto& port) { return port.second == kDisable; });
}

void EachAuthorization(const Mesh& mesh,
                       const std::function<void(const MeshCluster& cluster, const kube::Object& policy,
                                                const std::vector<const sim::PodProcess*>& pods)>& fn) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary) continue;
    const std::vector<const sim::PodProcess*> served = mesh.ServedPods(*cluster);
    std::map<std::pair<std::string_view, std::string_view>, const config::TypedConfig<config::AuthorizationPolicy>*>
        read;
    for (const auto& each : cluster->configs.AuthorizationPolicies())
      read[{each->meta.ns, each->meta.name}] = each.get();
    for (const kube::ObjectRef& policy : mesh.List(*cluster, "AuthorizationPolicy.security.istio.io")) {
      const auto typed = read.find({policy->meta.ns, policy->meta.name});
      if (typed == read.end()) continue;  // istiod cannot read it
      std::vector<const sim::PodProcess*> pods;
      for (const sim::PodProcess* pod : served) {
        if (pod->bootstrap() && AttachesTo(*cluster, *typed->second, *pod)) pods.push_back(pod);
      }
      fn(*cluster, *policy, pods);
    }
  }
}

void EachRemoteServer(const Mesh& mesh,
                      const std::function<void(const MeshCluster& cluster, const kube::Object& secret,
                                               const std::string& id, const kube::KubeConfig& config)>& fn) {
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& secret : mesh.List(*cluster, "Secret", cluster->system_namespace)) {
      if (!IsRemoteSecret(*cluster, *secret)) continue;
      const auto data = kube::ReadSecretData(*secret);
      if (!data.ok()) continue;
      for (const auto& [id, text] : *data) {
        if (const auto config = kube::ParseKubeConfig(text, "kubeconfig"); config.ok())
          fn(*cluster, *secret, id, *config);
      }
    }
  }
}

bool AnyCovers(std::string_view cidrs, std::string_view address) {
  const auto ip = IpAddress::Parse(address);
  if (!ip.ok()) return false;
  for (const absl::string_view each : absl::StrSplit(absl::string_view(cidrs.data(), cidrs.size()), ',')) {
    const absl::string_view stripped = absl::StripAsciiWhitespace(each);
    const std::string_view part(stripped.data(), stripped.size());
    const auto prefix = IpPrefix::Parse(part);
    if (prefix.ok() && prefix->Contains(*ip)) return true;
    if (const auto alone = IpAddress::Parse(part); alone.ok() && *alone == *ip) return true;
  }
  return false;
}

std::string LabelText(const kube::Labels& labels) {
  std::string out;
  for (const auto& [key, value] : labels) out += fmt::format("{}{}={}", out.empty() ? "" : ", ", key, value);
  return out;
}

std::string FullHost(std::string_view host, std::string_view ns) {
  return pilot::ResolveShortnameToFqdn(host, ns, "cluster.local");
}

std::string NetworkOfGateway(const kube::Object& service) {
  const auto it = service.meta.labels.find(pilot::kNetworkLabel);
  return it == service.meta.labels.end() ? "" : it->second;
}

std::vector<kube::ObjectRef> NetworkGatewayServices(const Mesh& mesh, const MeshCluster& cluster) {
  std::vector<kube::ObjectRef> out;
  for (const kube::ObjectRef& service : mesh.List(cluster, "Service")) {
    if (!NetworkOfGateway(*service).empty()) out.push_back(service);
  }
  return out;
}

std::vector<const sim::PodProcess*> Behind(const Mesh& mesh, const MeshCluster& cluster, const kube::Object& service) {
  std::vector<const sim::PodProcess*> out;
  const kube::Service& typed = kube::ParseService(service);
  if (!typed.has_selector || typed.selector.empty()) return out;
  for (const sim::PodProcess* pod : mesh.Pods(cluster)) {
    if (pod->pod()->meta.ns == service.meta.ns && Selects(typed.selector, pod->pod()->meta.labels)) out.push_back(pod);
  }
  return out;
}

pilot::Protocol ProtocolOf(const kube::ServicePort& port) {
  return pilot::ConvertProtocol(port.port, port.name, port.protocol, port.app_protocol);
}

pilot::Protocol ProtocolNamed(const kube::ServicePort& port) {
  return pilot::ParseProtocol(std::string_view(port.name).substr(0, port.name.find('-')));
}

std::vector<kube::ObjectRef> ServicesBefore(const Mesh& mesh, const sim::PodProcess& pod) {
  std::vector<kube::ObjectRef> out;
  const kube::Object& object = *pod.pod();
  for (const kube::ObjectRef& service : mesh.List(*mesh.Find(pod.site().name), "Service", object.meta.ns)) {
    const kube::Service& typed = kube::ParseService(*service);
    if (typed.has_selector && !typed.selector.empty() && Selects(typed.selector, object.meta.labels))
      out.push_back(service);
  }
  return out;
}

kube::ObjectRef OwnerOf(const Mesh& mesh, const MeshCluster& cluster, const kube::ObjectRef& pod) {
  const kube::WorkloadReference workload = kube::WorkloadOf(*pod, kube::ParsePod(*pod));
  kube::ObjectRef owner;
  if (workload.kind != "Pod") owner = mesh.Get(cluster, workload.kind, pod->meta.ns, workload.name);
  return owner == nullptr ? pod : owner;
}

kube::ObjectRef OwnerOf(const Mesh& mesh, const MeshCluster& cluster, const sim::PodProcess& pod) {
  return OwnerOf(mesh, cluster, pod.pod());
}

kube::ObjectRef WorkloadFor(const Mesh& mesh, const MeshCluster& cluster, const std::string& ns,
                            const kube::Labels& selector) {
  for (const char* kind : kWorkloadKinds) {
    for (const kube::ObjectRef& object : mesh.List(cluster, kind, ns)) {
      if (Selects(selector, LabelsIn(At(object->body, {"spec", "template", "metadata", "labels"})))) return object;
    }
  }
  return nullptr;
}

void EachSource(const kube::Object& policy, const std::function<void(const nlohmann::json& source)>& fn) {
  for (const nlohmann::json& rule : Items(At(policy.body, {"spec", "rules"}))) {
    for (const nlohmann::json& from : Items(At(rule, "from"))) fn(At(from, "source"));
  }
}

kube::Labels LabelsIn(const nlohmann::json& object) {
  kube::Labels out;
  for (const auto& [key, value] : Members(object)) out[key] = TextOf(value);
  return out;
}

void EachWorkload(
    const Mesh& mesh,
    const std::function<void(const MeshCluster& cluster, const kube::Object& object, const nlohmann::json& pod)>& fn) {
  for (const auto& cluster : mesh.clusters()) {
    for (const char* kind : kWorkloadKinds) {
      for (const kube::ObjectRef& object : mesh.List(*cluster, kind))
        fn(*cluster, *object, At(object->body, {"spec", "template"}));
    }
  }
}

bool SomeTemplate(const Mesh& mesh, const MeshCluster& cluster, const std::string& ns,
                  const std::function<bool(const kube::Labels&)>& takes) {
  const auto any = [&](const char* kind, std::initializer_list<std::string_view> path) {
    const auto objects = mesh.List(cluster, kind, ns);
    return std::any_of(objects.begin(), objects.end(),
                       [&](const kube::ObjectRef& each) { return takes(LabelsIn(At(each->body, path))); });
  };
  for (const char* kind : kWorkloadKinds) {
    if (any(kind, {"spec", "template", "metadata", "labels"})) return true;
  }
  if (any("Job", {"spec", "template", "metadata", "labels"}) ||
      any("CronJob", {"spec", "jobTemplate", "spec", "template", "metadata", "labels"}))
    return true;
  // Of controllers that this world does not have, as Argo's Rollouts.
  return std::any_of(mesh.brought().begin(), mesh.brought().end(), [&](const BroughtObject& each) {
    const nlohmann::json& labels = At(each.object, {"spec", "template", "metadata", "labels"});
    return each.cluster == cluster.name && labels.is_object() &&
           Text(At(each.object, "metadata"), "namespace", "default") == ns && takes(LabelsIn(labels));
  });
}

bool SidecarHasFile(const sim::PodProcess& pod, const std::string& path) {
  const kube::Object& object = *pod.pod();
  if (object.meta.annotations.contains("sidecar.istio.io/userVolumeMount")) return true;
  std::set<std::string> brings_files;  // volumes
  for (const nlohmann::json& volume : Items(At(object.body, {"spec", "volumes"}))) {
    if (!At(volume, "emptyDir").is_object() && !At(volume, "downwardAPI").is_object())
      brings_files.insert(Text(volume, "name"));
  }
  for (const nlohmann::json& container : Items(At(object.body, {"spec", "containers"}))) {
    if (Text(container, "name") != "istio-proxy") continue;
    for (const nlohmann::json& mount : Items(At(container, "volumeMounts"))) {
      const std::string at = Text(mount, "mountPath");
      if (!brings_files.contains(Text(mount, "name")) || at.empty()) continue;
      if (path == at || path.starts_with(at.ends_with('/') ? at : at + "/")) return true;
    }
  }
  return false;
}

bool NamesMembersAtHome(const Mesh& mesh, const MeshCluster& home, const kube::Object& service,
                        const MeshCluster& there) {
  if (Text(At(service.body, "spec"), "clusterIP") != "None") return false;
  const auto governs = [&](const kube::ObjectRef& set) {
    return set->meta.ns == service.meta.ns && Text(At(set->body, "spec"), "serviceName") == service.meta.name;
  };
  const auto sets = mesh.List(home, "StatefulSet");
  if (std::none_of(sets.begin(), sets.end(), governs)) return false;
  std::set<const sim::PodProcess*> reached;
  for (const kube::ObjectRef& other : mesh.List(home, "Service")) {
    if (other->meta.ns != service.meta.ns || other->meta.name == service.meta.name) continue;
    if (mesh.Get(there, "Service", other->meta.ns, other->meta.name) == nullptr) continue;
    for (const sim::PodProcess* pod : Behind(mesh, home, *other)) reached.insert(pod);
  }
  const auto members = Behind(mesh, home, service);
  return !members.empty() &&
         std::all_of(members.begin(), members.end(), [&](const sim::PodProcess* pod) { return reached.contains(pod); });
}

bool IsApplication(const sim::PodProcess& pod) {
  return !pod.app().empty() && pod.app() != "istiod" && !IsSystemNamespace(pod.pod()->meta.ns) &&
         !sim::IstioCsrSettings::Of(pod.pod()->body);
}

namespace {

std::optional<Difference> DifferenceBelow(const nlohmann::json& a, const nlohmann::json& b, const Difference& here) {
  if (a == b) return std::nullopt;
  if (a.is_object() && b.is_object()) {
    const auto below = [&](const std::string& key) {
      return Difference{here.at / key, here.path.empty() ? key : fmt::format("{}.{}", here.path, key)};
    };
    for (const auto& [key, value] : a.items()) {
      if (auto found = DifferenceBelow(value, At(b, key), below(key))) return found;
    }
    for (const auto& [key, value] : b.items()) {
      if (!a.contains(key)) return below(key);
    }
  }
  const auto of_structures = [](const nlohmann::json& list) {
    return list.is_array() && !list.empty() && list.front().is_structured();
  };
  if (of_structures(a) && of_structures(b)) {
    for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      const Difference below{here.at / i, fmt::format("{}[{}]", here.path, i)};
      if (auto found = DifferenceBelow(i < a.size() ? a[i] : Null(), i < b.size() ? b[i] : Null(), below)) return found;
    }
  }
  return here;
}

}  // namespace

std::optional<Difference> FirstDifference(const nlohmann::json& a, const nlohmann::json& b) {
  return DifferenceBelow(a, b, Difference());
}

const nlohmann::json& AtPointer(const nlohmann::json& in, const nlohmann::json::json_pointer& at) {
  return in.contains(at) ? in.at(at) : Null();
}

bool IsMeshPrimary(const MeshCluster& cluster) {
  return cluster.primary && cluster.istiod != nullptr && cluster.push != nullptr;
}

bool HasClients(const Mesh& mesh, const MeshCluster& primary) {
  const auto pods = mesh.ServedPods(primary);
  return std::any_of(pods.begin(), pods.end(), [](const auto* pod) { return pod->bootstrap() && !pod->router(); });
}

bool HasSeveralNetworks(const Mesh& mesh) {
  std::set<std::string> networks;
  for (const auto& cluster : mesh.clusters()) networks.insert(cluster->network);
  return networks.size() > 1;
}

pilot::ServiceRef ServiceOf(const MeshCluster& cluster, std::string_view host) {
  if (cluster.push == nullptr) return nullptr;
  for (const pilot::ServiceRef& service : cluster.push->GetAllServices()) {
    if (service->hostname == host) return service;
  }
  return nullptr;
}

bool KnowsHost(const MeshCluster& cluster, std::string_view host) {
  if (cluster.push == nullptr) return true;
  for (const pilot::ServiceRef& service : cluster.push->GetAllServices()) {
    if (service->hostname == host || pilot::HostSubsetOf(service->hostname, host) ||
        pilot::HostSubsetOf(host, service->hostname)) {
      return true;
    }
  }
  return false;
}

namespace {

// A gateway between networks routes by nothing but the SNI; others may lead applications out, or others in.
bool RoutesByHosts(const MeshCluster& cluster, const sim::PodProcess& pod) {
  if (!pod.router()) return true;
  for (const config::GatewayRef& gateway : cluster.configs.Gateways()) {
    if (!Selects(gateway->spec.selector, pod.pod()->meta.labels)) continue;
    for (const config::Server& server : gateway->spec.servers) {
      if (!server.tls || server.tls->mode != config::ServerTlsSettings::Mode::kAutoPassthrough) return true;
    }
  }
  return false;
}

}  // namespace

bool SeenBySomeone(const Mesh& mesh, const MeshCluster& cluster, const std::vector<std::string>& export_to,
                   const std::string& ns) {
  if (export_to.empty() || std::find(export_to.begin(), export_to.end(), "*") != export_to.end()) return true;
  const auto pods = mesh.ServedPods(cluster);
  return std::any_of(pods.begin(), pods.end(), [&](const auto* pod) {
    if (!pod->bootstrap() || !RoutesByHosts(cluster, *pod)) return false;
    const std::string& of = pod->pod()->meta.ns;
    return std::any_of(export_to.begin(), export_to.end(),
                       [&](const std::string& to) { return to == of || (to == "." && of == ns); });
  });
}

namespace {

// The injector was asked, and says no.
NotInjectedBecause LeftOutByInjector(const MeshCluster& cluster, const Mesh& mesh, const kube::Object& pod) {
  if (At(pod.body, {"spec", "hostNetwork"}) == true)
    return {"the webhook selects them, and istiod leaves pods with hostNetwork out: their iptables would be the node's",
            "take hostNetwork away"};
  constexpr const char* kInject = "sidecar.istio.io/inject";
  std::string wish;
  const char* where = "annotation";
  if (const auto it = pod.meta.annotations.find(kInject); it != pod.meta.annotations.end()) wish = it->second;
  if (const auto it = pod.meta.labels.find(kInject); it != pod.meta.labels.end()) wish = it->second, where = "label";
  const MeshCluster* primary = mesh.Find(cluster.control_plane);
  const kube::ObjectRef map =
      primary == nullptr || primary->istiod == nullptr ? nullptr : primary->istiod->injector_config();
  if (!wish.empty()) {
    nlohmann::json asked = {{"metadata", {{"namespace", pod.meta.ns}, {"labels", {{kInject, wish}}}}}};
    if (!pilot::InjectionRequired({}, asked))
      return {fmt::format("the webhook selects them, and their {} {} is '{}'", where, kInject, wish),
              fmt::format("set it to \"true\", or leave the {} out", where)};
    return {};
  }
  if (map == nullptr) return {};
  const auto config = pilot::InjectionConfig::FromConfigMap(*map, mesh.world().profile());
  if (!config.ok()) return {};
  for (const kube::LabelSelector& never : config->never_inject) {
    if (never.empty() || !never.Matches(pod.meta.labels)) continue;
    return {fmt::format("the webhook selects them, and neverInjectSelector of ConfigMap {}/{} takes them out",
                        map->meta.ns, map->meta.name),
            "mend neverInjectSelector, or label the pods sidecar.istio.io/inject=true"};
  }
  if (config->policy == pilot::InjectionConfig::Policy::kEnabled) return {};
  return {fmt::format("the webhook selects them, and the policy of ConfigMap {}/{} is {}", map->meta.ns, map->meta.name,
                      config->policy == pilot::InjectionConfig::Policy::kDisabled
                          ? "disabled: it injects what asks for it alone"
                          : "neither enabled nor disabled: it injects nobody"),
          "set policy: enabled (Helm: global.proxy.autoInject), or label the pods sidecar.istio.io/inject=true"};
}

}  // namespace

// istiod: manifests/charts/istio-control/istio-discovery/templates/mutatingwebhook.yaml: a pod is selected by its own
// label, or by its namespace's.
NotInjectedBecause WhyNotInjected(const Mesh& mesh, const MeshCluster& cluster, const kube::Object& pod) {
  const auto configurations = mesh.List(cluster, "MutatingWebhookConfiguration");
  if (configurations.empty())
    return {"there is no MutatingWebhookConfiguration in " + cluster.name, "install istiod's"};
  const kube::ObjectRef ns = mesh.Get(cluster, "Namespace", "", pod.meta.ns);
  kube::Labels of_ns = ns == nullptr ? kube::Labels() : ns->meta.labels;
  of_ns.emplace("kubernetes.io/metadata.name", pod.meta.ns);
  for (const kube::ObjectRef& configuration : configurations) {
    const auto target = pilot::SelectWebhook(configuration->body, of_ns, pod.meta.labels);
    if (!target.ok() || !target->has_value()) continue;
    const pilot::WebhookTarget& to = **target;
    if (to.url.empty() && !cluster.recorded &&
        mesh.Get(cluster, "Service", to.service_namespace, to.service_name) == nullptr)
      return {fmt::format("webhook {} of {} selects them and asks Service {}/{}, which is not there{}", to.webhook,
                          configuration->meta.name, to.service_namespace, to.service_name,
                          to.fail_if_absent ? "" : "; its failurePolicy Ignore lets pods pass all the same"),
              "name istiod's Service in the webhook configuration"};
    return LeftOutByInjector(cluster, mesh, pod);
  }
  for (const kube::ObjectRef& configuration : configurations) {
    const auto target = pilot::SelectWebhook(configuration->body, of_ns, pod.meta.labels, false);
    if (!target.ok() || !target->has_value()) continue;
    return {fmt::format("webhook {} of {} selects them, and its rules do not take the creation of pods",
                        (*target)->webhook, configuration->meta.name),
            "write its rules as istiod's chart does (operations CREATE, apiGroups \"\", apiVersions v1, resources "
            "pods)"};
  }
  const auto asked = pod.meta.labels.find("sidecar.istio.io/inject");
  const auto all = of_ns.find("istio-injection");
  if (all != of_ns.end() && all->second == "disabled")
    return {fmt::format("namespace {} is labelled istio-injection=disabled", pod.meta.ns),
            "label the namespace istio-injection=enabled, or move the pods"};
  if (asked != pod.meta.labels.end() && asked->second != "true")
    return {fmt::format("their label sidecar.istio.io/inject is '{}'", asked->second),
            "label the pods' template \"true\""};
  const auto revision = pod.meta.labels.find("istio.io/rev");
  if (revision != pod.meta.labels.end())
    return {fmt::format("no webhook is for their label istio.io/rev={}", revision->second),
            "install that revision, or take the label away"};
  if (asked == pod.meta.labels.end() && !of_ns.contains("istio-injection") && !of_ns.contains("istio.io/rev"))
    return {"they have no label sidecar.istio.io/inject=true", {}};
  std::string selects;
  for (const kube::ObjectRef& configuration : configurations) {
    for (const auto& webhook : Items(At(configuration->body, "webhooks"))) {
      for (const char* selector : {"namespaceSelector", "objectSelector"}) {
        const auto& labels = At(webhook, {selector, "matchLabels"});
        if (!labels.is_object() || labels.empty()) continue;
        const std::string text = LabelText(LabelsIn(labels));
        if (selects.find(text) == std::string::npos) selects += (selects.empty() ? "" : "; ") + text;
      }
    }
  }
  return {selects.empty() ? "no webhook selects them" : "no webhook selects them: the selectors say " + selects,
          "install the webhook configuration of istiod's chart again, or give namespace or pods the labels that its "
          "selectors ask for"};
}

bool AsksByHttp1(const sim::PodProcess& pod, std::string_view cluster) {
  const auto tables = pod.envoy()->EndpointTables();
  return std::any_of(tables.begin(), tables.end(), [&](const envoysim::EndpointsInUse& each) {
    return each.cluster == cluster && each.config != nullptr &&
           (each.config->protocol == envoysim::UpstreamProtocol::kHttp1 ||
            each.config->protocol == envoysim::UpstreamProtocol::kDownstream);
  });
}

std::vector<NetworkObstacles::Kept> NetworkObstacles::KeptFrom(const sim::PodProcess& pod) {
  std::vector<Kept> out;
  Kind& kind = kinds_[network_.KindOf(pod.workload())];
  const sim::Workload& workload = network_.at(pod.workload());
  const auto look = [&](const SocketAddress& address, std::string_view cluster) {
    const auto [known, fresh] = kind.by_address.try_emplace(address);
    if (fresh) known->second = network_.WhyNot({pod.workload(), envoysim::Origin::Who::kProxy, {}}, address, heed_);
    if (!known->second.why.empty() && !known->second.nobody) out.push_back({address, &known->second, cluster});
  };
  for (const envoysim::EndpointsInUse& each : pod.envoy()->EndpointTables()) {
    if (!each.cluster.starts_with("outbound|")) continue;
    bool own = false;
    const size_t before = out.size();
    const auto look_unless_own = [&](const SocketAddress& address) {
      if (sim::IsOwnAddress(workload, address.ip)) {
        own = true;
      } else {
        look(address, each.cluster);
      }
    };
    for (const SocketAddress& address : each.dialled) look_unless_own(address);
    if (each.table == nullptr || kind.free.contains(each.table)) continue;
    for (const envoysim::LbEndpoint& endpoint : each.table->endpoints) look_unless_own(endpoint.address);
    if (!own && out.size() == before) kind.free.insert(each.table);
  }
  std::stable_sort(out.begin(), out.end(), [](const Kept& a, const Kept& b) { return a.address < b.address; });
  out.erase(std::unique(out.begin(), out.end(), [](const Kept& a, const Kept& b) { return a.address == b.address; }),
            out.end());
  return out;
}

}  // namespace wavetank::check
