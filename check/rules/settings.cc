// Settings of the mesh as a whole, webhooks, what pods must leave to the sidecar, and what drains of nodes have to ask.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/config/mesh/mesh_config.h"
#include "core/config/schema/protocol.h"
#include "core/kube/label_selector.h"
#include "core/xds/discovery_server.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::check {
namespace {

using nlohmann::json;

// ConfigMaps from which istiods read the mesh config: "istio", and "istio-REVISION".
template <class Fn>
void EachMeshConfig(const Mesh& mesh, Fn fn) {
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& map : mesh.List(*cluster, "ConfigMap", kSystemNamespace)) {
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
    const kube::ObjectRef map = mesh.Get(*primary, "ConfigMap", kSystemNamespace, "istio");
    for (const auto& [ns, pods] : outside) {
      const std::string message = fmt::format(
          "discoverySelectors leave out namespace {} of {}, in which {} pod{} with a proxy: their Services "
          "and endpoints are unknown to istiod",
          ns, cluster->name, pods, pods == 1 ? " runs" : "s run");
      if (map != nullptr) {
        findings.Add(*primary, *map, message);
      } else {
        findings.Add(primary->name, "", {}, message);
      }
    }
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
    const kube::ObjectRef map = mesh.Get(*cluster, "ConfigMap", kSystemNamespace, "istio");
    for (const pilot::ServiceRef& service : cluster->push->GetAllServices()) {
      if (IsClusterLocalByItself(*service) || !cluster->push->IsClusterLocal(*service)) continue;
      const auto* shards = cluster->istiod->discovery().endpoints().Find(service->hostname, service->attributes.ns);
      if (shards == nullptr || map == nullptr) continue;
      std::set<std::string> far;
      for (const auto& [shard, endpoints] : shards->shards) {
        if (shard.cluster.str() != cluster->name && !endpoints->empty()) far.insert(shard.cluster.str());
      }
      if (far.empty()) continue;
      findings.Add(*cluster, *map,
                   fmt::format("serviceSettings make {} clusterLocal: its endpoints in {} get no request from {}",
                               service->hostname, fmt::join(far, ", "), cluster->name));
    }
  }
}

// istiod: pkg/kube/conversion.go, ConvertProtocol: appProtocol before the name.
void AppProtocolAgainstName(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& object : mesh.List(*cluster, "Service")) {
      if (IsSystemNamespace(object->meta.ns)) continue;
      for (const kube::ServicePort& port : kube::ParseService(*object).ports) {
        if (port.app_protocol.empty()) continue;
        const pilot::Protocol named = pilot::ParseProtocol(std::string_view(port.name).substr(0, port.name.find('-')));
        const pilot::Protocol said = pilot::ParseProtocol(port.app_protocol);
        if (pilot::IsUnsupported(named) || pilot::IsUnsupported(said)) continue;
        if (pilot::IsHttp(named) == pilot::IsHttp(said) && pilot::IsTls(named) == pilot::IsTls(said)) continue;
        findings.Add(*cluster, *object,
                     fmt::format("port {} is named {} and has appProtocol {}: the mesh treats it as {}", port.port,
                                 port.name, port.app_protocol, pilot::ProtocolName(said)));
      }
    }
  }
}

// istiod: pkg/kube/conversion.go, ConvertProtocol: UDP is UDP, whatever the port is called.
void UdpCalledOtherwise(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& object : mesh.List(*cluster, "Service")) {
      for (const kube::ServicePort& port : kube::ParseService(*object).ports) {
        const pilot::Protocol named = pilot::ParseProtocol(std::string_view(port.name).substr(0, port.name.find('-')));
        if (port.protocol != "UDP" || (!pilot::IsHttp(named) && !pilot::IsTls(named))) continue;
        const auto& all = kube::ParseService(*object).ports;
        const bool both = std::any_of(all.begin(), all.end(),
                                      [&](const auto& p) { return p.port == port.port && p.protocol == "TCP"; });
        if (both) continue;  // HTTP/3 beside HTTP
        findings.Add(*cluster, *object,
                     fmt::format("port {} is named {} and is UDP: sidecars do not know it", port.port, port.name));
      }
    }
  }
}

// istiod: pkg/config/analysis/analyzers/webhook
void WebhooksOfNobody(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    for (const char* kind : {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}) {
      for (const kube::ObjectRef& object : mesh.List(*cluster, kind)) {
        const bool istio = object->meta.labels.contains("istio.io/rev") || object->meta.name.starts_with("istio");
        for (const json& webhook : Items(At(object->body, "webhooks"))) {
          const json& service = At(webhook, {"clientConfig", "service"});
          const std::string ns = Text(service, "namespace"), name = Text(service, "name");
          if (!istio || name.empty() || mesh.Get(*cluster, "Service", ns, name) != nullptr) continue;
          findings.Add(
              *cluster, *object,
              fmt::format("webhook {} asks Service {}/{}, which is not there", Text(webhook, "name"), ns, name));
          break;
        }
      }
    }
  }
}

// istiod: pkg/config/analysis/analyzers/deployment/pod.go
void UserOfTheProxy(const Mesh& mesh, Findings& findings) {
  constexpr int64_t kProxyUser = 1337;
  for (const auto& cluster : mesh.clusters()) {
    for (const char* kind : {"Deployment", "StatefulSet", "DaemonSet"}) {
      for (const kube::ObjectRef& object : mesh.List(*cluster, kind)) {
        const json& spec = At(object->body, {"spec", "template", "spec"});
        const bool all = Number(At(spec, "securityContext"), "runAsUser") == kProxyUser;
        for (const json& container : Items(At(spec, "containers"))) {
          const std::string name = Text(container, "name"), image = Text(container, "image");
          if (name == "istio-proxy" || name == "discovery" || image == "auto") continue;
          const int64_t own = Number(At(container, "securityContext"), "runAsUser", all ? kProxyUser : 0);
          if (own != kProxyUser) continue;
          findings.Add(*cluster, *object, fmt::format("container {} runs as user 1337, the sidecar's own", name));
        }
      }
    }
  }
}

// istio.io, application requirements: ports used by Istio. Of 1.18.2's sidecar.
constexpr int kSidecarPorts[] = {15000, 15001, 15004, 15006, 15008, 15020, 15021, 15053, 15090};

void PortsOfTheSidecar(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& object : mesh.List(*cluster, "Service")) {
      if (IsSystemNamespace(object->meta.ns)) continue;
      for (const kube::ServicePort& port : kube::ParseService(*object).ports) {
        const int target = port.target_port == 0 ? port.port : port.target_port;
        if (std::find(std::begin(kSidecarPorts), std::end(kSidecarPorts), target) == std::end(kSidecarPorts)) continue;
        const auto pods = Behind(mesh, *cluster, *object);
        const bool sidecar =
            std::any_of(pods.begin(), pods.end(), [](const auto* pod) { return pod->bootstrap() && !pod->router(); });
        if (sidecar)
          findings.Add(
              *cluster, *object,
              fmt::format("port {} leads to {}, which is the sidecar's own in the pods behind it", port.port, target));
      }
    }
  }
}

// istiod: pkg/config/analysis/analyzers/injection/injection-image-auto.go
void AutoWithoutInjection(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    std::set<std::string> told;
    for (const kube::ObjectRef& pod : mesh.List(*cluster, "Pod")) {
      for (const json& container : Items(At(pod->body, {"spec", "containers"}))) {
        if (Text(container, "image") != "auto") continue;
        const kube::WorkloadReference workload = kube::WorkloadOf(*pod, kube::ParsePod(*pod));
        kube::ObjectRef owner =
            workload.kind == "Pod" ? nullptr : mesh.Get(*cluster, workload.kind, pod->meta.ns, workload.name);
        if (owner == nullptr) owner = pod;
        if (!told.insert(NameOf(*owner)).second) continue;
        findings.Add(*cluster, *owner,
                     fmt::format("container {} has image auto, which injection replaces, and no webhook injected it",
                                 Text(container, "name")));
      }
    }
  }
}

// istiod: pkg/config/analysis/analyzers/gateway/gateway.go
void GatewayPortsNobodyOffers(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->push == nullptr) continue;
    for (const config::GatewayRef& gateway : cluster->configs.Gateways()) {
      std::set<int> offered;
      bool any = false;
      for (const sim::PodProcess* pod : mesh.ServedPods(*cluster)) {
        if (!pod->router() || !Selects(gateway->spec.selector, pod->pod()->meta.labels)) continue;
        for (const kube::ObjectRef& service : ServicesBefore(mesh, *pod)) {
          any = true;
          for (const kube::ServicePort& port : kube::ParseService(*service).ports) {
            offered.insert(port.port);
            offered.insert(port.target_port);
          }
        }
      }
      if (!any) continue;
      for (const config::Server& server : gateway->spec.servers) {
        const int port = static_cast<int>(server.port.number);
        // The port between networks is WT111's.
        if (offered.contains(port) || port == 15443) continue;
        findings.Add(
            *cluster, gateway->meta,
            fmt::format("port {} is of no Service before the pods that it selects: nothing comes there", port));
      }
    }
  }
}

std::string CountText(const json& value) { return value.is_string() ? TextOf(value) : value.dump(); }

// By what it says, not by pods that happen to be unwell: as many must stay as there are to be
// (kubernetes: pkg/controller/disruption, whose result its status holds).
void DrainsBlocked(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
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

}  // namespace

const std::vector<Rule>& SettingRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT706", "MeshConfigUnreadable", Level::kError, "istiod goes on with what it had, and one that starts does not",
       "mend the field", "", MeshConfigUnreadable},
      {"WT707", "NamespaceNotDiscovered", Level::kError, "what istiod does not read, no proxy is told of",
       "label the namespace so that a selector of meshConfig.discoverySelectors fits", "", NamespacesNotDiscovered},
      {"WT411", "AppProtocolAgainstName", Level::kWarning, "appProtocol counts, whatever the name says",
       "write both for one protocol", "", AppProtocolAgainstName},
      {"WT413", "UdpCalledOtherwise", Level::kWarning,
       "the mesh has no UDP: such a port has no listener and no cluster", "say protocol: TCP, or leave it out", "",
       UdpCalledOtherwise},
      {"WT412", "ClusterLocalHost", Level::kInfo, "a host that is clusterLocal is answered in the client's own cluster",
       "take it out of meshConfig.serviceSettings if other clusters shall answer, too", "", ClusterLocalHosts},
      {"WT605", "PortOfTheSidecar", Level::kError, "what comes there meets the sidecar and never the application",
       "let the application listen on another port", "", PortsOfTheSidecar},
      {"IST0146", "ImageAutoWithoutInjectionWarning", Level::kError, "no registry has an image of that name",
       "label the namespace or the pods so that a webhook injects them (istio-injection, istio.io/rev)", "",
       AutoWithoutInjection},
      {"IST0104", "GatewayPortNotOnWorkload", Level::kWarning, "a listener without a way to it",
       "add the port to the gateway's Service, or name one that it has", "", GatewayPortsNobodyOffers},
      {"IST0139", "InvalidWebhook", Level::kError, "pods that it selects are refused, or run without a sidecar",
       "install that revision, or delete the webhook configuration (`istioctl tag remove`)", "", WebhooksOfNobody},
      {"IST0144", "InvalidApplicationUID", Level::kWarning,
       "iptables lets the sidecar's user pass: what the application sends goes by the mesh", "run it as another user",
       "", UserOfTheProxy},
  };
  return *rules;
}

const std::vector<Rule>& DisruptionRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT705", "DrainsBlocked", Level::kWarning,
       "a node's upgrade stands still until somebody deletes the pods or the budget",
       "keep minAvailable below the replicas, or maxUnavailable at 1 or more", "istio/istio#12602", DrainsBlocked},
  };
  return *rules;
}

}  // namespace wavetank::check
