// Sidecars: who gets one, and where clusters differ in that.
#include <map>
#include <set>

#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

bool Injects(const kube::Object& ns) {
  const auto label = ns.meta.labels.find("istio-injection");
  return (label != ns.meta.labels.end() && label->second == "enabled") || ns.meta.labels.contains("istio.io/rev");
}

bool IsApplication(const sim::PodProcess& pod) {
  return !pod.app().empty() && pod.app() != "istiod" && !IsSystemNamespace(pod.pod()->meta.ns);
}

void NotInjected(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    std::map<std::string, int> outside;
    for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
      if (IsApplication(*pod) && !pod->bootstrap()) ++outside[pod->pod()->meta.ns];
    }
    for (const auto& [name, pods] : outside) {
      const kube::ObjectRef ns = mesh.Get(*cluster, "Namespace", "", name);
      if (ns == nullptr || Injects(*ns) || ns->meta.labels.contains("istio-injection")) continue;
      findings.Add(*cluster, *ns,
                   fmt::format("{} pods run without a sidecar; label it istio-injection=enabled, or =disabled", pods));
    }
  }
}

void PodWithoutProxy(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
      if (!IsApplication(*pod) || pod->bootstrap()) continue;
      const kube::ObjectRef ns = mesh.Get(*cluster, "Namespace", "", pod->pod()->meta.ns);
      if (ns == nullptr || !Injects(*ns)) continue;
      const auto asked = pod->pod()->meta.labels.find("sidecar.istio.io/inject");
      if (asked != pod->pod()->meta.labels.end() && asked->second == "false") continue;
      findings.Add(*cluster, *pod->pod(), "runs without a sidecar in a namespace where pods get one");
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
      if (!IsSystemNamespace(ns->meta.name) && pods) by_namespace[ns->meta.name].emplace(Injects(*ns), cluster.get());
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

}  // namespace

const std::vector<Rule>& InjectionRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"IST0102", "NamespaceNotInjected", Level::kInfo, "pods without a sidecar are outside the mesh",
       "label the namespace", "", NotInjected},
      {"IST0103", "PodMissingProxy", Level::kWarning, "the pod is outside the mesh", "create the pod anew", "",
       PodWithoutProxy},
      {"IST0123", "NamespaceMultipleInjectionLabels", Level::kWarning,
       "a revision's istiod may not be the one that was meant", "leave one label", "", TwoLabels},
      {"WT601", "InjectionUneven", Level::kError, "a namespace is one and the same in all clusters of a mesh",
       "label the namespace istio-injection=enabled in every cluster", "istio/istio#31240", Uneven},
  };
  return *rules;
}

}  // namespace wavetank::check
