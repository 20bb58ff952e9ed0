// Sidecars: who gets one, and where clusters differ in that.
#include <map>
#include <set>

#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/inject/proxy_bootstrap.h"
#include "core/inject/webhook_configuration.h"
#include "core/kube/types.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

using nlohmann::json;

bool Injects(const kube::Object& ns) {
  const auto label = ns.meta.labels.find("istio-injection");
  return (label != ns.meta.labels.end() && label->second == "enabled") || ns.meta.labels.contains("istio.io/rev");
}

// The revision that a namespace asks for, and no webhook of its cluster's serves; empty: all is well.
std::string RevisionOfNobody(const Mesh& mesh, const MeshCluster& cluster, const kube::Object& ns) {
  const auto revision = ns.meta.labels.find("istio.io/rev");
  const auto enabled = ns.meta.labels.find("istio-injection");
  if (revision == ns.meta.labels.end() || (enabled != ns.meta.labels.end() && enabled->second == "enabled")) return {};
  kube::Labels labels = ns.meta.labels;
  labels.emplace("kubernetes.io/metadata.name", ns.meta.name);
  const std::vector<kube::ObjectRef> configurations = mesh.List(cluster, "MutatingWebhookConfiguration");
  if (cluster.recorded && configurations.empty()) return {};
  for (const kube::ObjectRef& configuration : configurations) {
    const auto target = pilot::SelectWebhook(configuration->body, labels, {}, false);
    if (!target.ok() || target->has_value()) return {};
  }
  return revision->second;
}

bool GetsSidecars(const Mesh& mesh, const MeshCluster& cluster, const kube::Object& ns) {
  return Injects(ns) && RevisionOfNobody(mesh, cluster, ns).empty();
}

void NotInjected(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    std::map<std::string, int> outside;
    for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
      if (IsApplication(*pod) && !pilot::HasProxy(pod->pod()->body)) ++outside[pod->pod()->meta.ns];
    }
    for (const auto& [name, pods] : outside) {
      const kube::ObjectRef ns = mesh.Get(*cluster, "Namespace", "", name);
      if (ns == nullptr || Injects(*ns) || ns->meta.labels.contains("istio-injection")) continue;
      // istio: pkg/config/analysis/analyzers/injection/injection.go: ambient mode needs no sidecars.
      const auto mode = ns->meta.labels.find("istio.io/dataplane-mode");
      if (mode != ns->meta.labels.end() && mode->second == "ambient") continue;
      findings.Add(*cluster, *ns,
                   fmt::format("{} pods run without a sidecar; label it istio-injection=enabled, or =disabled", pods));
    }
  }
}

// Some pod with a sidecar, of any cluster, is behind a Service that selects this one or is a namesake of such.
bool SharesServiceWithSidecars(const Mesh& mesh, const sim::PodProcess& pod) {
  for (const kube::ObjectRef& service : ServicesBefore(mesh, pod)) {
    for (const auto& cluster : mesh.clusters()) {
      const kube::ObjectRef namesake = mesh.Get(*cluster, "Service", service->meta.ns, service->meta.name);
      if (namesake == nullptr) continue;
      for (const sim::PodProcess* other : Behind(mesh, *cluster, *namesake)) {
        if (other->bootstrap()) return true;
      }
    }
  }
  return false;
}

void PodWithoutProxy(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    std::set<std::string> told;  // a workload's pods are alike
    for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
      // One that has a proxy and does not start is WT700's.
      if (!IsApplication(*pod) || pod->bootstrap() || pilot::HasProxy(pod->pod()->body)) continue;
      const kube::ObjectRef ns = mesh.Get(*cluster, "Namespace", "", pod->pod()->meta.ns);
      if (ns == nullptr || !Injects(*ns)) continue;
      const auto asked = pod->pod()->meta.labels.find("sidecar.istio.io/inject");
      if (asked != pod->pod()->meta.labels.end() && asked->second == "false") continue;
      if (const std::string revision = RevisionOfNobody(mesh, *cluster, *ns); !revision.empty()) {
        if (!told.insert(NameOf(*ns)).second) continue;
        findings.Add(*cluster, *ns,
                     fmt::format("asks for revision '{}', whose injector {} does not have: its pods run without a "
                                 "sidecar",
                                 revision, cluster->name));
        findings.Explain("no webhook selects pods of that revision",
                         fmt::format("install revision '{}' or a tag of that name, or give the namespace the label of "
                                     "what is installed (istio-injection=enabled for the default)",
                                     revision));
        continue;
      }
      const kube::ObjectRef owner = OwnerOf(mesh, *cluster, *pod);
      // As istioctl has it (istiod: pkg/config/analysis/analyzers/injection/injection.go) that is no fault by itself,
      // but where other pods of their Service have one.
      const bool host = At(pod->pod()->body, {"spec", "hostNetwork"}) == true;
      if (host && !SharesServiceWithSidecars(mesh, *pod)) continue;
      if (!told.insert(NameOf(*owner)).second) continue;
      findings.Add(*cluster, *owner, "its pods run without a sidecar in a namespace where pods get one");
      if (host) {
        findings.Explain("istiod leaves pods with hostNetwork out: their iptables would be the node's",
                         "take hostNetwork away, or label the pods sidecar.istio.io/inject=false if that is meant");
      } else if (auto [why, remedy] = WhyNotInjected(mesh, *cluster, *pod->pod()); !why.empty()) {
        findings.Explain(std::move(why), remedy.empty() ? std::string() : remedy + ", and create the pods anew");
      }
    }
  }
}

void TwoLabels(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& ns : mesh.List(*cluster, "Namespace")) {
      if (ns->meta.labels.contains("istio-injection") && ns->meta.labels.contains("istio.io/rev"))
        findings.Add(*cluster, *ns, "has the labels istio-injection and istio.io/rev: the first counts");
    }
  }
}

void Uneven(const Mesh& mesh, Findings& findings) {
  std::map<std::string, std::map<bool, const MeshCluster*>> by_namespace;
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& ns : mesh.List(*cluster, "Namespace")) {
      bool pods = false;
      for (const sim::PodProcess* pod : mesh.Pods(*cluster)) pods = pods || pod->pod()->meta.ns == ns->meta.name;
      if (!IsSystemNamespace(mesh, ns->meta.name) && pods)
        by_namespace[ns->meta.name].emplace(GetsSidecars(mesh, *cluster, *ns), cluster.get());
    }
  }
  for (const auto& [name, sides] : by_namespace) {
    if (sides.size() < 2) continue;
    const MeshCluster& without = *sides.at(false);
    findings.Add(
        without, *mesh.Get(without, "Namespace", "", name),
        fmt::format(
            "pods get sidecars in {} and not in {}: those without are not reached through gateways, and reach no "
            "other network",
            sides.at(true)->name, without.name));
  }
}

// Pods of one application that opt out on one side.
void OptedOutUnevenly(const Mesh& mesh, Findings& findings) {
  struct Side {
    const MeshCluster* cluster;
    const sim::PodProcess* without = nullptr;
    bool with = false;
  };
  std::map<std::pair<std::string, std::string>, std::map<std::string, Side>> apps;
  for (const auto& cluster : mesh.clusters()) {
    for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
      if (!IsApplication(*pod)) continue;
      Side& side =
          apps[{pod->pod()->meta.ns, pod->app()}].try_emplace(cluster->name, Side{cluster.get()}).first->second;
      const auto asked = pod->pod()->meta.labels.find("sidecar.istio.io/inject");
      side.with = side.with || pod->bootstrap().has_value();
      if (!pod->bootstrap() && asked != pod->pod()->meta.labels.end() && asked->second == "false") side.without = pod;
    }
  }
  for (const auto& [app, sides] : apps) {
    for (const auto& [name, side] : sides) {
      const auto other = std::find_if(sides.begin(), sides.end(),
                                      [&, own = &name](const auto& s) { return s.first != *own && s.second.with; });
      if (side.without == nullptr || other == sides.end()) continue;
      findings.Add(*side.cluster, *OwnerOf(mesh, *side.cluster, *side.without),
                   fmt::format("pods of {} opt out of sidecars here, and have them in {}: those without are not "
                               "reached through gateways",
                               app.second, other->first));
    }
  }
}

// Target ports of the Services of the pod's cluster that select it.
std::set<int> ServedPorts(const Mesh& mesh, const sim::PodProcess& pod) {
  std::set<int> out;
  for (const kube::ObjectRef& object : ServicesBefore(mesh, pod)) {
    for (const kube::ServicePort& port : kube::ParseService(*object).ports) {
      if (const int target = kube::TargetPortOf(port, kube::ParsePod(*pod.pod())); target != 0) out.insert(target);
    }
  }
  return out;
}

// istio.io, application requirements: ports used by Istio. Of 1.18.2's sidecar.
constexpr int kSidecarPorts[] = {15000, 15001, 15004, 15006, 15008, 15020, 15021, 15053, 15090};

bool IsSidecarPort(int port) {
  return std::find(std::begin(kSidecarPorts), std::end(kSidecarPorts), port) != std::end(kSidecarPorts);
}

// What iptables leave to the application, mesh TLS does not reach.
void PortsBypassed(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    std::set<std::string> told;
    std::map<int, std::string> ports;  // of Services, with one of them
    for (const kube::ObjectRef& object : mesh.List(*cluster, "Service")) {
      if (IsSystemNamespace(mesh, object->meta.ns) || object->meta.ns == "default") continue;
      for (const kube::ServicePort& port : kube::ParseService(*object).ports)
        ports.emplace(port.port, object->meta.ns + "/" + object->meta.name);
    }
    for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
      if (!IsApplication(*pod) || !pod->bootstrap()) continue;
      const kube::ObjectRef owner = OwnerOf(mesh, *cluster, *pod);
      if (!told.insert(NameOf(*owner)).second) continue;
      if (!pod->bootstrap()->interception) continue;  // WT608
      const pilot::Interception& taken = *pod->bootstrap()->interception;
      // Of a pod that says nothing itself, the injector's values do.
      const auto tell = [&](const char* name, const char* value, const std::string& message) {
        const std::string annotation = std::string("traffic.sidecar.istio.io/") + name;
        if (pod->pod()->meta.annotations.contains(annotation) ||
            (owner->kind != "Pod" &&
             At(owner->body, {"spec", "template", "metadata", "annotations"}).contains(annotation))) {
          findings.Add(*cluster, *owner, fmt::format("{} {}", name, message));
          return;
        }
        findings.Add(*cluster, *owner, fmt::format("global.proxy.{} of the injector's values {}", value, message));
        findings.Explain(
            {}, fmt::format("mend values.global.proxy.{} of the installation, which all its sidecars have", value));
      };
      const std::set<int> served = ServedPorts(mesh, *pod);
      for (const int port : served) {
        const auto number = static_cast<uint16_t>(port);
        if (taken.TakesInbound({IpAddress::V4(0), number}) || IsSidecarPort(port)) continue;
        tell(
            taken.all_inbound_ports ? "excludeInboundPorts" : "includeInboundPorts",
            taken.all_inbound_ports ? "excludeInboundPorts" : "includeInboundPorts",
            fmt::format("{} {}, a Service's port: its sidecar takes no mesh TLS there, and what comes through gateways "
                        "fails",
                        taken.all_inbound_ports ? "has" : "lacks", port));
      }
      for (const auto& [port, service] : ports) {
        if (!taken.excluded_outbound_ports.contains(static_cast<uint16_t>(port))) continue;
        tell("excludeOutboundPorts", "excludeOutboundPorts",
             fmt::format(
                 "has {}, the port of Service {}: requests there pass the sidecar by, without mesh TLS, and reach "
                 "no other cluster",
                 port, service));
      }
      for (const kube::ObjectRef& object : mesh.List(*cluster, "Service")) {
        if (IsSystemNamespace(mesh, object->meta.ns) || object->meta.ns == "default") continue;
        const absl::StatusOr<IpAddress> ip = IpAddress::Parse(kube::ParseService(*object).cluster_ip);
        if (!ip.ok() || !ip->is_v4()) continue;
        const auto holds = [&](const IpPrefix& prefix) { return prefix.Contains(*ip); };
        const auto& out = taken.excluded_outbound_ips;
        const bool excluded = std::any_of(out.begin(), out.end(), holds);
        const auto& in = taken.outbound_ips;
        const bool included = taken.all_outbound_ips || std::any_of(in.begin(), in.end(), holds);
        if (excluded) {
          tell("excludeOutboundIPRanges", "excludeIPRanges",
               fmt::format("covers {}, the address of Service {}/{}: requests there pass the sidecar by",
                           ip->ToString(), object->meta.ns, object->meta.name));
          break;
        }
        if (included) continue;
        tell(
            "includeOutboundIPRanges", "includeIPRanges",
            fmt::format("leaves out {}, the address of Service {}/{}: requests there pass the sidecar by, without mesh "
                        "TLS, and reach no other cluster",
                        ip->ToString(), object->meta.ns, object->meta.name));
        break;
      }
    }
  }
}

// istiod: pkg/config/analysis/analyzers/deployment/pod.go
void UserOfTheProxy(const Mesh& mesh, Findings& findings) {
  constexpr int64_t kProxyUser = 1337;
  EachWorkload(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const json& pod) {
    const json& spec = At(pod, "spec");
    const bool all = Number(At(spec, "securityContext"), "runAsUser") == kProxyUser;
    for (const json& container : Items(At(spec, "containers"))) {
      const std::string name = Text(container, "name"), image = Text(container, "image");
      if (name == "istio-proxy" || name == "discovery" || image == "auto") continue;
      const int64_t own = Number(At(container, "securityContext"), "runAsUser", all ? kProxyUser : 0);
      if (own != kProxyUser) continue;
      findings.Add(cluster, object, fmt::format("container {} runs as user 1337, the sidecar's own", name));
    }
  });
}

void PortsOfTheSidecar(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& object : mesh.List(*cluster, "Service")) {
      if (IsSystemNamespace(mesh, object->meta.ns)) continue;
      for (const kube::ServicePort& port : kube::ParseService(*object).ports) {
        for (const sim::PodProcess* pod : Behind(mesh, *cluster, *object)) {
          const int target = kube::TargetPortOf(port, kube::ParsePod(*pod->pod()));
          if (!IsSidecarPort(target) || !pod->bootstrap() || pod->router()) continue;
          findings.Add(
              *cluster, *object,
              fmt::format("port {} leads to {}, which is the sidecar's own in the pods behind it", port.port, target));
          break;
        }
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

// Webhooks of 1.18.2 select namespaces by `enabled`; the default one by anything but `disabled` where
// enableNamespacesByDefault is on.
void InjectionLabelUnknown(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& ns : mesh.List(*cluster, "Namespace")) {
      const auto label = ns->meta.labels.find("istio-injection");
      if (label == ns->meta.labels.end() || label->second == "enabled" || label->second == "disabled") continue;
      findings.Add(
          *cluster, *ns,
          fmt::format("istio-injection={} is neither enabled nor disabled: no webhook selects it", label->second));
    }
  }
}

// istio.io, ambient: pods of such namespaces get no sidecar, and their traffic goes by the node's ztunnel where
// istio-cni leads it there.
void AmbientOfNobody(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (cluster->recorded) continue;
    const auto agents = mesh.List(*cluster, "DaemonSet");
    if (std::any_of(agents.begin(), agents.end(), [](const auto& each) { return each->meta.name == "ztunnel"; }))
      continue;
    for (const kube::ObjectRef& ns : mesh.List(*cluster, "Namespace")) {
      const auto mode = ns->meta.labels.find("istio.io/dataplane-mode");
      if (mode == ns->meta.labels.end() || mode->second != "ambient") continue;
      findings.Add(*cluster, *ns,
                   fmt::format("istio.io/dataplane-mode=ambient, and no ztunnel runs in {}: its pods are in no mesh",
                               cluster->name));
    }
  }
}

// A Job ends when all its containers have, and a sidecar does not.
void JobNeverEnds(const Mesh& mesh, Findings& findings) {
  for (const BroughtObject& b : mesh.brought()) {
    const std::string kind = Text(b.object, "kind");
    if (kind != "Job" && kind != "CronJob") continue;
    const MeshCluster* const cluster = mesh.Find(b.cluster);
    const json& meta = At(b.object, "metadata");
    const kube::ObjectRef ns =
        cluster == nullptr ? nullptr : mesh.Get(*cluster, "Namespace", "", Text(meta, "namespace", "default"));
    if (ns == nullptr) continue;
    const json& spec = At(b.object, "spec");
    const json& pod = kind == "Job" ? At(spec, "template") : At(spec, {"jobTemplate", "spec", "template"});
    std::string asked = Text(At(pod, {"metadata", "labels"}), "sidecar.istio.io/inject");
    if (asked.empty()) asked = Text(At(pod, {"metadata", "annotations"}), "sidecar.istio.io/inject");
    if (asked.empty() ? !GetsSidecars(mesh, *cluster, *ns) : asked != "true") continue;
    const auto pods = mesh.Pods(*cluster);
    const bool native = std::any_of(pods.begin(), pods.end(), [](const auto* each) {
      for (const json& container : Items(At(each->pod()->body, {"spec", "initContainers"}))) {
        if (Text(container, "name") == "istio-proxy") return true;
      }
      return false;
    });
    if (native) continue;  // Kubernetes ends such a sidecar after the others
    if (JsonText(At(pod, "spec")).find("/quitquitquit") != std::string::npos) continue;  // the work ends it
    findings.Add(b.cluster, NameOf(b), Place{b.file, b.line},
                 "its pods get a sidecar, which runs on when the work is done: the Job never completes");
  }
}

}  // namespace

const std::vector<Rule>& InjectionRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"IST0102", "NamespaceNotInjected", Level::kInfo, "pods without a sidecar are outside the mesh",
       "label the namespace", "istio/istio#26600", NotInjected},
      {"IST0103", "PodMissingProxy", Level::kWarning, "the pod is outside the mesh", "create the pod anew",
       "rancher/rancher#20712", PodWithoutProxy},
      {"IST0123", "NamespaceMultipleInjectionLabels", Level::kWarning,
       "a revision's istiod may not be the one that was meant", "leave one label", "istio/istio.io#14597", TwoLabels},
      {"WT601", "InjectionUneven", Level::kError, "a namespace is one and the same in all clusters of a mesh",
       "label the namespace istio-injection=enabled in every cluster", "istio/istio#31240", Uneven},
      {"WT602", "SidecarOptOutUneven", Level::kError, "a gateway's clients speak mesh TLS to whatever is behind it",
       "give the pods sidecars in every cluster or in none", "istio/istio#31240", OptedOutUnevenly},
      {"WT603", "PortsBypassSidecar", Level::kWarning, "iptables lead only the rest to the sidecar",
       "take the port or range out of the annotation", "istio/istio#30311", PortsBypassed},
      {"WT605", "PortOfTheSidecar", Level::kError, "what comes there meets the sidecar and never the application",
       "let the application listen on another port", "imroc/learning-istio#66", PortsOfTheSidecar},
      {"IST0146", "ImageAutoWithoutInjectionWarning", Level::kError, "no registry has an image of that name",
       "label the namespace or the pods so that a webhook injects them (istio-injection, istio.io/rev)",
       "istio/istio#37482, #33512", AutoWithoutInjection},
      {"IST0144", "InvalidApplicationUID", Level::kWarning,
       "iptables lets the sidecar's user pass: what the application sends goes by the mesh", "run it as another user",
       "istio/istio#27202", UserOfTheProxy},
      {"WT606", "InjectionLabelUnknown", Level::kWarning, "its pods run without a sidecar",
       "write istio-injection=enabled, or istio.io/rev of a revision", "istio/istio#33618", InjectionLabelUnknown},
      {"WT759", "AmbientOfNobody", Level::kWarning, "without a sidecar or a ztunnel there is neither mTLS nor a policy",
       "install with profile ambient (istio-cni and ztunnel), or label the namespace for sidecars", "istio/istio#42779",
       AmbientOfNobody},
      {"WT607", "JobNeverEnds", Level::kWarning, "a Job waits for all containers of its pod",
       "label its pods sidecar.istio.io/inject=false, or let the work end with a POST to "
       "http://localhost:15020/quitquitquit",
       "istio/istio#6324", JobNeverEnds, false},
  };
  return *rules;
}

}  // namespace wavetank::check
