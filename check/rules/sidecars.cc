// Sidecars: which holds for a pod, and what they hide from it.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/model/host_name.h"
#include "core/xds/discovery_server.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::check {
namespace {

template <class Fn>
void EachSidecar(const Mesh& mesh, Fn fn) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->push == nullptr) continue;
    for (const config::SidecarRef& sidecar : cluster->configs.Sidecars()) fn(*cluster, *sidecar);
  }
}

void TwoSelectOnePod(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary) continue;
    std::set<std::pair<const void*, const void*>> told;
    for (const sim::PodProcess* pod : mesh.ServedPods(*cluster)) {
      const config::SidecarRef* first = nullptr;
      for (const config::SidecarRef& sidecar : cluster->configs.Sidecars()) {
        if (!sidecar->spec.workload_selector || sidecar->meta.ns != pod->pod()->meta.ns) continue;
        if (!Selects(*sidecar->spec.workload_selector, pod->pod()->meta.labels)) continue;
        if (first == nullptr) {
          first = &sidecar;
        } else if (told.insert({first->get(), sidecar.get()}).second) {
          findings.Add(
              *cluster, sidecar->meta,
              fmt::format("selects pod {}, as {} does: the older one holds", pod->name(), (*first)->meta.name));
        }
      }
    }
  }
}

void TwoWithoutSelector(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    std::map<std::string, std::string> first;
    for (const config::SidecarRef& sidecar : cluster->configs.Sidecars()) {
      if (sidecar->spec.workload_selector) continue;
      const auto [it, added] = first.emplace(sidecar->meta.ns, sidecar->meta.name);
      if (added) continue;
      findings.Add(*cluster, sidecar->meta,
                   fmt::format("has no workloadSelector, as {}: the older one holds for namespace {}", it->second,
                               sidecar->meta.ns));
    }
  }
}

// Namespace part and host of an egress host, "./h", "*/h", "ns/h".
bool Imports(const config::Sidecar& spec, const std::string& of_ns, const pilot::Service& service) {
  if (spec.egress.empty()) return true;
  for (const auto& egress : spec.egress) {
    for (const std::string& text : egress.hosts) {
      const size_t slash = text.find('/');
      std::string ns = slash == text.npos ? "*" : text.substr(0, slash);
      const std::string host = slash == text.npos ? text : text.substr(slash + 1);
      if (ns == ".") ns = of_ns;
      if ((ns == "*" || ns == service.attributes.ns) && pilot::HostMatches(host, service.hostname)) return true;
    }
  }
  return false;
}

// istiod: pilot/pkg/model/sidecar.go: the Sidecar's outboundTrafficPolicy before the mesh's.
bool RegistryOnly(const MeshCluster& cluster, const config::Sidecar& spec) {
  if (spec.outbound_traffic_policy)
    return spec.outbound_traffic_policy->mode == config::OutboundTrafficPolicy::Mode::kRegistryOnly;
  return cluster.push->mesh().outbound_traffic_policy == config::OutboundTrafficPolicy::Mode::kRegistryOnly;
}

// Namespaces of applications for whose pods it holds. istiod: pilot/pkg/model/push_context.go, initSidecarScopes: the
// one of the root namespace without a selector, where a namespace has none such of its own.
std::set<std::string> NamespacesOf(const Mesh& mesh, const MeshCluster& cluster, const config::ConfigMeta& meta,
                                   const config::Sidecar& spec) {
  std::set<std::string> out{meta.ns};
  if (meta.ns != cluster.root_namespace || spec.workload_selector) return out;
  for (const sim::PodProcess* pod : mesh.ServedPods(cluster)) {
    const std::string& ns = pod->pod()->meta.ns;
    const auto& all = cluster.configs.Sidecars();
    const bool own = std::any_of(all.begin(), all.end(), [&](const config::SidecarRef& other) {
      return other->meta.ns == ns && !other->spec.workload_selector;
    });
    if (pod->bootstrap() && !pod->router() && IsApplication(*pod) && !own) out.insert(ns);
  }
  return out;
}

// Of its client's pods. One that selects pods comes before the namespace's own (istiod:
// pilot/pkg/model/push_context.go, getSidecarScope).
bool HoldsForFlow(const Mesh& mesh, const MeshCluster& cluster, const config::ConfigMeta& meta,
                  const config::Sidecar& spec, const scenario::FlowSpec& flow) {
  const auto selects = [](const config::Sidecar& each, const sim::PodProcess& pod) {
    return each.workload_selector && Selects(*each.workload_selector, pod.pod()->meta.labels);
  };
  const auto pods = mesh.ServedPods(cluster);
  return std::any_of(pods.begin(), pods.end(), [&](const sim::PodProcess* pod) {
    if (pod->app() != flow.from_app || pod->pod()->meta.ns != meta.ns) return false;
    if (spec.workload_selector) return selects(spec, *pod);
    const auto& all = cluster.configs.Sidecars();
    return std::none_of(all.begin(), all.end(), [&](const config::SidecarRef& other) {
      return other->meta.ns == meta.ns && selects(other->spec, *pod);
    });
  });
}

void HidesRemoteService(const Mesh& mesh, Findings& findings) {
  EachSidecar(mesh, [&](const MeshCluster& cluster, const auto& sidecar) {
    const std::set<std::string> of = NamespacesOf(mesh, cluster, sidecar.meta, sidecar.spec);
    for (const pilot::ServiceRef& service : cluster.push->GetAllServices()) {
      // One of some workloads lists whom these call; that hides the others on purpose.
      if (sidecar.spec.workload_selector) break;
      const std::string& ns = service->attributes.ns;
      if (!of.contains(ns) || Imports(sidecar.spec, ns, *service)) continue;
      const auto* shards = cluster.istiod->discovery().endpoints().Find(service->hostname, service->attributes.ns);
      if (shards == nullptr) continue;
      for (const auto& [shard, endpoints] : shards->shards) {
        if (endpoints->empty() || shard.cluster.str() == cluster.name) continue;
        findings.Add(cluster, sidecar.meta,
                     ns == sidecar.meta.ns
                         ? fmt::format("hides {} of its own namespace, which has endpoints in {}, from the pods it "
                                       "holds for",
                                       service->hostname, shard.cluster.str())
                         : fmt::format("hides {}, which has endpoints in {}, from pods of its namespace, as it holds "
                                       "for every namespace without a Sidecar of its own",
                                       service->hostname, shard.cluster.str()));
        if (RegistryOnly(cluster, sidecar.spec)) {
          findings.Explain(
              "what no listener or route is for goes to BlackHoleCluster (outboundTrafficPolicy REGISTRY_ONLY): "
              "connections are closed, HTTP is answered 502",
              "add the host to egress.hosts");
        }
        break;
      }
    }
    // What the scenario's own traffic asks for.
    for (const scenario::FlowSpec& flow : mesh.scenario().flows) {
      const MeshCluster* from = mesh.Find(flow.from_cluster);
      if (from == nullptr || from->control_plane != cluster.name || flow.from_namespace != sidecar.meta.ns) continue;
      if (!HoldsForFlow(mesh, cluster, sidecar.meta, sidecar.spec, flow)) continue;
      const std::string host = flow.host.find(".svc") == flow.host.npos && flow.host.find('.') != flow.host.npos
                                   ? flow.host + ".svc.cluster.local"
                                   : FullHost(flow.host, flow.from_namespace);
      const pilot::ServiceRef service = ServiceOf(cluster, host);
      // Of its own namespace that was said above, but of one that selects pods.
      const bool own =
          service != nullptr && !sidecar.spec.workload_selector && service->attributes.ns == sidecar.meta.ns;
      if (service == nullptr || own || Imports(sidecar.spec, sidecar.meta.ns, *service)) continue;
      findings.Add(cluster, sidecar.meta, fmt::format("hides {}, which flow {} asks for", host, flow.name));
    }
  });
}

void HostOfNothing(const Mesh& mesh, Findings& findings) {
  EachSidecar(mesh, [&](const MeshCluster& cluster, const auto& sidecar) {
    for (const auto& egress : sidecar.spec.egress) {
      for (const std::string& text : egress.hosts) {
        config::Sidecar one;
        one.egress.emplace_back().hosts = {text};
        const auto& services = cluster.push->GetAllServices();
        const bool any = std::any_of(services.begin(), services.end(),
                                     [&](const auto& s) { return Imports(one, sidecar.meta.ns, *s); });
        if (any || text.starts_with("~/")) continue;
        findings.Add(cluster, sidecar.meta, fmt::format("egress host {} covers no service that istiod knows", text));
      }
    }
  });
}

// A Sidecar with ingress listeners has those alone.
void IngressMissesPort(const Mesh& mesh, Findings& findings) {
  EachSidecar(mesh, [&](const MeshCluster& cluster, const auto& sidecar) {
    if (sidecar.spec.ingress.empty()) return;
    for (const sim::PodProcess* pod : mesh.ServedPods(cluster)) {
      if (!pod->bootstrap() || pod->pod()->meta.ns != sidecar.meta.ns) continue;
      if (sidecar.spec.workload_selector && !Selects(*sidecar.spec.workload_selector, pod->pod()->meta.labels))
        continue;
      for (const kube::ObjectRef& object : ServicesBefore(mesh, *pod)) {
        for (const kube::ServicePort& port : kube::ParseService(*object).ports) {
          const int target = kube::TargetPortOf(port, kube::ParsePod(*pod->pod()));
          if (target == 0) continue;
          const bool there = std::any_of(sidecar.spec.ingress.begin(), sidecar.spec.ingress.end(),
                                         [&](const auto& i) { return static_cast<int>(i.port.number) == target; });
          if (there) continue;
          return findings.Add(cluster, sidecar.meta,
                              fmt::format("ingress lacks port {} of Service {}, which selects {}: policies and mesh "
                                          "settings of that port do not hold there",
                                          target, object->meta.name, pod->name()));
        }
      }
    }
  });
}

// istiod: pilot/pkg/model/sidecar.go: egress listeners with a port are of that port alone; one without takes the rest.
void EgressMissesPort(const Mesh& mesh, Findings& findings) {
  EachSidecar(mesh, [&](const MeshCluster& cluster, const auto& sidecar) {
    const auto& egress = sidecar.spec.egress;
    const bool rest = std::any_of(egress.begin(), egress.end(), [](const auto& e) { return !e.port.has_value(); });
    if (egress.empty() || rest) return;
    for (const pilot::ServiceRef& service : cluster.push->GetAllServices()) {
      if (service->attributes.ns != sidecar.meta.ns || !Imports(sidecar.spec, sidecar.meta.ns, *service)) continue;
      for (const pilot::Port& port : service->ports) {
        const bool listens = std::any_of(egress.begin(), egress.end(),
                                         [&](const auto& e) { return static_cast<int>(e.port->number) == port.port; });
        if (listens) continue;
        return findings.Add(cluster, sidecar.meta,
                            fmt::format("egress has listeners of named ports alone, and none is for port {} of {}: "
                                        "requests there pass the mesh by, without mesh TLS, and reach no other network",
                                        port.port, service->hostname));
      }
    }
  });
}

// What an ingress listener hands on comes to a port of the pod's own.
void IngressToNowhere(const Mesh& mesh, Findings& findings) {
  EachSidecar(mesh, [&](const MeshCluster& cluster, const auto& sidecar) {
    for (const auto& ingress : sidecar.spec.ingress) {
      const size_t colon = ingress.default_endpoint.rfind(':');
      if (colon == std::string::npos || ingress.default_endpoint.starts_with("unix:")) continue;
      const int to = std::atoi(ingress.default_endpoint.c_str() + colon + 1);
      for (const sim::PodProcess* pod : mesh.ServedPods(cluster)) {
        if (!pod->bootstrap() || pod->pod()->meta.ns != sidecar.meta.ns) continue;
        if (sidecar.spec.workload_selector && !Selects(*sidecar.spec.workload_selector, pod->pod()->meta.labels))
          continue;
        std::set<int> declared;
        for (const kube::ContainerPort& port : kube::ParsePod(*pod->pod()).ports) {
          if (!port.name.starts_with("http-envoy-prom")) declared.insert(port.container_port);
        }
        if (declared.empty() || declared.contains(to)) continue;
        findings.Add(
            cluster, sidecar.meta,
            fmt::format("ingress port {} leads to {}, and the containers of {} declare {}: where nothing "
                        "listens, connections are refused",
                        ingress.port.number, ingress.default_endpoint, pod->name(), fmt::join(declared, ", ")));
        break;
      }
    }
  });
}

}  // namespace

const std::vector<Rule>& SidecarRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT523", "SidecarIngressMissesPort", Level::kWarning, "named ingress listeners replace those of the Services",
       "add a listener for the port, or leave ingress out", "istio/istio#40919", IngressMissesPort},
      {"WT524", "SidecarEgressMissesPort", Level::kError,
       "a port that no listener is for goes to the passthrough cluster", "add a listener without a port for the rest",
       "", EgressMissesPort},
      {"WT581", "SidecarIngressToNowhere", Level::kError, "the sidecar hands requests on to its defaultEndpoint",
       "name the port that the application listens on", "", IngressToNowhere},
      {"IST0110", "ConflictingSidecarWorkloadSelectors", Level::kError, "one Sidecar holds for a pod",
       "let one select it", "istio/istio#24741", TwoSelectOnePod},
      {"IST0111", "MultipleSidecarsWithoutWorkloadSelectors", Level::kError, "one Sidecar holds for a namespace",
       "leave one of them", "istio/istio#18468", TwoWithoutSelector},
      {"WT521", "SidecarHidesRemoteService", Level::kError,
       "requests for it go to the passthrough cluster, and end nowhere", "add the host to egress.hosts",
       "istio/istio#23828", HidesRemoteService},
      {"WT522", "SidecarHostUnknown", Level::kWarning, "a mistake here hides what was meant", "mend NAMESPACE/HOST",
       "istio/istio#30798", HostOfNothing},
  };
  return *rules;
}

}  // namespace wavetank::check
