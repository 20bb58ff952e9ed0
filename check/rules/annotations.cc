// Istio's annotations: names that it does not know, values that it does not take, places where nobody reads them
// (istio: pkg/config/analysis/analyzers/annotations, istio.io/api/annotation).
#include <algorithm>
#include <iterator>

#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/json/json_read.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/inject/annotation_validation.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

// Of 1.18 and of releases since.
constexpr std::string_view kOfAny[] = {
    "galley.istio.io/analyze-suppress",       "install.operator.istio.io/chart-owner",
    "install.operator.istio.io/version",      "install.operator.istio.io/owner-generation",
    "topology.istio.io/controlPlaneClusters", "istio.io/dry-run",
    "ambient.istio.io/redirection",           "ambient.istio.io/bypass-inbound-capture",
    "istio.io/reroute-virtual-interfaces"};
constexpr std::string_view kOfServices[] = {"alpha.istio.io/canonical-serviceaccounts",
                                            "alpha.istio.io/kubernetes-serviceaccounts",
                                            "networking.istio.io/exportTo",
                                            "networking.istio.io/traffic-distribution",
                                            "networking.istio.io/address-type",
                                            "networking.istio.io/service-type",
                                            "traffic.istio.io/nodeSelector"};
constexpr std::string_view kOfPods[] = {"alpha.istio.io/identity",
                                        "inject.istio.io/templates",
                                        "istio.io/rev",
                                        "prometheus.istio.io/merge-metrics",
                                        "proxy.istio.io/config",
                                        "proxy.istio.io/overrides",
                                        "readiness.status.sidecar.istio.io/applicationPorts",
                                        "readiness.status.sidecar.istio.io/failureThreshold",
                                        "readiness.status.sidecar.istio.io/initialDelaySeconds",
                                        "readiness.status.sidecar.istio.io/periodSeconds",
                                        "security.istio.io/autoMTLS",
                                        "security.istio.io/tlsMode",
                                        "sidecar.istio.io/agentLogLevel",
                                        "sidecar.istio.io/bootstrapOverride",
                                        "sidecar.istio.io/componentLogLevel",
                                        "sidecar.istio.io/controlPlaneAuthPolicy",
                                        "sidecar.istio.io/discoveryAddress",
                                        "sidecar.istio.io/enableCoreDump",
                                        "sidecar.istio.io/extraStatTags",
                                        "sidecar.istio.io/inject",
                                        "sidecar.istio.io/interceptionMode",
                                        "sidecar.istio.io/logLevel",
                                        "sidecar.istio.io/nativeSidecar",
                                        "sidecar.istio.io/proxyCPU",
                                        "sidecar.istio.io/proxyCPULimit",
                                        "sidecar.istio.io/proxyImage",
                                        "sidecar.istio.io/proxyImageType",
                                        "sidecar.istio.io/proxyMemory",
                                        "sidecar.istio.io/proxyMemoryLimit",
                                        "sidecar.istio.io/rewriteAppHTTPProbers",
                                        "sidecar.istio.io/statsCompression",
                                        "sidecar.istio.io/statsEvictionInterval",
                                        "sidecar.istio.io/statsHistogramBuckets",
                                        "sidecar.istio.io/statsInclusionPrefixes",
                                        "sidecar.istio.io/statsInclusionRegexps",
                                        "sidecar.istio.io/statsInclusionSuffixes",
                                        "sidecar.istio.io/status",
                                        "sidecar.istio.io/userVolume",
                                        "sidecar.istio.io/userVolumeMount",
                                        "status.sidecar.istio.io/port",
                                        "traffic.sidecar.istio.io/excludeInboundPorts",
                                        "traffic.sidecar.istio.io/excludeInterfaces",
                                        "traffic.sidecar.istio.io/excludeOutboundIPRanges",
                                        "traffic.sidecar.istio.io/excludeOutboundPorts",
                                        "traffic.sidecar.istio.io/includeInboundPorts",
                                        "traffic.sidecar.istio.io/includeOutboundIPRanges",
                                        "traffic.sidecar.istio.io/includeOutboundPorts",
                                        "traffic.sidecar.istio.io/kubevirtInterfaces"};

template <size_t N>
bool IsOneOf(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool IsIstios(std::string_view name) {
  const size_t slash = name.find('/');
  if (slash == name.npos) return false;
  const std::string_view domain = name.substr(0, slash);
  // Objects that Istio deploys by itself carry notes to itself.
  return domain.ends_with("istio.io") && domain != "gateway.istio.io" && domain != "internal.istio.io";
}

bool IsKnown(std::string_view name) {
  return IsOneOf(kOfAny, name) || IsOneOf(kOfServices, name) || IsOneOf(kOfPods, name);
}

// The known name that differs least, if it differs by little: a letter more or less, or its case.
std::string_view Nearest(std::string_view name) {
  const auto close = [&](std::string_view known) {
    if (known.size() > name.size() + 1 || name.size() > known.size() + 1) return false;
    size_t a = 0, b = 0;
    int differ = 0;
    while (a < known.size() && b < name.size()) {
      if ((known[a] | 0x20) == (name[b] | 0x20)) {
        ++a;
        ++b;
        continue;
      }
      if (++differ > 1) return false;
      if (known.size() >= name.size()) ++a;
      if (name.size() >= known.size()) ++b;
    }
    return true;
  };
  for (const std::string_view known : kOfPods) {
    if (close(known)) return known;
  }
  for (const std::string_view known : kOfServices) {
    if (close(known)) return known;
  }
  return {};
}

// Fn(cluster, object that the annotations were written in, annotations, true: they are a pod's).
template <class Fn>
void EachAnnotated(const Mesh& mesh, Fn fn) {
  for (const auto& cluster : mesh.clusters()) {
    for (const char* kind : {"Namespace", "Service"}) {
      for (const kube::ObjectRef& object : mesh.List(*cluster, kind))
        fn(*cluster, *object, object->meta.annotations, false);
    }
    for (const char* kind : {"Deployment", "StatefulSet", "DaemonSet"}) {
      for (const kube::ObjectRef& object : mesh.List(*cluster, kind)) {
        fn(*cluster, *object, object->meta.annotations, false);
        kube::Labels of_pods;
        for (const auto& [key, value] : Members(At(object->body, {"spec", "template", "metadata", "annotations"})))
          of_pods[key] = TextOf(value);
        fn(*cluster, *object, of_pods, true);
      }
    }
  }
}

void Unknown(const Mesh& mesh, Findings& findings) {
  EachAnnotated(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const kube::Labels& names, bool) {
    for (const auto& [name, value] : names) {
      if (!IsIstios(name) || IsKnown(name)) continue;
      const std::string_view meant = Nearest(name);
      findings.Add(
          cluster, object,
          fmt::format("annotation {} is none of Istio's{}", name, meant.empty() ? "" : fmt::format("; {} is", meant)));
    }
  });
}

void Misplaced(const Mesh& mesh, Findings& findings) {
  EachAnnotated(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const kube::Labels& names,
                          bool pods) {
    for (const auto& [name, value] : names) {
      const bool service = object.kind == "Service";
      if (!pods && !service && object.kind != "Namespace" && IsOneOf(kOfPods, name)) {
        findings.Add(cluster, object,
                     fmt::format("annotation {} stands at the {} and not in its spec.template.metadata: no pod has it",
                                 name, object.kind));
      } else if ((!service && IsOneOf(kOfServices, name)) || (service && IsOneOf(kOfPods, name))) {
        findings.Add(cluster, object,
                     fmt::format("annotation {} is of {} and has no effect here", name, service ? "pods" : "Services"));
      }
    }
  });
}

void Invalid(const Mesh& mesh, Findings& findings) {
  EachAnnotated(mesh,
                [&](const MeshCluster& cluster, const kube::Object& object, const kube::Labels& names, bool pods) {
                  if (!pods) return;
                  if (const absl::Status status = pilot::ValidateInjectionAnnotations(names); !status.ok())
                    findings.Add(cluster, object, std::string(Message(status)));
                });
}

}  // namespace

const std::vector<Rule>& AnnotationRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"IST0107", "MisplacedAnnotation", Level::kWarning, "nothing reads it there", "move it to where it is read",
       "istio/istio#11854", Misplaced},
      {"IST0108", "UnknownAnnotation", Level::kWarning, "nothing reads it", "mend the name, or leave it out", "",
       Unknown},
      {"IST0125", "InvalidAnnotation", Level::kError, "istiod refuses to inject the pod, and it is not made",
       "mend the value", "", Invalid},
  };
  return *rules;
}

}  // namespace wavetank::check
