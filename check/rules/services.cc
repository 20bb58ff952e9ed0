// Kubernetes Services, alone and beside their namesakes in other clusters.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/ip.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/config/schema/protocol.h"
#include "core/xds/discovery_server.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "scenarios/language/yaml_reader.h"
#include "sim/network/corefile.h"
#include "sim/signing/istio_csr_settings.h"

namespace wavetank::check {
namespace {

using nlohmann::json;

struct Found {
  const MeshCluster* cluster;
  kube::ObjectRef object;
  const kube::Service* service;
};

// Services of applications, by namespace and name, in the clusters' order.
std::map<std::pair<std::string, std::string>, std::vector<Found>> Namesakes(const Mesh& mesh) {
  std::map<std::pair<std::string, std::string>, std::vector<Found>> out;
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& object : mesh.List(*cluster, "Service")) {
      if (IsSystemNamespace(mesh, object->meta.ns) || object->meta.name == "kubernetes") continue;
      out[{object->meta.ns, object->meta.name}].push_back({cluster.get(), object, &kube::ParseService(*object)});
    }
  }
  return out;
}

template <class Fn>
void EachOtherSide(const Mesh& mesh, Fn fn) {
  for (const auto& [name, found] : Namesakes(mesh)) {
    for (size_t i = 1; i < found.size(); ++i) fn(found[0], found[i]);
  }
}

void PortsDiffer(const Mesh& mesh, Findings& findings) {
  EachOtherSide(mesh, [&](const Found& a, const Found& b) {
    std::set<std::string> at_a, at_b;
    const auto text = [](const kube::ServicePort& p) {
      return p.protocol.empty() || p.protocol == "TCP" ? fmt::format("{}", p.port)
                                                       : fmt::format("{}/{}", p.port, p.protocol);
    };
    for (const auto& p : a.service->ports) at_a.insert(text(p));
    for (const auto& p : b.service->ports) at_b.insert(text(p));
    if (at_a == at_b || at_a.empty() || at_b.empty()) return;
    findings.Add(
        *b.cluster, *b.object,
        fmt::format("has ports {} here and {} in {}: istiod takes the ports of whichever cluster it read first, and "
                    "requests for the others fail",
                    fmt::join(at_b, ", "), fmt::join(at_a, ", "), a.cluster->name));
  });
}

void PortNamesDiffer(const Mesh& mesh, Findings& findings) {
  EachOtherSide(mesh, [&](const Found& a, const Found& b) {
    for (const auto& p : a.service->ports) {
      for (const auto& q : b.service->ports) {
        // One number may be a port of TCP and another of UDP.
        if (p.port != q.port || p.protocol != q.protocol || p.name == q.name) continue;
        findings.Add(
            *b.cluster, *b.object,
            fmt::format("port {} is named '{}' here and '{}' in {}: endpoints are matched by the port's name, and "
                        "one side's are left out",
                        p.port, q.name, p.name, a.cluster->name));
      }
    }
  });
}

void KindsDiffer(const Mesh& mesh, Findings& findings) {
  EachOtherSide(mesh, [&](const Found& a, const Found& b) {
    const auto headless = [](const kube::Service& s) { return s.cluster_ip == "None"; };
    const bool alias = b.service->type == "ExternalName";
    if (alias != (a.service->type == "ExternalName")) {
      const Found& named = alias ? b : a;
      const Found& other = alias ? a : b;
      findings.Add(*named.cluster, *named.object,
                   fmt::format("is an alias of {} here (ExternalName), and has pods in {}: clients here are led out of "
                               "the mesh, and its pods elsewhere are not theirs",
                               Text(At(named.object->body, "spec"), "externalName"), other.cluster->name));
      return findings.Explain({}, "make it the same type in every cluster, or give the alias a name of its own");
    }
    if (headless(*a.service) == headless(*b.service)) return;
    findings.Add(*b.cluster, *b.object,
                 fmt::format("is {} here and {} in {}", headless(*b.service) ? "headless" : "not headless",
                             headless(*a.service) ? "headless" : "not", a.cluster->name));
  });
}

// istioctl: pkg/config/analysis/analyzers/util/config.go, IsIstioControlPlane(): gateways' Services, too.
bool IsIstiosOwn(const kube::Object& service) {
  const auto release = service.meta.labels.find("release");
  return service.meta.labels.contains("istio") || (release != service.meta.labels.end() && release->second == "istio");
}

// Agents alone ask it, and no proxy stands between.
bool LeadsToIstioCsr(const Mesh& mesh, const Found& f) {
  const auto pods = Behind(mesh, *f.cluster, *f.object);
  return std::any_of(pods.begin(), pods.end(),
                     [](const auto* pod) { return sim::IstioCsrSettings::Of(pod->pod()->body).has_value(); });
}

void PortNames(const Mesh& mesh, Findings& findings) {
  for (const auto& [name, found] : Namesakes(mesh)) {
    for (const Found& f : found) {
      if (IsIstiosOwn(*f.object) || LeadsToIstioCsr(mesh, f)) continue;
      for (const kube::ServicePort& port : f.service->ports) {
        if (port.protocol != "TCP" || ProtocolOf(port) != pilot::Protocol::kUnsupported) continue;
        if (!port.app_protocol.empty()) continue;  // an application protocol of others
        findings.Add(
            *f.cluster, *f.object,
            fmt::format("the name '{}' of port {} begins with no protocol: it is detected per connection, and a "
                        "protocol in which the server speaks first waits for the timeout",
                        port.name, port.port));
      }
    }
  }
}

void SelectsNothing(const Mesh& mesh, Findings& findings) {
  for (const auto& [name, found] : Namesakes(mesh)) {
    // In another cluster its namesake may have pods: that is how Istio's guides do it.
    const bool any = std::any_of(found.begin(), found.end(),
                                 [&](const Found& f) { return !Behind(mesh, *f.cluster, *f.object).empty(); });
    if (any || !found[0].service->has_selector) continue;
    // Scaled to zero on purpose, and run at its time, is no mistake in a label.
    const Found& first = found[0];
    const bool meant = SomeTemplate(mesh, *first.cluster, first.object->meta.ns, [&first](const kube::Labels& labels) {
      return Selects(first.service->selector, labels);
    });
    if (meant) continue;
    findings.Add(*found[0].cluster, *found[0].object,
                 fmt::format("no pod of any cluster has the labels {}", LabelText(found[0].service->selector)));
  }
}

// A Service without pods of its own stands for those of other clusters; one whose selector is not theirs leaves its
// own cluster's pods out.
void SelectorsDiffer(const Mesh& mesh, Findings& findings) {
  for (const auto& [name, found] : Namesakes(mesh)) {
    for (const Found& f : found) {
      if (!f.service->has_selector || !Behind(mesh, *f.cluster, *f.object).empty()) continue;
      for (const Found& other : found) {
        if (!other.service->has_selector || other.service->selector == f.service->selector) continue;
        const auto pods = mesh.Pods(*f.cluster);
        const auto left = std::find_if(pods.begin(), pods.end(), [&](const auto* pod) {
          return pod->pod()->meta.ns == f.object->meta.ns && Selects(other.service->selector, pod->pod()->meta.labels);
        });
        if (left == pods.end()) continue;
        findings.Add(*f.cluster, *f.object,
                     fmt::format("selects {}, which no pod here has; in {} it selects {}, as which {} runs here",
                                 LabelText(f.service->selector), other.cluster->name,
                                 LabelText(other.service->selector), (*left)->name()));
        break;
      }
    }
  }
}

// Fn(cluster, Service a, port of a, Service b, port of b, pod) for Services of one namespace that select one pod.
template <class Fn>
void EachSharedPod(const Mesh& mesh, Fn fn) {
  for (const auto& cluster : mesh.clusters()) {
    std::map<std::string, std::vector<std::pair<kube::ObjectRef, const sim::PodProcess*>>> by_namespace;
    for (const kube::ObjectRef& object : mesh.List(*cluster, "Service")) {
      if (IsSystemNamespace(mesh, object->meta.ns)) continue;
      const auto pods = Behind(mesh, *cluster, *object);
      if (!pods.empty()) by_namespace[object->meta.ns].push_back({object, pods.front()});
    }
    for (const auto& [ns, services] : by_namespace) {
      for (size_t i = 0; i < services.size(); ++i) {
        for (size_t j = 0; j < i; ++j) {
          if (services[i].second != services[j].second) continue;
          for (const auto& p : kube::ParseService(*services[i].first).ports) {
            for (const auto& q : kube::ParseService(*services[j].first).ports)
              fn(*cluster, services[i].first, p, services[j].first, q, kube::ParsePod(*services[i].second->pod()));
          }
        }
      }
    }
  }
}

void ProtocolsOfOnePort(const Mesh& mesh, Findings& findings) {
  EachSharedPod(mesh, [&](const MeshCluster& cluster, const auto& a, const auto& p, const auto& b, const auto& q,
                          const kube::Pod& pod) {
    if (p.port != q.port || p.protocol != q.protocol || ProtocolOf(p) == ProtocolOf(q)) return;
    // istiod: pilot/pkg/networking/core/v1alpha3/listener_inbound.go: an inbound listener is of the target port.
    if (kube::TargetPortOf(p, pod) != kube::TargetPortOf(q, pod)) return;
    findings.Add(cluster, *a,
                 fmt::format("port {} is {} here and {} in Service {}, which selects the same pods", p.port,
                             pilot::ProtocolName(ProtocolOf(p)), pilot::ProtocolName(ProtocolOf(q)), b->meta.name));
  });
}

void PortsOfOneTarget(const Mesh& mesh, Findings& findings) {
  EachSharedPod(mesh, [&](const MeshCluster& cluster, const auto& a, const auto& p, const auto& b, const auto& q,
                          const kube::Pod& pod) {
    const int target = kube::TargetPortOf(p, pod);
    if (p.port == q.port || target == 0 || target != kube::TargetPortOf(q, pod)) return;
    findings.Add(cluster, *a,
                 fmt::format("target port {} is port {} here and port {} of Service {}, which selects the same pods",
                             target, p.port, q.port, b->meta.name));
  });
}

void ExternalNamePorts(const Mesh& mesh, Findings& findings) {
  for (const auto& [name, found] : Namesakes(mesh)) {
    for (const Found& f : found) {
      if (f.service->type != "ExternalName") continue;
      for (const kube::ServicePort& port : f.service->ports) {
        const pilot::Protocol protocol = ProtocolOf(port);
        if (protocol != pilot::Protocol::kTcp && protocol != pilot::Protocol::kUnsupported) continue;
        findings.Add(
            *f.cluster, *f.object,
            fmt::format("port {} '{}' of an ExternalName Service is TCP: without an address its listener takes the "
                        "port of everything else",
                        port.port, port.name));
      }
    }
  }
}

void ProtocolsDiffer(const Mesh& mesh, Findings& findings) {
  EachOtherSide(mesh, [&](const Found& a, const Found& b) {
    for (const auto& p : a.service->ports) {
      for (const auto& q : b.service->ports) {
        if (p.port != q.port || p.name != q.name || ProtocolOf(p) == ProtocolOf(q)) continue;
        findings.Add(*b.cluster, *b.object,
                     fmt::format("port {} is {} here and {} in {}: clients there speak another protocol than its "
                                 "sidecars here expect",
                                 p.port, pilot::ProtocolName(ProtocolOf(q)), pilot::ProtocolName(ProtocolOf(p)),
                                 a.cluster->name));
      }
    }
  });
}

// A pod that declares no ports at all may listen anywhere.
void TargetPortNotDeclared(const Mesh& mesh, Findings& findings) {
  for (const auto& [name, found] : Namesakes(mesh)) {
    for (const Found& f : found) {
      const auto pods = Behind(mesh, *f.cluster, *f.object);
      for (const kube::ServicePort& port : f.service->ports) {
        bool any = false, declares = false;
        for (const sim::PodProcess* pod : pods) {
          for (const kube::ContainerPort& c : kube::ParsePod(*pod->pod()).ports) {
            if (c.name.starts_with("http-envoy-prom")) continue;  // the sidecar's
            declares = true;
            any = any || c.container_port == kube::TargetPortOf(port, kube::ParsePod(*pod->pod()));
          }
          for (const json& container : Items(At(pod->pod()->body, {"spec", "containers"})))
            any = any || IsTold(container, kube::TargetPortOf(port, kube::ParsePod(*pod->pod())));
        }
        const bool named = !port.target_port_name.empty();
        if (any || pods.empty() || (!declares && !named)) continue;
        findings.Add(*f.cluster, *f.object,
                     named ? fmt::format("port {} leads to the container port named '{}', which no pod behind it has: "
                                         "it has no endpoints",
                                         port.port, port.target_port_name)
                           : fmt::format("port {} leads to {}, and no pod behind it declares that port: where "
                                         "nothing listens, connections are refused",
                                         port.port, port.Target()));
      }
    }
  }
}

// A client asks its own cluster's DNS for an address before its sidecar sees anything.
void NameUnknown(const Mesh& mesh, Findings& findings) {
  for (const auto& [name, found] : Namesakes(mesh)) {
    if (found.size() == mesh.clusters().size()) continue;
    // A gateway's Service is for those outside.
    const auto behind = Behind(mesh, *found[0].cluster, *found[0].object);
    if (std::any_of(behind.begin(), behind.end(), [](const auto* pod) { return pod->router(); })) continue;
    for (const auto& cluster : mesh.clusters()) {
      const bool here =
          std::any_of(found.begin(), found.end(), [&](const Found& f) { return f.cluster == cluster.get(); });
      if (here || NamesMembersAtHome(mesh, *found[0].cluster, *found[0].object, *cluster)) continue;
      const auto pods = mesh.Pods(*cluster);
      const auto client = std::find_if(pods.begin(), pods.end(), [&, ns = &name.first](const auto* pod) {
        return IsApplication(*pod) && pod->bootstrap() && pod->pod()->meta.ns == *ns;
      });
      // Clients of other namespaces, where requests were sent.
      const auto& sent = findings.requests();
      const bool asked = std::any_of(sent.begin(), sent.end(), [&, key = &name](const RequestOutcome& r) {
        return r.cluster == cluster->name && r.ns == key->first && r.service == key->second && r.failed == r.sent &&
               !r.reasons.empty() && r.reasons.front().find("no such host") != std::string::npos;
      });
      if (!asked && (client == pods.end() || (*client)->ResolveName(FullHost(name.second, name.first)).ok())) continue;
      findings.Add(*found[0].cluster, *found[0].object,
                   fmt::format("is not in {}, where {} does not resolve: clients there never reach it", cluster->name,
                               FullHost(name.second, name.first)));
    }
  }
}

// A cluster's DNS has the addresses of its own pods for a headless name; only an agent that answers for istiod knows
// those of other clusters (istiod: pkg/dns/server/name_table.go).
void HeadlessWithoutPodsHere(const Mesh& mesh, Findings& findings) {
  for (const auto& [name, found] : Namesakes(mesh)) {
    std::string there;
    for (const Found& f : found) {
      if (!Behind(mesh, *f.cluster, *f.object).empty()) there = f.cluster->name;
    }
    if (there.empty()) continue;
    for (const Found& f : found) {
      if (f.service->cluster_ip != "None" || !Behind(mesh, *f.cluster, *f.object).empty()) continue;
      const auto pods = mesh.Pods(*f.cluster);
      const auto client = std::find_if(pods.begin(), pods.end(), [&, ns = &name.first](const auto* pod) {
        return IsApplication(*pod) && pod->bootstrap() && pod->pod()->meta.ns == *ns;
      });
      if (client == pods.end() || (*client)->ResolveName(FullHost(name.second, name.first)).ok()) continue;
      findings.Add(*f.cluster, *f.object,
                   fmt::format("is headless, and its pods are in {} alone: {} does not resolve here", there,
                               FullHost(name.second, name.first)));
    }
  }
}

// istiod: pilot/pkg/networking/core/v1alpha3/cluster_builder.go, convertResolution: ORIGINAL_DST, to the address that
// the client asked its own cluster's DNS for.
void HeadlessOverNetworks(const Mesh& mesh, Findings& findings) {
  for (const auto& [name, found] : Namesakes(mesh)) {
    const Found* first = nullptr;
    for (const Found& f : found) {
      if (f.service->cluster_ip != "None" || Behind(mesh, *f.cluster, *f.object).empty()) continue;
      if (first == nullptr) {
        first = &f;
      } else if (f.cluster->network != first->cluster->network) {
        findings.Add(
            *f.cluster, *f.object,
            fmt::format("is headless, with pods in {} and {}: clients of either reach those of their own cluster "
                        "alone",
                        first->cluster->name, f.cluster->name));
      }
    }
  }
}

void InternalLocal(const Mesh& mesh, Findings& findings) {
  for (const auto& [name, found] : Namesakes(mesh)) {
    for (const Found& f : found) {
      if (f.service->internal_traffic_policy != "Local") continue;
      // An agent of every node's, whom its own node's pods ask, is meant to be so.
      const auto pods = Behind(mesh, *f.cluster, *f.object);
      if (!pods.empty() && std::all_of(pods.begin(), pods.end(), [&](const sim::PodProcess* pod) {
            return OwnerOf(mesh, *f.cluster, *pod)->kind == "DaemonSet";
          }))
        continue;
      findings.Add(*f.cluster, *f.object,
                   "internalTrafficPolicy Local: a client is answered by pods of its own node alone, and by nobody "
                   "where there is none; other clusters' pods are never asked");
    }
  }
}

void Hidden(const Mesh& mesh, Findings& findings) {
  const auto exported = [](const Found& f) {
    const auto it = f.object->meta.annotations.find("networking.istio.io/exportTo");
    return it == f.object->meta.annotations.end() ? std::string() : it->second;
  };
  std::set<std::string> hidden;
  for (const auto& [name, found] : Namesakes(mesh)) {
    for (const Found& f : found) {
      const MeshCluster* primary = mesh.Find(f.cluster->control_plane);
      if (exported(f).empty() && primary != nullptr && primary->push != nullptr && !hidden.contains(f.cluster->name)) {
        const auto& to = primary->push->mesh().default_service_export_to;
        if (std::find(to.begin(), to.end(), "*") == to.end() && !to.empty()) {
          hidden.insert(f.cluster->name);
          findings.Add(
              *primary, MeshConfigMap(mesh, *primary),
              fmt::format("defaultServiceExportTo '{}': {}/{} and all Services of {} that say nothing else are "
                          "unknown outside of their namespace, to gateways between networks as well",
                          fmt::join(to, ", "), name.first, name.second, f.cluster->name));
          findings.Explain({},
                           "leave meshConfig.defaultServiceExportTo out, or annotate Services "
                           "networking.istio.io/exportTo: \"*\"");
        }
      }
      if (exported(f) == "~")
        findings.Add(*f.cluster, *f.object, "exportTo '~': no proxy of the mesh knows the Service");
      if (exported(f).empty() || exported(f) == "~" || primary == nullptr || primary->push == nullptr) continue;
      const std::vector<std::string> to = absl::StrSplit(exported(f), ',');
      const auto blank = std::find_if(to.begin(), to.end(),
                                      [](const std::string& each) { return each != absl::StripAsciiWhitespace(each); });
      if (blank != to.end()) {
        // istiod: pilot/pkg/serviceregistry/kube/conversion.go splits at commas, and nothing else.
        findings.Add(*f.cluster, *f.object,
                     fmt::format("exportTo '{}': istiod takes '{}' with its blank for a namespace, which is none",
                                 exported(f), *blank));
        findings.Explain({}, "write the namespaces with commas alone between them");
      } else if (!SeenBySomeone(mesh, *primary, to, f.object->meta.ns)) {
        findings.Add(*f.cluster, *f.object,
                     fmt::format("exportTo '{}': no proxy there that could call it: clients' sidecars pass such "
                                 "requests on as to a stranger, to the pods of their own cluster alone",
                                 exported(f)));
        findings.Explain({}, "export it to the clients' namespaces and to that of the gateway between networks");
      }
    }
  }
  EachOtherSide(mesh, [&](const Found& a, const Found& b) {
    if (exported(a) == exported(b)) return;
    findings.Add(*b.cluster, *b.object,
                 fmt::format("exportTo is '{}' here and '{}' in {}: proxies of the two clusters see different services",
                             exported(b), exported(a), a.cluster->name));
  });
}

// grpc-go: http2_server.go, NewServerTransport: what is no HTTP/2 is hung up on.
void Http2BehindHttp1Port(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& object : mesh.List(*cluster, "Service")) {
      const kube::Service& service = kube::ParseService(*object);
      for (const kube::ServicePort& port : service.ports) {
        const pilot::Protocol said =
            port.app_protocol.empty() ? ProtocolNamed(port) : pilot::ParseProtocol(port.app_protocol);
        if (said != pilot::Protocol::kHttp) continue;
        std::set<std::string_view> told;
        for (const sim::PodProcess* pod : Behind(mesh, *cluster, *object)) {
          for (const kube::ContainerPort& c : kube::ParsePod(*pod->pod()).ports) {
            const bool meant =
                port.target_port_name.empty() ? c.container_port == port.Target() : c.name == port.target_port_name;
            if (!meant || !pilot::IsHttp2(pilot::ParseProtocol(c.name.substr(0, c.name.find('-')))) ||
                !told.insert(c.name).second)
              continue;
            findings.Add(*cluster, *object,
                         fmt::format("port {} says {} and leads to the container port {} named {}: sidecars speak "
                                     "HTTP/1.1 to it, and servers of gRPC hang up on that (503, UC)",
                                     port.port, port.app_protocol.empty() ? "http by its name" : "appProtocol http",
                                     c.container_port, c.name));
          }
        }
      }
    }
  }
}

// istiod: pkg/kube/conversion.go, ConvertProtocol: appProtocol before the name.
void AppProtocolAgainstName(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& object : mesh.List(*cluster, "Service")) {
      if (IsSystemNamespace(mesh, object->meta.ns)) continue;
      for (const kube::ServicePort& port : kube::ParseService(*object).ports) {
        if (port.app_protocol.empty()) continue;
        const pilot::Protocol named = ProtocolNamed(port);
        const pilot::Protocol said = pilot::ParseProtocol(port.app_protocol);
        if (pilot::IsUnsupported(named) || pilot::IsUnsupported(said)) continue;
        const bool downgraded = pilot::IsHttp2(named) && !pilot::IsHttp2(said);
        if (pilot::IsHttp(named) == pilot::IsHttp(said) && pilot::IsTls(named) == pilot::IsTls(said) && !downgraded)
          continue;
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
        const pilot::Protocol named = ProtocolNamed(port);
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

// Without a selector somebody has to write its endpoints.
void ServiceWithoutEndpoints(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    const MeshCluster* const primary = mesh.Find(cluster->control_plane);
    if (primary == nullptr || primary->istiod == nullptr) continue;
    for (const kube::ObjectRef& object : mesh.List(*cluster, "Service")) {
      const kube::Service& service = kube::ParseService(*object);
      if (service.has_selector || service.type == "ExternalName" || IsSystemNamespace(mesh, object->meta.ns) ||
          (object->meta.ns == "default" && object->meta.name == "kubernetes")) {
        continue;
      }
      const std::string host = FullHost(object->meta.name, object->meta.ns);
      const auto* shards = primary->istiod->discovery().endpoints().Find(host, object->meta.ns);
      const bool any = shards != nullptr && std::any_of(shards->shards.begin(), shards->shards.end(),
                                                        [](const auto& shard) { return !shard.second->empty(); });
      if (!any) {
        findings.Add(*cluster, *object, "has no selector, and nobody writes Endpoints or EndpointSlices for it");
        continue;
      }
      // An endpoint belongs to the Service's port of its own port's name.
      std::set<std::string> names;
      for (const auto& [_, shard] : shards->shards) {
        for (const auto& endpoint : *shard) names.insert(endpoint.p().service_port_name);
      }
      for (const kube::ServicePort& port : service.ports) {
        if (names.contains(port.name) || port.protocol != "TCP") continue;
        findings.Add(*cluster, *object,
                     fmt::format("port {} is called '{}', and those of its Endpoints or EndpointSlices '{}': none of "
                                 "them is this port's",
                                 port.port, port.name, fmt::join(names, "', '")));
        findings.Explain({}, "give the ports of both the same names");
      }
    }
  }
}

// istiod: pilot/pkg/serviceregistry/kube/conversion.go reads no sessionAffinity.
void SessionAffinityUnheeded(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& object : mesh.List(*cluster, "Service")) {
      if (Text(At(object->body, "spec"), "sessionAffinity") != "ClientIP" || IsSystemNamespace(mesh, object->meta.ns))
        continue;
      findings.Add(*cluster, *object,
                   "sessionAffinity ClientIP: kube-proxy heeds it, sidecars and gateways balance each request anew");
    }
  }
}

// CoreDNS of each cluster, where its configuration is among the objects: whether it reads it, and answers for Services.
void ClusterDnsMisreads(const Mesh& mesh, Findings& findings) {
  // coredns: plugin.cfg.
  static const auto* const known = new std::vector<std::string_view>{
      "metadata",   "geoip",       "cancel",     "tls",       "timeouts", "multisocket", "reload",   "nsid",
      "bufsize",    "root",        "bind",       "debug",     "trace",    "ready",       "health",   "pprof",
      "prometheus", "errors",      "log",        "dnstap",    "local",    "dns64",       "acl",      "any",
      "chaos",      "loadbalance", "tsig",       "cache",     "rewrite",  "header",      "dnssec",   "autopath",
      "minimal",    "template",    "transfer",   "hosts",     "route53",  "azure",       "clouddns", "k8s_external",
      "kubernetes", "file",        "auto",       "secondary", "etcd",     "loop",        "forward",  "grpc",
      "erratic",    "whoami",      "on",         "sign",      "view",     "nomad",       "import",   "startup",
      "shutdown",   "quic",        "proxyproto", "https",     "https3",   "grpc_server", "shed"};
  for (const auto& cluster : mesh.clusters()) {
    const kube::ObjectRef map = mesh.Get(*cluster, "ConfigMap", "kube-system", "coredns");
    if (map == nullptr) continue;
    const json& text = At(map->body, {"data", "Corefile"});
    if (!text.is_string()) {
      findings.Add(*cluster, *map, "has no key Corefile: CoreDNS serves nothing of the cluster");
      findings.Explain({}, "write the configuration below data.Corefile");
      continue;
    }
    const sim::Corefile::Files files =
        sim::Corefile::FilesOf(map.get(), mesh.Get(*cluster, "ConfigMap", "kube-system", "coredns-custom").get());
    const absl::StatusOr<std::vector<sim::Corefile::Server>> read = sim::Corefile::Read(TextOf(text), &files);
    const absl::Status wrong = read.ok() ? sim::Corefile::Make(TextOf(text), &files).status() : read.status();
    if (!wrong.ok()) {
      findings.Add(*cluster, *map, fmt::format("Corefile: {}: CoreDNS does not read it", Message(wrong)));
      continue;
    }
    const std::vector<sim::Corefile::Server>& servers = *read;
    std::string domain = "cluster.local";
    for (const sim::PodProcess* pod : mesh.Pods(*cluster)) domain = pod->site().domain;
    bool serves = false, unknown = false;
    std::set<std::string> addresses;
    std::string range;  // an address of it
    for (const kube::ObjectRef& service : mesh.List(*cluster, "Service")) {
      const std::string address = Text(At(service->body, "spec"), "clusterIP");
      addresses.insert(address);
      if (IpAddress::Parse(address).ok()) range = address;
    }
    for (const sim::Corefile::Server& server : servers) {
      for (const sim::Corefile::Plugin& plugin : server.plugins) {
        if (std::find(known->begin(), known->end(), plugin.name) == known->end()) {
          const std::string_view near = scenario::Nearest(plugin.name, *known);
          findings.Add(*cluster, *map,
                       fmt::format("Corefile, {}: '{}' is no plugin of CoreDNS, which does not read the file",
                                   plugin.place, plugin.name));
          if (!near.empty()) findings.Explain({}, fmt::format("write {}", near));
          unknown = true;
        }
        if (plugin.name == "kubernetes") {
          std::vector<std::string> zones = plugin.words.empty() ? server.zones : plugin.words;
          serves = serves || std::any_of(zones.begin(), zones.end(), [&](const std::string& zone) {
                     const std::string of = sim::Corefile::ZoneOf(zone);
                     return of.empty() || of == domain || domain.ends_with("." + of);
                   });
        }
        if (plugin.name == "forward" && plugin.words.size() > 1) {
          for (size_t i = 1; i < plugin.words.size(); ++i) {
            const std::string to = plugin.words[i].substr(0, plugin.words[i].find(':'));
            const size_t dot = range.rfind('.', range.rfind('.') - 1);
            if (dot == range.npos || !IpAddress::Parse(to).ok() || !to.starts_with(range.substr(0, dot + 1)) ||
                addresses.contains(to))
              continue;
            findings.Add(*cluster, *map,
                         fmt::format("Corefile, {}: queries for {} go to {}, an address of Services that none has",
                                     plugin.place, fmt::join(server.zones, ", "), to));
            findings.Explain("a cluster IP changes when its Service is made anew, and names of that zone time out",
                             "write the Service's address of today, or give it one that stays (spec.clusterIP)");
          }
        }
      }
    }
    if (serves || unknown) continue;
    findings.Add(
        *cluster, *map,
        fmt::format("Corefile: no server answers for {} by the kubernetes plugin: no Service's name resolves", domain));
    findings.Explain("istiod and proxies ask for names below the cluster's domain",
                     fmt::format("write: kubernetes {} in-addr.arpa ip6.arpa; or install Istio with global.proxy."
                                 "clusterDomain as CoreDNS has it",
                                 domain));
  }
}

}  // namespace

const std::vector<Rule>& ServiceRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT401", "PortsDifferAcrossClusters", Level::kError, "istiod merges addresses of namesakes, not their ports",
       "give the Service the same ports in every cluster", "istio/istio#46105", PortsDiffer},
      {"WT730", "ClusterDnsMisreads", Level::kError, "names that the cluster's DNS does not answer for do not resolve",
       "mend the Corefile: CoreDNS goes on with the one before until it is started anew", "coredns/deployment#215",
       ClusterDnsMisreads, false},
      {"WT414", "HeadlessWithoutPodsHere", Level::kWarning,
       "Kubernetes' DNS answers for a headless Service with the addresses of its own cluster's pods",
       "switch the agents' DNS on (ISTIO_META_DNS_CAPTURE), or give the clients a Service with an address",
       "istio/istio#31787, #34582", HeadlessWithoutPodsHere},
      {"WT402", "PortNamesDifferAcrossClusters", Level::kError, "an endpoint belongs to the Service's port of its name",
       "name the port the same in every cluster", "istio/istio#46105", PortNamesDiffer},
      {"WT403", "KindsDifferAcrossClusters", Level::kWarning,
       "istiod takes the resolution of the Service that it read first", "make it headless everywhere or nowhere",
       "istio/istio#36733", KindsDiffer},
      {"WT404", "ProtocolsDifferAcrossClusters", Level::kWarning,
       "each istiod configures its own proxies by its own cluster's Service",
       "give the port the same name and appProtocol in every cluster", "", ProtocolsDiffer},
      {"WT406", "TargetPortNotDeclared", Level::kWarning, "nothing listens where the Service leads",
       "mend targetPort, or declare the container's port", "kubernetes/kubernetes#83145", TargetPortNotDeclared},
      {"WT407", "ServiceNameUnknownElsewhere", Level::kWarning, "a name must resolve before a sidecar can route it",
       "create the Service in every cluster that has clients of it, or switch on DNS proxying (ISTIO_META_DNS_CAPTURE)",
       "istio/istio#31760, #17087", NameUnknown},
      {"WT417", "HeadlessOverNetworks", Level::kInfo,
       "a sidecar sends requests for a headless Service where its client's DNS says",
       "give the clients a Service with an address, if any pod will do", "istio/istio#27342", HeadlessOverNetworks,
       false},
      {"WT408", "InternalTrafficPolicyLocal", Level::kWarning, "istiod keeps such endpoints within their node",
       "leave internalTrafficPolicy out, or run a pod on every node that has clients", "istio/istio#42377",
       InternalLocal},
      {"WT409", "ServiceHidden", Level::kWarning, "istiod tells of a Service only where it is exported to",
       "give the annotation networking.istio.io/exportTo the same value in every cluster, and not ~",
       "istio/istio#60560", Hidden},
      {"WT410", "SelectorsDifferAcrossClusters", Level::kError,
       "a Service and its namesakes in other clusters are one, and this one's pods take no part",
       "mend the selector: give the Service the same one in every cluster", "", SelectorsDiffer},
      {"WT405", "ServiceSelectsNothing", Level::kWarning, "requests find no endpoint",
       "mend the selector or the pods' labels", "kubernetes/kubernetes#47711, #7341", SelectsNothing},
      {"IST0118", "PortNameIsNotUnderNamingConvention", Level::kInfo, "istiod guesses the protocol",
       "name the port PROTOCOL[-SUFFIX], or set appProtocol", "istio/istio#3117", PortNames},
      {"IST0116", "DeploymentAssociatedToMultipleServices", Level::kWarning,
       "a pod's port has one inbound listener, of one protocol", "let both Services name the same protocol",
       "istio/community#748", ProtocolsOfOnePort},
      {"IST0137", "DeploymentConflictingPorts", Level::kWarning,
       "inbound traffic of one target port has one Service port", "use the same port in both Services",
       "istio/istio#29302", PortsOfOneTarget},
      {"IST0150", "ExternalNameServiceTypeInvalidPortName", Level::kWarning,
       "TCP has nothing but the port to tell it by", "name the port for its protocol: http, https, tls, ...",
       "istio/istio#20703", ExternalNamePorts},
      {"WT411", "AppProtocolAgainstName", Level::kWarning, "appProtocol counts, whatever the name says",
       "write both for one protocol", "", AppProtocolAgainstName},
      {"WT418", "Http2BehindHttp1Port", Level::kWarning, "a port is of the protocol that the Service says",
       "name the Service's port grpc or http2, or give it that appProtocol", "istio/istio#19966", Http2BehindHttp1Port},
      {"WT413", "UdpCalledOtherwise", Level::kWarning,
       "the mesh has no UDP: such a port has no listener and no cluster", "say protocol: TCP, or leave it out", "",
       UdpCalledOtherwise},
      {"WT415", "ServiceWithoutEndpoints", Level::kWarning, "requests find no endpoint (503, UH)",
       "give it a selector, or write its EndpointSlice; a host outside is a ServiceEntry's", "istio/istio#17439",
       ServiceWithoutEndpoints},
      {"WT416", "SessionAffinityUnheeded", Level::kWarning, "a client meets another pod with each request",
       "write a DestinationRule with loadBalancer.consistentHash", "istio/istio#6011", SessionAffinityUnheeded, false},
  };
  return *rules;
}

}  // namespace wavetank::check
