// What workloads say of themselves. Istio's annotations: names that it does not know, values that it does not take,
// places where nobody reads them (istio: pkg/config/analysis/analyzers/annotations, istio.io/api/annotation); probes,
// resources, the sidecar's image and interception, and what scales them.
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/bounds.h"
#include "core/base/duration.h"
#include "core/base/json/json_read.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/base/text/letters_apart.h"
#include "core/inject/annotation_validation.h"
#include "core/inject/proxy_bootstrap.h"
#include "core/kube/quantity.h"
#include "core/kube/yaml.h"
#include "core/profile/image_release.h"
#include "core/profile/published_images.h"
#include "core/profile/releases.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "scenarios/language/yaml_reader.h"
#include "scenarios/mesh/world.h"

namespace wavetank::check {
namespace {

// Of 1.18 and of releases since.
constexpr std::string_view kOfAny[] = {
    "galley.istio.io/analyze-suppress",       "install.operator.istio.io/chart-owner",
    "install.operator.istio.io/version",      "install.operator.istio.io/owner-generation",
    "topology.istio.io/controlPlaneClusters", "istio.io/dry-run",
    "ambient.istio.io/redirection",           "ambient.istio.io/bypass-inbound-capture",
    "ambient.istio.io/dns-capture",           "ambient.istio.io/waypoint-inbound-binding",
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
                                        "sidecar.istio.io/statsFlushInterval",
                                        "sidecar.istio.io/statsHistogramBins",
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
    for (const char* kind : kWorkloadKinds) {
      for (const kube::ObjectRef& object : mesh.List(*cluster, kind)) {
        fn(*cluster, *object, object->meta.annotations, false);
        fn(*cluster, *object, LabelsIn(At(object->body, {"spec", "template", "metadata", "annotations"})), true);
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

// metallb: internal/k8s/k8s.go and controller/service.go read these, of either prefix.
void LoadBalancerSettingUnread(const Mesh& mesh, Findings& findings) {
  constexpr std::string_view kRead[] = {"address-pool", "loadBalancerIPs", "allow-shared-ip", "ip-allocated-from-pool"};
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& service : mesh.List(*cluster, "Service")) {
      for (const auto& [name, value] : service->meta.annotations) {
        for (const std::string_view prefix : {"metallb.universe.tf/", "metallb.io/"}) {
          if (!name.starts_with(prefix)) continue;
          const std::string what = name.substr(prefix.size());
          if (std::find(std::begin(kRead), std::end(kRead), what) != std::end(kRead)) continue;
          findings.Add(*cluster, *service, fmt::format("annotation {} is none that MetalLB reads", name));
          const std::string_view near =
              scenario::Nearest(what, std::vector<std::string_view>(std::begin(kRead), std::end(kRead)));
          if (!near.empty()) findings.Explain({}, fmt::format("write {}{}", prefix, near));
        }
      }
    }
  }
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
      } else if (name == "networking.istio.io/traffic-distribution" && object.kind == "Namespace" &&
                 Has(cluster, pilot::Change::kTrafficDistributionOfNamespaces)) {
        continue;  // of all its Services
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
      {"IST0108", "UnknownAnnotation", Level::kWarning, "nothing reads it", "mend the name, or leave it out",
       "istio/istio#24632", Unknown},
      {"WT140", "LoadBalancerSettingUnread", Level::kWarning, "the address comes from any pool", "mend the name",
       "openshift/openshift-docs#34728", LoadBalancerSettingUnread, false},
      {"IST0125", "InvalidAnnotation", Level::kError, "istiod refuses to inject the pod, and it is not made",
       "mend the value", "istio/istio#45810", Invalid},
  };
  return *rules;
}

namespace {

using nlohmann::json;

// Fn(pod, its owner) for the first pod of each workload of an application that has a sidecar.
template <class Fn>
void EachInjected(const Mesh& mesh, const MeshCluster& cluster, Fn fn) {
  std::set<std::string> told;
  for (const sim::PodProcess* pod : mesh.Pods(cluster)) {
    if (!IsApplication(*pod) || !pod->bootstrap() || pod->router()) continue;
    const kube::ObjectRef owner = OwnerOf(mesh, cluster, *pod);
    if (told.insert(NameOf(*owner)).second) fn(*pod, *owner);
  }
}

// Ports of a proxy's own that kubelets may ask (istio.io, application requirements).
bool IsProxysHealthPort(int64_t port) { return port == 15020 || port == 15021 || port == 15090; }

// kubernetes: pkg/kubelet/prober, ResolveContainerPort: a name must be one of the container's ports. A number that a
// container which names its ports leaves out may be served all the same, and mostly is not.
void ProbesMeetNobody(const Mesh& mesh, Findings& findings) {
  EachWorkload(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const json& pod) {
    for (const json& container : Items(At(pod, {"spec", "containers"}))) {
      std::set<std::string> names;
      std::set<int64_t> numbers;
      for (const json& port : Items(At(container, "ports"))) {
        names.insert(Text(port, "name"));
        numbers.insert(Number(port, "containerPort"));
      }
      // Who declares ports for metrics alone leaves the others out (istio-cni's).
      const bool metrics_alone = std::all_of(names.begin(), names.end(), [](const std::string& name) {
        return name.find("metrics") != std::string::npos || name.find("prom") != std::string::npos;
      });
      const bool proxy = Text(container, "name") == "istio-proxy";
      // A port that two probes agree on is one for health, which many do not declare.
      std::map<int64_t, int> probed;
      for (const char* probe : {"readinessProbe", "livenessProbe", "startupProbe"}) {
        for (const char* how : {"httpGet", "tcpSocket"}) ++probed[NumberOf(At(container, {probe, how, "port"}))];
      }
      for (const char* probe : {"readinessProbe", "livenessProbe", "startupProbe"}) {
        for (const char* how : {"httpGet", "tcpSocket"}) {
          const json& port = At(container, {probe, how, "port"});
          const int64_t number = port.is_string() ? std::atoll(TextOf(port).c_str()) : NumberOf(port);
          const std::string said = fmt::format("{} of container {} asks port ", probe, Text(container, "name"));
          if (port.is_string() && number == 0 && !names.contains(TextOf(port))) {
            findings.Add(cluster, object,
                         fmt::format("{}'{}', and no port of the container has that name", said, TextOf(port)));
          } else if (number != 0 && !numbers.empty() && !metrics_alone && !numbers.contains(number) &&
                     !IsProxysHealthPort(number) && (proxy || probed[number] < 2) && !IsTold(container, number)) {
            findings.Add(cluster, object,
                         fmt::format("{}{}, and the container declares {}{}", said, number, fmt::join(numbers, ", "),
                                     proxy ? "; a proxy answers /healthz/ready at 15021" : ""));
          }
        }
      }
    }
  });
}

// kubernetes: pkg/apis/core/validation, validateContainerResources... of pods, those that injection makes included.
void LimitsBelowRequests(const Mesh& mesh, Findings& findings) {
  EachWorkload(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const json& pod) {
    const auto compare = [&](const json& request, const json& limit, const std::string& what) {
      const auto asked = kube::QuantityNanos(request), most = kube::QuantityNanos(limit);
      if (asked && most && *asked > *most)
        findings.Add(cluster, object,
                     fmt::format("{}: {} is requested, and the limit is {}", what, kube::QuantityText(request),
                                 kube::QuantityText(limit)));
    };
    for (const json& container : Items(At(pod, {"spec", "containers"}))) {
      for (const char* resource : {"cpu", "memory"}) {
        compare(At(container, {"resources", "requests", resource}), At(container, {"resources", "limits", resource}),
                fmt::format("{} of container {}", resource, Text(container, "name")));
      }
    }
    const json& annotations = At(pod, {"metadata", "annotations"});
    for (const char* resource : {"CPU", "Memory"}) {
      const std::string name = fmt::format("sidecar.istio.io/proxy{}", resource);
      compare(At(annotations, name), At(annotations, name + "Limit"), fmt::format("{} and {}Limit", name, name));
    }
  });
}

// What no process lives in, and what no node has: a unit that is missing, or m for Mi. kubernetes: pkg/apis/core, a
// quantity without a suffix is bytes, or whole processors.
void UnitsForgotten(const Mesh& mesh, Findings& findings) {
  constexpr int64_t kNano = 1'000'000'000, kLeastMemory = 4 << 20, kMostProcessors = 64;
  EachWorkload(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const json& pod) {
    const auto look = [&](const json& quantity, bool memory, const std::string& what) {
      const auto nanos = kube::QuantityNanos(quantity);
      if (!nanos || *nanos == 0) return;
      if (memory ? *nanos >= absl::int128(kLeastMemory) * kNano : *nanos < absl::int128(kMostProcessors) * kNano)
        return;
      const std::string text = kube::QuantityText(quantity);
      // A request of 1Mi is little, says what it means, and kills nobody.
      if (memory && what.starts_with("resources.requests") && text.ends_with('i')) return;
      findings.Add(cluster, object,
                   memory ? fmt::format("{} is {}, which is {} bytes", what, text, static_cast<int64_t>(*nanos / kNano))
                          : fmt::format("{} is {}, which are as many processors", what, text));
      const std::string digits = text.substr(0, text.find_first_not_of("0123456789."));
      findings.Explain(memory ? "memory is counted in bytes, of which m is a thousandth; a container that may not have "
                                "more is killed as it starts"
                              : "processors are counted whole, and a thousandth of one is m: no node takes such a pod",
                       fmt::format("write {}{}", digits, memory ? "Mi" : "m"));
    };
    for (const char* list : {"containers", "initContainers"}) {
      for (const json& container : Items(At(pod, {"spec", list}))) {
        for (const char* kind : {"requests", "limits"}) {
          for (const char* resource : {"cpu", "memory"})
            look(At(container, {"resources", kind, resource}), resource[0] == 'm',
                 fmt::format("resources.{}.{} of container {}", kind, resource, Text(container, "name")));
        }
      }
    }
    const json& annotations = At(pod, {"metadata", "annotations"});
    for (const char* each : {"CPU", "CPULimit", "Memory", "MemoryLimit"}) {
      const std::string name = fmt::format("sidecar.istio.io/proxy{}", each);
      look(At(annotations, name), each[0] == 'M', fmt::format("annotation {}", name));
    }
  });
}

// The sidecar's environment and its ProxyConfig, the mesh's included. Of pods that have one.
struct ProxyOf {
  pilot::ProxyEnvironment variables;
  json config;
};
ProxyOf ReadProxy(const sim::PodProcess& pod) {
  ProxyOf out;
  out.variables = pilot::ReadProxyEnvironment(pod.pod()->body).value_or(pilot::ProxyEnvironment());
  out.config = pod.bootstrap()->proxy_config;
  const json& metadata = At(out.config, "proxyMetadata");
  if (metadata.is_object()) {
    for (auto it = metadata.begin(); it != metadata.end(); ++it) out.variables.emplace(it.key(), TextOf(it.value()));
  }
  return out;
}

// istiod: pkg/envoy/agent.go, terminate(): on SIGTERM the proxy drains for terminationDrainDuration (5 s), or with
// EXIT_ON_ZERO_ACTIVE_CONNECTIONS at least for MINIMUM_DRAIN_DURATION; a kubelet kills it when the grace is over.
void DrainsLongerThanGrace(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    std::set<std::string> told;
    for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
      if (!pod->bootstrap()) continue;
      const ProxyOf proxy = ReadProxy(*pod);
      const auto variable = [&](const char* name) {
        const auto it = proxy.variables.find(name);
        return it == proxy.variables.end() ? std::string() : it->second;
      };
      const bool waits = variable("EXIT_ON_ZERO_ACTIVE_CONNECTIONS") == "true";
      const std::string text =
          waits ? variable("MINIMUM_DRAIN_DURATION") : Text(proxy.config, "terminationDrainDuration");
      const std::optional<Duration> drain = ParseGoDuration(text);
      const int64_t grace = Number(At(pod->pod()->body, "spec"), "terminationGracePeriodSeconds", 30);
      if (!drain || *drain == pilot::ProxyBootstrap().termination_drain || *drain < bounds::Seconds(grace)) continue;
      const kube::ObjectRef owner = OwnerOf(mesh, *cluster, *pod);
      if (!told.insert(NameOf(*owner)).second) continue;
      findings.Add(*cluster, *owner,
                   fmt::format("{} is {}, and its pods have {} s (terminationGracePeriodSeconds) to end",
                               waits ? "MINIMUM_DRAIN_DURATION" : "terminationDrainDuration", text, grace));
    }
  }
}

// istiod: pkg/istio-agent/agent.go, pilot/cmd/pilot-agent: variables that the agent reads, as proxyMetadata or the
// container's environment sets them.
constexpr std::string_view kOfAgents[] = {"ISTIO_META_DNS_CAPTURE",
                                          "ISTIO_META_DNS_AUTO_ALLOCATE",
                                          "ISTIO_META_IDLE_TIMEOUT",
                                          "ISTIO_META_CLUSTER_ID",
                                          "ISTIO_META_NETWORK",
                                          "ISTIO_META_INTERCEPTION_MODE",
                                          "ISTIO_META_REQUESTED_NETWORK_VIEW",
                                          "ISTIO_META_ROUTER_MODE",
                                          "ISTIO_META_HTTP10",
                                          "ISTIO_META_UNPRIVILEGED_POD",
                                          "ISTIO_META_CERT_SIGNER",
                                          "ISTIO_META_ENABLE_HBONE",
                                          "ISTIO_META_TLS_CLIENT_CERT_CHAIN",
                                          "ISTIO_META_TLS_CLIENT_KEY",
                                          "ISTIO_META_TLS_CLIENT_ROOT_CERT",
                                          "ISTIO_META_TLS_SERVER_CERT_CHAIN",
                                          "ISTIO_META_TLS_SERVER_KEY",
                                          "ISTIO_META_TLS_SERVER_ROOT_CERT",
                                          "EXIT_ON_ZERO_ACTIVE_CONNECTIONS",
                                          "MINIMUM_DRAIN_DURATION",
                                          "BOOTSTRAP_XDS_AGENT",
                                          "PROXY_XDS_VIA_AGENT",
                                          "ISTIO_DELTA_XDS",
                                          "OUTPUT_CERTS",
                                          "SECRET_TTL",
                                          "SECRET_GRACE_PERIOD_RATIO",
                                          "FILE_MOUNTED_CERTS",
                                          "CA_ADDR",
                                          "XDS_ROOT_CA",
                                          "CA_ROOT_CA",
                                          "WASM_INSECURE_REGISTRIES",
                                          "ISTIO_AGENT_ENABLE_WASM_REMOTE_LOAD_CONVERSION",
                                          "INITIAL_FETCH_TIMEOUT",
                                          "ECC_SIGNATURE_ALGORITHM",
                                          "WORKLOAD_RSA_KEY_SIZE",
                                          "PKCS8_KEY",
                                          "TOKEN_AUDIENCES",
                                          "ENABLE_ENVOY_APPLICATION_PROBE",
                                          "ISTIO_ENABLE_IPV6_OUTBOUND_SUPPORT",
                                          "ISTIO_DUAL_STACK",
                                          "ISTIO_KUBE_APP_PROBERS"};

// One or two letters from a name that agents read, which it is not itself; empty: it is far from all, or one.
std::string_view AlmostOfAgents(const std::string& name) {
  const std::vector<std::string_view> known(std::begin(kOfAgents), std::end(kOfAgents));
  if (std::find(known.begin(), known.end(), name) != known.end()) return {};
  const std::string_view near = scenario::Nearest(name, known);
  return near.empty() || LettersApart(name, near) > 2 ? std::string_view() : near;
}

void ProxyVariables(const Mesh& mesh, Findings& findings) {
  const auto look = [&](const auto& variables, const auto& tell) {
    for (const auto& [name, value] : variables) {
      if (const std::string_view near = AlmostOfAgents(name); !near.empty())
        tell(fmt::format("proxyMetadata {}: no agent reads it", name),
             "an agent hands on, and does nothing with, what it does not know", fmt::format("write {}", near));
    }
    const auto is = [&](const char* name) {
      const auto it = variables.find(name);
      return it != variables.end() && it->second == "true";
    };
    if (is("ISTIO_META_DNS_AUTO_ALLOCATE") && !is("ISTIO_META_DNS_CAPTURE"))
      tell("ISTIO_META_DNS_AUTO_ALLOCATE is true, and ISTIO_META_DNS_CAPTURE is not: nobody is told of the addresses",
           "addresses are allocated for the agent's DNS, which answers where it captures queries",
           "set ISTIO_META_DNS_CAPTURE to \"true\", too");
  };
  for (const auto& cluster : mesh.clusters()) {
    std::set<std::string> told;
    std::map<std::string, std::string> of_mesh;  // those tell at the mesh's ConfigMap
    const kube::ObjectRef map = MeshConfigMap(mesh, *cluster);
    if (map != nullptr) {
      const absl::StatusOr<json> text = kube::ParseYaml(Text(At(map->body, "data"), "mesh"), "mesh");
      if (text.ok()) {
        const json& metadata = At(*text, {"defaultConfig", "proxyMetadata"});
        if (metadata.is_object()) {
          for (auto it = metadata.begin(); it != metadata.end(); ++it) of_mesh.emplace(it.key(), TextOf(it.value()));
        }
      }
      look(of_mesh, [&](const std::string& message, const char* cause, const std::string& remedy) {
        told.insert(message);
        findings.Add(*cluster, map, message);
        findings.Explain(cause, remedy);
      });
    }
    for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
      if (!pod->bootstrap()) continue;
      const kube::ObjectRef owner = OwnerOf(mesh, *cluster, *pod);
      look(ReadProxy(*pod).variables, [&](const std::string& message, const char* cause, const std::string& remedy) {
        if (told.contains(message) || !told.insert(NameOf(*owner) + message).second) return;
        findings.Add(*cluster, *owner, message);
        findings.Explain(cause, remedy);
      });
    }
  }
}

// istiod: pkg/config/analysis/analyzers/injection/injection-image.go, by releases.
void ProxyImageOfAnotherRelease(const Mesh& mesh, Findings& findings) {
  // An installer's own pods are of the release that the profile is, whatever a manifest's istiod says.
  const int simulated = pilot::MinorOf(mesh.world().profile().istio);
  EachWorkload(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const json& pod) {
    const MeshCluster* primary = mesh.Find(cluster.control_plane);
    const kube::ObjectRef istiod =
        primary == nullptr ? nullptr : WorkloadFor(mesh, *primary, primary->system_namespace, {{"app", "istiod"}});
    if (istiod == nullptr) return;
    int control = 0;
    for (const json& container : Items(At(istiod->body, {"spec", "template", "spec", "containers"})))
      control = std::max(control, pilot::MinorOfImage(Text(container, "image")));
    std::vector<std::string> images = {Text(At(pod, {"metadata", "annotations"}), "sidecar.istio.io/proxyImage")};
    for (const json& container : Items(At(pod, {"spec", "containers"}))) {
      if (Text(container, "name") == "istio-proxy") images.push_back(Text(container, "image"));
    }
    for (const std::string& image : images) {
      const int minor = pilot::MinorOfImage(image);
      if (minor == 0 || control == 0 || minor == control || minor == simulated) continue;
      findings.Add(cluster, object, fmt::format("its proxies are of image {}, and istiod is 1.{}", image, control));
    }
  });
}

// A private copy of Istio's images may have any name; one that is a letter from Istio's own is hardly meant.
void HubAlmostIstios(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    std::set<std::string> told;  // workload and image
    for (const kube::ObjectRef& pod : mesh.List(*cluster, "Pod")) {
      for (const char* list : {"initContainers", "containers"}) {
        for (const json& container : Items(At(pod->body, {"spec", list}))) {
          const std::string image = Text(container, "image");
          const std::string_view meant = pilot::HubMeant(image);
          const bool half = pilot::HasHalfARelease(image);
          if (meant.empty() && !half) continue;
          const kube::ObjectRef owner = OwnerOf(mesh, *cluster, pod);
          if (!told.insert(NameOf(*owner) + " " + image).second) continue;
          if (half) {
            findings.Add(
                *cluster, *owner,
                fmt::format("tag {} of its image {} is no release: those are X.Y.Z", pilot::TagOf(image), image));
            findings.Explain({}, "write the whole release, in quotes: YAML reads tag: 1.20 as the number 1.2");
            continue;
          }
          findings.Add(*cluster, *owner, fmt::format("its image {} is almost of {}, Istio's own hub", image, meant));
        }
      }
    }
  }
}

// iptables lead nothing to a sidecar of that mode: it listens where a Sidecar with captureMode NONE tells it to.
void InterceptionNone(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    const MeshCluster* primary = mesh.Find(cluster->control_plane);
    EachInjected(mesh, *cluster, [&](const sim::PodProcess& pod, const kube::Object& owner) {
      const auto& annotations = pod.pod()->meta.annotations;
      const auto mode = annotations.find("sidecar.istio.io/interceptionMode");
      if (mode == annotations.end() || mode->second != "NONE" || primary == nullptr) return;
      const auto& sidecars = primary->configs.Sidecars();
      const bool listens = std::any_of(sidecars.begin(), sidecars.end(), [&](const config::SidecarRef& sidecar) {
        return !sidecar->spec.ingress.empty() &&
               HoldsFor(*primary, sidecar->meta.ns, sidecar->spec.workload_selector, pod);
      });
      if (listens) return;
      findings.Add(*cluster, owner,
                   "interceptionMode NONE, and no Sidecar with ingress listeners is for its pods: requests pass the "
                   "sidecar by in both directions, and mesh TLS from other pods meets the bare application");
    });
  }
}

// istiod: pilot/pkg/serviceregistry/kube, PodTLSMode: the pod's label is the endpoint's, and injection sets it only
// where it is missing.
void TlsModeOfPod(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    EachInjected(mesh, *cluster, [&](const sim::PodProcess& pod, const kube::Object& owner) {
      const auto& labels = pod.pod()->meta.labels;
      const auto mode = labels.find("security.istio.io/tlsMode");
      if (mode == labels.end() || mode->second == "istio" || mode->second.empty()) return;
      findings.Add(
          *cluster, owner,
          fmt::format("its pods have a sidecar and the label security.istio.io/tlsMode={}: clients send to them "
                      "in clear text, and those of other networks not at all",
                      mode->second));
    });
  }
}

// kubernetes: pkg/controller/podautoscaler/horizontal.go: the target's kind is looked up by its group; of pods that two
// autoscalers select neither scales (AmbiguousSelector).
void ScalesNobody(const Mesh& mesh, Findings& findings) {
  constexpr const char* kScaled[] = {"Deployment", "StatefulSet", "ReplicaSet"};
  for (const auto& cluster : mesh.clusters()) {
    if (cluster->recorded) continue;
    std::map<std::string, kube::ObjectRef> first;  // by target
    for (const kube::ObjectRef& scaler : mesh.List(*cluster, "HorizontalPodAutoscaler")) {
      const json& target = At(scaler->body, {"spec", "scaleTargetRef"});
      const std::string kind = Text(target, "kind"), name = Text(target, "name"), api = Text(target, "apiVersion");
      const auto meant = std::find_if(std::begin(kScaled), std::end(kScaled),
                                      [&](const char* each) { return absl::EqualsIgnoreCase(each, kind); });
      if (meant == std::end(kScaled)) continue;  // a kind of others
      if (kind != *meant || api != "apps/v1") {
        findings.Add(*cluster, *scaler,
                     fmt::format("scales {} of apiVersion '{}': no matches for kind \"{}\" in group \"{}\"", kind, api,
                                 kind, api.find('/') == std::string::npos ? "" : api.substr(0, api.find('/'))));
        findings.Explain({}, fmt::format("write kind: {} and apiVersion: apps/v1", *meant));
        continue;
      }
      if (kind != "ReplicaSet" && mesh.Get(*cluster, kind, scaler->meta.ns, name) == nullptr) {
        findings.Add(*cluster, *scaler, fmt::format("scales {} {}, which is not in {}", kind, name, scaler->meta.ns));
        continue;
      }
      // kubernetes: pkg/controller/podautoscaler/replica_calculator.go, calculatePodRequests: a share of requests needs
      // one of every container, the sidecar included, or of the one that the metric names.
      for (const json& metric : Items(At(scaler->body, {"spec", "metrics"}))) {
        const bool of_container = Text(metric, "type") == "ContainerResource";
        const json& resource = At(metric, of_container ? "containerResource" : "resource");
        if (Text(At(resource, "target"), "type") != "Utilization") continue;
        const std::string what = Text(resource, "name"), only = Text(resource, "container");
        const sim::PodProcess* one = nullptr;
        for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
          const kube::ObjectRef owner = OwnerOf(mesh, *cluster, *pod);
          if (owner->kind == kind && owner->meta.ns == scaler->meta.ns && owner->meta.name == name) one = pod;
        }
        if (one == nullptr) continue;
        bool named = false;
        for (const json& container : Items(At(one->pod()->body, {"spec", "containers"}))) {
          const std::string container_name = Text(container, "name");
          if (of_container && container_name != only) continue;
          named = true;
          const json& resources = At(container, "resources");
          if (!At(resources, {"requests", what}).is_null() || !At(resources, {"limits", what}).is_null()) continue;
          findings.Add(*cluster, *scaler,
                       fmt::format("scales {} {} by its share of {} requests: container {} of its pods requests none "
                                   "(missing request for {} in container {})",
                                   kind, name, what, container_name, what, container_name));
          findings.Explain("a share of nothing is no metric, and the autoscaler leaves the replicas as they are",
                           fmt::format("give container {} resources.requests.{}", container_name, what));
          break;
        }
        if (of_container && !named) {
          findings.Add(*cluster, *scaler,
                       fmt::format("scales {} {} by container {}, which its pods do not have", kind, name, only));
          findings.Explain("a share of nothing is no metric, and the autoscaler leaves the replicas as they are",
                           "mend containerResource.container");
        }
      }
      const auto [it, fresh] = first.try_emplace(fmt::format("{}/{} {}", scaler->meta.ns, kind, name), scaler);
      if (fresh) continue;
      findings.Add(
          *cluster, *scaler,
          fmt::format("scales {} {}, as HorizontalPodAutoscaler {} does: of pods that two select neither scales "
                      "(AmbiguousSelector)",
                      kind, name, it->second->meta.name));
      findings.Explain({}, "leave one of the two");
    }
  }
}

// kubernetes: pkg/kubelet/kubelet_pods.go, getPullSecretsForPod: a Secret that is not there is left out with a warning;
// pkg/scheduler/framework/plugins/volumebinding: a pod waits for its claim.
void ReferencesMissing(const Mesh& mesh, Findings& findings) {
  EachWorkload(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const json& pod) {
    if (cluster.recorded) return;
    for (const json& each : Items(At(pod, {"spec", "imagePullSecrets"}))) {
      const std::string name = Text(each, "name");
      if (name.empty() || mesh.Get(cluster, "Secret", object.meta.ns, name) != nullptr) continue;
      findings.Add(cluster, object,
                   fmt::format("imagePullSecrets names {}, which is not in {}: images are pulled without it", name,
                               object.meta.ns));
    }
    for (const json& volume : Items(At(pod, {"spec", "volumes"}))) {
      const std::string claim = Text(At(volume, "persistentVolumeClaim"), "claimName");
      if (claim.empty() || mesh.Get(cluster, "PersistentVolumeClaim", object.meta.ns, claim) != nullptr) continue;
      findings.Add(
          cluster, object,
          fmt::format("volume {} is of PersistentVolumeClaim {}, which is not in {}: a real scheduler lets its "
                      "pods wait (persistentvolumeclaim \"{}\" not found)",
                      Text(volume, "name"), claim, object.meta.ns, claim));
      findings.Explain("volumes are not simulated", "create the claim, or mend its name");
    }
  });
}

void IstiodOfAnotherRelease(const Mesh& mesh, Findings& findings) {
  for (const scenario::ForeignIstiod& istiod : scenario::IstiodsOfOtherReleases(mesh.world())) {
    const MeshCluster* const cluster = mesh.Find(istiod.cluster);
    if (cluster == nullptr || istiod.deployment->meta.ns != cluster->system_namespace) continue;
    findings.Add(*cluster, *istiod.deployment,
                 fmt::format("its image is {}, and the istiod that is simulated is of {}: what the two do differently "
                             "is not told",
                             istiod.image, mesh.world().profile().istio));
    findings.Explain({},
                     "choose the profile of its release (--profile, docs/profiles.md), if there is one; or mend "
                     "the image");
  }
}

// kubernetes: staging/src/k8s.io/pod-security-admission, policy: baseline and restricted refuse NET_ADMIN, which
// istio-init asks for; Istio's CNI plugin takes its place (istio.io, pod requirements).
void PodSecurityForbidsInit(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    std::set<std::string> told;
    for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
      const kube::ObjectRef ns = mesh.Get(*cluster, "Namespace", "", pod->pod()->meta.ns);
      if (ns == nullptr || !pod->bootstrap()) continue;
      const auto level = ns->meta.labels.find("pod-security.kubernetes.io/enforce");
      if (level == ns->meta.labels.end() || (level->second != "baseline" && level->second != "restricted")) continue;
      for (const json& init : Items(At(pod->pod()->body, {"spec", "initContainers"}))) {
        const json& added = Items(At(init, {"securityContext", "capabilities", "add"}));
        const bool admin = std::any_of(added.begin(), added.end(), [](const json& c) { return c == "NET_ADMIN"; });
        if (!admin || !told.insert(ns->meta.name).second) continue;
        findings.Add(*cluster, *ns,
                     fmt::format("pod-security.kubernetes.io/enforce={}, and container {} of injected pods asks for "
                                 "NET_ADMIN: new pods are refused",
                                 level->second, Text(init, "name")));
      }
    }
  }
}

// kubernetes: pkg/quota: what would exceed a quota is refused when it is created; what is there stays.
void QuotaRefuses(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& quota : mesh.List(*cluster, "ResourceQuota")) {
      const json& hard = At(quota->body, {"spec", "hard"});
      size_t balancers = 0;
      for (const kube::ObjectRef& service : mesh.List(*cluster, "Service", quota->meta.ns))
        balancers += kube::ParseService(*service).type == "LoadBalancer" ? 1 : 0;
      const size_t pods = mesh.List(*cluster, "Pod", quota->meta.ns).size();
      for (const auto& [name, used] :
           {std::pair("pods", pods), std::pair("count/pods", pods), std::pair("services.loadbalancers", balancers)}) {
        const auto most = kube::QuantityNanos(At(hard, name));
        if (!most || absl::int128(used) * kube::kNanosPerUnit <= *most) continue;
        findings.Add(*cluster, *quota,
                     fmt::format("{} is {}, and namespace {} has {}: the next ones are refused", name,
                                 kube::QuantityText(At(hard, name)), quota->meta.ns, used));
      }
    }
  }
}

// Whose agents look istiod up.
bool HasSidecars(const Mesh& mesh, const MeshCluster& cluster, const kube::Object& workload) {
  const auto pods = mesh.Pods(cluster);
  return std::any_of(pods.begin(), pods.end(), [&](const sim::PodProcess* pod) {
    return pod->pod()->meta.ns == workload.meta.ns && pilot::HasProxy(pod->pod()->body) &&
           NameOf(*OwnerOf(mesh, cluster, *pod)) == NameOf(workload);
  });
}

// Commands, arguments or environment of its containers name a Service. An agent of the node's (an exporter, a load
// balancer's speaker) calls none.
bool SpeaksOfServices(const Mesh& mesh, const MeshCluster& cluster, const std::string& ns, const json& spec) {
  std::string text;
  for (const char* list : {"containers", "initContainers"}) {
    for (const json& container : Items(At(spec, list))) {
      for (const char* field : {"command", "args", "env"}) text += JsonText(At(container, field));
    }
  }
  for (const kube::ObjectRef& service : mesh.List(cluster, "Service")) {
    if (text.find(fmt::format("{}.{}", service->meta.name, service->meta.ns)) != std::string::npos) return true;
    if (service->meta.ns != ns) continue;
    for (const char* before : {"//", "\"", "="}) {
      if (text.find(fmt::format("{}{}:", before, service->meta.name)) != std::string::npos) return true;
    }
  }
  return false;
}

// Names that Kubernetes' resolver or controllers look up, and nobody has.
void NamesNobodyResolves(const Mesh& mesh, Findings& findings) {
  EachWorkload(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const json& pod) {
    const json& spec = At(pod, "spec");
    const std::string policy = Text(spec, "dnsPolicy");
    const bool host = At(spec, "hostNetwork") == true;
    if ((policy == "Default" || (policy == "ClusterFirst" && host)) && !IsSystemNamespace(mesh, object.meta.ns) &&
        (HasSidecars(mesh, cluster, object) || SpeaksOfServices(mesh, cluster, object.meta.ns, spec))) {
      findings.Add(cluster, object,
                   fmt::format("dnsPolicy {}{}: its pods ask the node's resolver, which knows no Service", policy,
                               host ? " with hostNetwork" : ""));
      findings.Explain({}, host ? "set dnsPolicy: ClusterFirstWithHostNet" : "leave dnsPolicy out");
    }
    const std::string governing = Text(At(object.body, "spec"), "serviceName");
    if (object.kind != "StatefulSet" || governing.empty() || cluster.recorded ||
        mesh.Get(cluster, "Service", object.meta.ns, governing) != nullptr)
      return;
    findings.Add(cluster, object,
                 fmt::format("serviceName {} is no Service of {}: its pods have no names of their own in DNS",
                             governing, object.meta.ns));
    findings.Explain({}, "create that headless Service, or mend serviceName");
  });
}

// istiod: pilot/pkg/serviceregistry/kube/controller/network.go reads that label of its system namespace, of pods and of
// Services alone.
void NetworkLabelOfNamespace(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& ns : mesh.List(*cluster, "Namespace")) {
      const auto label = ns->meta.labels.find("topology.istio.io/network");
      if (label == ns->meta.labels.end() || ns->meta.name == cluster->system_namespace ||
          IsSystemNamespace(mesh, ns->meta.name) || label->second == cluster->label)
        continue;
      findings.Add(*cluster, *ns,
                   fmt::format("topology.istio.io/network={} at an application's namespace: its pods stay in {}",
                               label->second, cluster->label.empty() ? "no network" : cluster->label));
    }
  }
}

}  // namespace

const std::vector<Rule>& WorkloadRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT714", "ProbeMeetsNobody", Level::kWarning,
       "a pod whose readiness is asked where nobody answers never gets a request; one whose liveness is, starts over",
       "probe a port that the container listens on, by its number or by the name that it has there",
       "kubernetes/kubeadm#196", ProbesMeetNobody},
      {"WT609", "LimitBelowRequest", Level::kError, "an API server refuses such pods",
       "raise the limit, or ask for less", "istio/istio.io#11066", LimitsBelowRequests},
      {"WT611", "UnitForgotten", Level::kError, "a quantity without its unit is bytes, or whole processors",
       "write memory in Mi, and shares of a processor in m", "kubernetes/kubernetes#79950, #49442", UnitsForgotten,
       false},
      {"WT612", "DrainLongerThanGrace", Level::kWarning,
       "a kubelet kills what has not ended when the grace is over, and connections that still drain are cut",
       "make terminationGracePeriodSeconds longer than the drain", "istio/istio#25575", DrainsLongerThanGrace, false},
      {"WT613", "ProxyVariable", Level::kWarning, "an agent hands on, and does nothing with, what it does not know",
       "mend the name", "istio/istio#40166, #59599", ProxyVariables, false},
      {"IST0105", "IstioProxyImageMismatch", Level::kWarning,
       "proxies and istiod are tested one release apart, and an own image stays behind at the next upgrade",
       "leave the image to injection (image: auto, no sidecar.istio.io/proxyImage), and create the pods anew",
       "istio/istio#11295, #41354", ProxyImageOfAnotherRelease, false},
      {"WT608", "InterceptionNone", Level::kError, "a sidecar that nothing is led to takes no part",
       "leave the annotation sidecar.istio.io/interceptionMode out, or write a Sidecar with ingress listeners",
       "istio/istio#25156", InterceptionNone},
      {"WT610", "TlsModeOfPodOff", Level::kError, "a gateway between networks has endpoints with mesh TLS alone",
       "take the label security.istio.io/tlsMode off: injection sets it", "istio/istio#20578", TlsModeOfPod},
      {"WT716", "QuotaRefuses", Level::kWarning, "a pod or load balancer beyond its namespace's quota is refused",
       "raise spec.hard of the ResourceQuota", "istio/istio#14835", QuotaRefuses, false},
      {"WT717", "PodSecurityForbidsInit", Level::kError, "istio-init sets the pod's iptables, which takes NET_ADMIN",
       "enforce privileged there, or install Istio's CNI plugin, which needs no such container",
       "istio/istio#35894, #54968", PodSecurityForbidsInit},
      {"WT718", "NetworkLabelMisplaced", Level::kWarning,
       "a network is told by the label of istiod's own namespace, of gateways' Services and of pods",
       "label istio-system, or the pods", "", NetworkLabelOfNamespace, false},
      {"WT719", "NamesNobodyResolves", Level::kWarning, "a name that does not resolve is never called", "mend the name",
       "hetznercloud/hcloud-cloud-controller-manager#559", NamesNobodyResolves},
      {"WT713", "ScalesNobody", Level::kWarning, "the workload that was meant keeps its replicas",
       "mend spec.scaleTargetRef", "istio/istio#30203, #13977", ScalesNobody, false},
      {"WT723", "ReferenceMissing", Level::kInfo,
       "a registry that asks for credentials refuses; what registries have is not known here",
       "create the Secret (kubectl create secret docker-registry), or mend the name", "pulp/pulp-operator#407",
       ReferencesMissing, false},
      {"WT724", "IstiodOfAnotherRelease", Level::kWarning, "a mesh is judged by the release of its profile",
       "choose the profile of its release", "", IstiodOfAnotherRelease, false},
      {"WT726", "HubAlmostIstios", Level::kWarning,
       "where no registry has that name, the pod stays in ImagePullBackOff; what other registries have is not known "
       "here",
       "mend the hub: docker.io/istio, gcr.io/istio-release or registry.istio.io/release", "", HubAlmostIstios, false},
  };
  return *rules;
}

}  // namespace wavetank::check
