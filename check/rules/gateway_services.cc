// The Services and pods by which other networks come in.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/model/host_name.h"
#include "core/model/labels.h"
#include "fakes/kube/services/metal_lb.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

using nlohmann::json;

constexpr int kGatewayPort = 15443;

// Fn(cluster, Service object, Service).
template <class Fn>
void EachGatewayService(const Mesh& mesh, Fn fn) {
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& service : NetworkGatewayServices(mesh, *cluster)) {
      fn(*cluster, *service, kube::ParseService(*service));
    }
  }
}

// As a dump says: there it had no address yet, though the simulated cloud gives one.
bool PendingInDump(const Mesh& mesh, const std::string& cluster, const kube::Object& service) {
  for (const BroughtObject& b : mesh.brought()) {
    if (!b.dumped || b.cluster != cluster || Text(b.object, "kind") != "Service") continue;
    const auto& meta = At(b.object, "metadata");
    if (Text(meta, "name") != service.meta.name || Text(meta, "namespace") != service.meta.ns) continue;
    return Items(At(b.status, {"loadBalancer", "ingress"})).empty();
  }
  return false;
}

void GatewayWithoutAddress(const Mesh& mesh, Findings& findings) {
  EachGatewayService(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const kube::Service& service) {
    if (!service.external_ips.empty()) return;
    if (service.type == "NodePort") return;
    const bool pending =
        service.type == "LoadBalancer" && (service.ingress.empty() || PendingInDump(mesh, cluster.name, object));
    if (service.type == "LoadBalancer" && !pending) return;
    findings.Add(
        cluster, object,
        fmt::format("the gateway of network {} has no external address: it is of type {}{}", NetworkOfGateway(object),
                    service.type.empty() ? "ClusterIP" : service.type, pending ? ", still pending" : ""));
    const fakekube::BalancerWish wish = fakekube::WishOf(mesh.world().cluster(cluster.name).api(), object);
    if (!pending || !wish.refused) return;
    findings.Explain(
        "MetalLB gives nothing to a Service that asks for a pool, an address or a class (loadBalancerClass) that it "
        "does "
        "not have, or whose pool is for others (serviceAllocation)",
        "mend spec.loadBalancerIP, loadBalancerClass or MetalLB's annotations (address-pool, loadBalancerIPs), or the "
        "pool");
  });
}

void NodePortWithoutAddress(const Mesh& mesh, Findings& findings) {
  EachGatewayService(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const kube::Service& service) {
    if (service.type != "NodePort" || !service.external_ips.empty()) return;
    const auto annotation = object.meta.annotations.find(pilot::kNodeSelectorAnnotation);
    if (annotation == object.meta.annotations.end()) {
      return findings.Add(
          cluster, object,
          fmt::format("a NodePort gateway without the annotation {}: istiod takes no node's address for it",
                      pilot::kNodeSelectorAnnotation));
    }
    for (const kube::ObjectRef& node : mesh.List(cluster, "Node")) {
      if (!kube::ParseNode(*node).external_ip.empty()) return;
    }
    findings.Add(cluster, object, "a NodePort gateway, and no node of the cluster has an ExternalIP");
  });
}

void GatewayOfAnotherNetwork(const Mesh& mesh, Findings& findings) {
  EachGatewayService(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const kube::Service&) {
    const std::string network = NetworkOfGateway(object);
    if (cluster.label.empty() || network == cluster.label) return;
    findings.Add(
        cluster, object,
        fmt::format("the gateway is labelled network {}, and the cluster's own pods are in {}: requests for {} "
                    "come to a gateway that does not know its pods",
                    network, cluster.label, network));
  });
}

void MixedAddresses(const Mesh& mesh, Findings& findings) {
  EachGatewayService(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const kube::Service& service) {
    if (service.external_ips.empty() || service.ingress.empty()) return;
    findings.Add(cluster, object,
                 fmt::format("the gateway has a load balancer's address and {} in externalIPs; istiod sends both to "
                             "everybody, and a share of requests to whichever cannot be reached",
                             service.external_ips.size()));
  });
}

// Some node would refuse: kube-proxy drops what reaches a node without a pod of the Service.
void LocalTrafficPolicy(const Mesh& mesh, Findings& findings) {
  EachGatewayService(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const kube::Service& service) {
    if (Text(At(object.body, "spec"), "externalTrafficPolicy") != "Local") return;
    std::set<std::string> with, all;
    for (const sim::PodProcess* pod : Behind(mesh, cluster, object)) with.insert(kube::ParsePod(*pod->pod()).node_name);
    for (const kube::ObjectRef& node : mesh.List(cluster, "Node")) all.insert(node->meta.name);
    if (service.type == "LoadBalancer" && with.size() > 1) return;  // its health checks leave empty nodes out
    if (service.type == "NodePort" && with.size() == all.size()) return;
    findings.Add(
        cluster, object,
        fmt::format("externalTrafficPolicy Local, and pods of the gateway on {} of {} nodes: {}", with.size(),
                    all.size(),
                    service.type == "NodePort" ? "istiod sends every node's address, and nodes without a pod drop"
                                               : "while its one node's pod moves, nothing comes in"));
  });
}

// Fn(cluster, Service object, address) of each address that a load balancer of the mesh was given.
template <class Fn>
void EachBalancerAddress(const Mesh& mesh, Fn fn) {
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& object : mesh.List(*cluster, "Service")) {
      const kube::Service& service = kube::ParseService(*object);
      if (service.type != "LoadBalancer") continue;
      for (const auto& ingress : service.ingress) {
        if (!ingress.ip.empty()) fn(*cluster, object, ingress.ip);
      }
    }
  }
}

// Two clouds, or pools of MetalLB, that do not know of each other gave one address away twice.
void BalancerAddressTwice(const Mesh& mesh, Findings& findings) {
  std::map<std::string, std::pair<const MeshCluster*, kube::ObjectRef>> first;
  EachBalancerAddress(mesh, [&](const MeshCluster& cluster, const kube::ObjectRef& object, const std::string& address) {
    const auto& [has, service] = first.try_emplace(address, &cluster, object).first->second;
    if (has == &cluster) return;
    findings.Add(
        cluster, *object,
        fmt::format("its load balancer has the address {}, and so has {} in {}: pods of {} that dial it come to "
                    "their own, and those of {} to theirs",
                    address, NameOf(*service), has->name, cluster.name, has->name));
  });
}

void BalancerAddressUnannounced(const Mesh& mesh, Findings& findings) {
  EachBalancerAddress(mesh, [&](const MeshCluster& cluster, const kube::ObjectRef& object, const std::string& address) {
    const fakekube::ApiServer& api = mesh.world().cluster(cluster.name).api();
    if (fakekube::AnnouncesByMetalLb(api, address)) return;
    const kube::ObjectRef pool = fakekube::PoolOf(api, address);
    findings.Add(cluster, *object,
                 fmt::format("MetalLB gave it {}, and no L2Advertisement of a node that is there, nor BGPAdvertisement "
                             "with a BGPPeer, names in {} its pool {}: "
                             "outside the cluster nothing answers for the address",
                             address, pool->meta.ns, pool->meta.name));
  });
}

// A pod with such labels whose container still has the image that injection replaces; null: there is none.
kube::ObjectRef PodWithImageAuto(const Mesh& mesh, const MeshCluster& cluster, const std::string& ns,
                                 const kube::Labels& labels) {
  for (const kube::ObjectRef& pod : mesh.List(cluster, "Pod", ns)) {
    if (!Selects(labels, pod->meta.labels)) continue;
    for (const auto& container : Items(At(pod->body, {"spec", "containers"}))) {
      if (Text(container, "image") == "auto") return pod;
    }
  }
  return nullptr;
}

void GatewayWithoutPods(const Mesh& mesh, Findings& findings) {
  EachGatewayService(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const kube::Service& service) {
    const auto pods = Behind(mesh, cluster, object);
    const bool proxy = std::any_of(pods.begin(), pods.end(), [](const auto* pod) { return pod->router(); });
    if (proxy || !service.has_selector || cluster.istiod == nullptr) return;  // without an istiod nothing is injected
    const kube::ObjectRef workload = WorkloadFor(mesh, cluster, object.meta.ns, service.selector);
    if (workload == nullptr) {
      return findings.Add(
          cluster, object,
          fmt::format("no gateway pod is behind it: nothing that runs has the labels {}", LabelText(service.selector)));
    }
    const int64_t wanted = NumberOf(At(workload->body, {"spec", "replicas"}), 1);
    if (const kube::ObjectRef pod = PodWithImageAuto(mesh, cluster, object.meta.ns, service.selector); pod != nullptr) {
      const auto [why, remedy] = WhyNotInjected(mesh, cluster, *pod);
      findings.Add(cluster, *workload,
                   fmt::format("nobody injected its pods, whose image auto is none, and nothing else is behind gateway "
                               "Service {}{}{}",
                               object.meta.name, why.empty() ? "" : ": ", why));
      findings.Explain(
          "a gateway's container is what injection makes of it",
          remedy.empty() ? "label its template sidecar.istio.io/inject=true (gateways of a revision: istio.io/rev), in "
                           "a namespace that is not istio-injection=disabled, and create the pods anew"
                         : remedy + ", and create the pods anew");
      return;
    }
    // istiod: manifests/charts/gateway: the template of gateways is asked for by the pods' annotation.
    const bool sidecar = !pods.empty() && std::all_of(pods.begin(), pods.end(), [](const auto* pod) {
      return pod->bootstrap().has_value() && !pod->router();
    });
    if (sidecar) {
      findings.Add(
          cluster, *workload,
          fmt::format("its pods are injected as sidecars, and nothing else is behind gateway Service {}: their "
                      "annotation inject.istio.io/templates is not gateway",
                      object.meta.name));
      findings.Explain("a Gateway's configuration is for proxies that run as gateways",
                       "annotate the pods' template inject.istio.io/templates: gateway");
      return;
    }
    findings.Add(cluster, *workload,
                 wanted == 0
                     ? fmt::format("wants 0 replicas, and no other pod is behind gateway Service {}", object.meta.name)
                     : fmt::format("{}nothing else is behind gateway Service {}", kNoProxyRuns, object.meta.name));
    findings.Explain("the network's way in leads nowhere: other networks' requests time out or are refused",
                     wanted == 0 ? "scale it up, or take the label topology.istio.io/network from the Service"
                                 : "see why they do not come up (`kubectl get pods`, findings of this Deployment)");
  });
}

// The Gateway API's Gateway for which istiod deployed the pod; null: it did not.
kube::ObjectRef ApiGatewayOf(const Mesh& mesh, const MeshCluster& cluster, const sim::PodProcess& pod) {
  for (const char* label : {"gateway.networking.k8s.io/gateway-name", "istio.io/gateway-name"}) {
    const auto name = pod.pod()->meta.labels.find(label);
    if (name == pod.pod()->meta.labels.end()) continue;
    if (kube::ObjectRef gateway =
            mesh.Get(cluster, "Gateway.gateway.networking.k8s.io", pod.pod()->meta.ns, name->second);
        gateway != nullptr)
      return gateway;
  }
  return nullptr;
}

// Hosts of its listeners of that port that make an AUTO_PASSTHROUGH server of TLS Passthrough (istiod:
// pilot/pkg/config/kube/gateway/conversion.go, buildTLS).
std::vector<std::string> HostsByGatewayApi(const Mesh& mesh, const MeshCluster& cluster, const sim::PodProcess& pod,
                                           int port) {
  std::vector<std::string> out;
  const kube::ObjectRef gateway = ApiGatewayOf(mesh, cluster, pod);
  if (gateway == nullptr) return out;
  for (const auto& listener : Items(At(gateway->body, {"spec", "listeners"}))) {
    if (Number(listener, "port") == port && Text(At(listener, "tls"), "mode") == "Passthrough")
      out.push_back(Text(listener, "hostname", "*"));
  }
  return out;
}

// The port of a gateway's Service that other networks are sent to.
int PortForOthers(const kube::Object& service) {
  const auto label = service.meta.labels.find(pilot::kGatewayPortLabel);
  int port = 0;  // what is no number is passed over (istiod: serviceregistry/kube/controller/network.go)
  return label != service.meta.labels.end() && absl::SimpleAtoi(label->second, &port) ? port : kGatewayPort;
}

std::vector<std::pair<config::GatewayRef, const config::Server*>> AutoPassthroughServers(const MeshCluster& config,
                                                                                         const sim::PodProcess& pod) {
  std::vector<std::pair<config::GatewayRef, const config::Server*>> out;
  for (const config::GatewayRef& gateway : config.configs.Gateways()) {
    if (!Selects(gateway->spec.selector, pod.pod()->meta.labels)) continue;
    for (const config::Server& server : gateway->spec.servers) {
      if (server.tls && server.tls->mode == config::ServerTlsSettings::Mode::kAutoPassthrough)
        out.emplace_back(gateway, &server);
    }
  }
  return out;
}

// Where the pod listens for a Gateway's port: at the targetPort of its first Service with such a port; else, and where
// the Service opts out, at the number itself (istiod: pilot/pkg/model/gateway.go, resolvePorts).
int ListensAt(const Mesh& mesh, const sim::PodProcess& pod, int number) {
  for (const kube::ObjectRef& object : ServicesBefore(mesh, pod)) {
    if (object->meta.labels.contains("experimental.istio.io/disable-gateway-port-translation")) continue;
    for (const kube::ServicePort& port : kube::ParseService(*object).ports) {
      if (port.port != number) continue;
      if (const int target = kube::TargetPortOf(port, kube::ParsePod(*pod.pod())); target != 0) return target;
    }
  }
  return number;
}

// What its load balancer leads to, of the first of its pods; 0: it has no such port, or the pod none of that name.
int TargetForOthers(const kube::Object& object, const kube::Service& service,
                    const std::vector<const sim::PodProcess*>& pods) {
  for (const kube::ServicePort& port : service.ports) {
    if (port.port == PortForOthers(object))
      return pods.empty() ? 0 : kube::TargetPortOf(port, kube::ParsePod(*pods.front()->pod()));
  }
  return 0;
}

// A listener of that address is one that the pod has: all of them, or its own.
bool BindsTo(const sim::PodProcess& pod, const std::string& bind) {
  if (bind.empty() || bind == "0.0.0.0" || bind == "::") return true;
  const kube::Pod& parsed = kube::ParsePod(*pod.pod());
  return bind == parsed.ip || std::find(parsed.ips.begin(), parsed.ips.end(), bind) != parsed.ips.end();
}

// istiod: pilot/pkg/serviceregistry/kube/controller, network.go and util.go (getNodeSelectorsForService).
void GatewaySettingUnread(const Mesh& mesh, Findings& findings) {
  EachGatewayService(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const kube::Service& service) {
    const auto label = object.meta.labels.find(pilot::kGatewayPortLabel);
    int port = 0;
    if (label != object.meta.labels.end() && !absl::SimpleAtoi(label->second, &port)) {
      findings.Add(cluster, object,
                   fmt::format("{} is '{}', which is no number: istiod takes port {}", pilot::kGatewayPortLabel,
                               label->second, kGatewayPort));
      findings.Explain({}, "write the number of the Service's port");
    }
    const auto selector = object.meta.annotations.find(pilot::kNodeSelectorAnnotation);
    if (selector == object.meta.annotations.end() || selector->second.empty() || service.type != "NodePort") return;
    const json labels = ParseJson(selector->second);
    if (labels.is_object() &&
        std::all_of(labels.begin(), labels.end(), [](const json& value) { return value.is_string(); }))
      return;
    findings.Add(cluster, object,
                 fmt::format("{} '{}' is no JSON object of labels: istiod takes the addresses of all nodes",
                             pilot::kNodeSelectorAnnotation, selector->second));
    findings.Explain({}, "write it as JSON: '{}' for all nodes, '{\"KEY\": \"VALUE\"}' for some");
  });
}

void NoAutoPassthrough(const Mesh& mesh, Findings& findings) {
  if (!HasSeveralNetworks(mesh)) return;  // such a gateway leads to istiod alone
  EachGatewayService(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const kube::Service& service) {
    const MeshCluster* config = mesh.Find(cluster.control_plane);
    const auto pods = Behind(mesh, cluster, object);
    if (config == nullptr || pods.empty()) return;
    const int wanted = PortForOthers(object), target = TargetForOthers(object, service, pods);
    kube::ObjectRef elsewhere;  // a Gateway of that port that is bound to an address of nobody's
    std::string bind;
    const bool exposed = std::any_of(pods.begin(), pods.end(), [&](const auto* pod) {
      const auto servers = AutoPassthroughServers(*config, *pod);
      return !HostsByGatewayApi(mesh, cluster, *pod, wanted).empty() ||
             std::any_of(servers.begin(), servers.end(), [&](const auto& s) {
               const int number = static_cast<int>(s.second->port.number);
               if (number != wanted && (target == 0 || ListensAt(mesh, *pod, number) != target)) return false;
               if (BindsTo(*pod, s.second->bind)) return true;
               elsewhere = mesh.Get(*config, "Gateway.networking.istio.io", s.first->meta.ns, s.first->meta.name);
               bind = s.second->bind;
               return false;
             });
    });
    if (exposed) return;
    if (elsewhere != nullptr) {
      findings.Add(*config, *elsewhere,
                   fmt::format("port {} is bound to {}, which is no address of the pods behind Service {}: they refuse "
                               "what other networks send",
                               wanted, bind, object.meta.name));
      return findings.Explain("a listener hears at the addresses of its own pod alone", "leave bind out");
    }
    // A Service that istiod made is mended at its Gateway.
    const kube::ObjectRef gateway = ApiGatewayOf(mesh, cluster, *pods.front());
    if (gateway != nullptr && mesh.Where(cluster.name, object).file.empty()) {
      findings.Add(
          cluster, *gateway,
          fmt::format("has no listener of port {} with tls mode Passthrough: its pods refuse what other networks "
                      "send",
                      wanted));
      return findings.Explain({},
                              fmt::format("add a listener of protocol TLS for port {}, hostname \"*.local\", with tls "
                                          "mode Passthrough",
                                          wanted));
    }
    findings.Add(
        cluster, object,
        fmt::format("no Gateway with tls mode AUTO_PASSTHROUGH on port {} selects its pods: they refuse what other "
                    "networks send",
                    wanted));
  });
}

void GatewayPortMissing(const Mesh& mesh, Findings& findings) {
  if (!HasSeveralNetworks(mesh)) return;
  EachGatewayService(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const kube::Service& service) {
    const int wanted = PortForOthers(object);
    for (const kube::ServicePort& port : service.ports) {
      if (port.port != wanted) continue;
      if (port.protocol.empty() || port.protocol == "TCP") return;
      findings.Add(cluster, object,
                   fmt::format("other networks are sent to TCP port {} of this gateway, and the Service has it for {} "
                               "alone",
                               wanted, port.protocol));
      return findings.Explain("the load balancer leads nothing there that is TCP",
                              fmt::format("say protocol: TCP for port {}, or leave it out", wanted));
    }
    findings.Add(
        cluster, object,
        fmt::format("other networks are sent to port {} of this gateway, which the Service does not have", wanted));
  });
}

void AutoPassthroughTwice(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    const auto& gateways = cluster->configs.Gateways();
    for (size_t i = 0; i < gateways.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (gateways[i]->spec.selector != gateways[j]->spec.selector) continue;
        for (const config::Server& a : gateways[i]->spec.servers) {
          for (const config::Server& b : gateways[j]->spec.servers) {
            const auto automatic = [](const config::Server& s) {
              return s.tls && s.tls->mode == config::ServerTlsSettings::Mode::kAutoPassthrough;
            };
            if (a.port.number != b.port.number || !automatic(a) || !automatic(b)) continue;
            findings.Add(*cluster, gateways[i]->meta,
                         fmt::format("{}/{} serves port {} with AUTO_PASSTHROUGH for the same pods already: two filter "
                                     "chains with one match, and the gateway refuses the listener",
                                     gateways[j]->meta.ns, gateways[j]->meta.name, a.port.number));
          }
        }
      }
    }
  }
}

// What a gateway sees of the mesh: endpoints of the networks that it asks for, and of those without one; all others
// through gateways (istiod: pilot/pkg/model/proxy_view.go, pilot/pkg/xds/ep_filters.go).
std::string ViewOf(const sim::PodProcess& pod) { return Text(pod.node().metadata, "REQUESTED_NETWORK_VIEW"); }
std::string NetworkOfProxy(const sim::PodProcess& pod) { return Text(pod.node().metadata, "NETWORK"); }

void ExtraHops(const Mesh& mesh, Findings& findings) {
  if (!HasSeveralNetworks(mesh)) return;
  EachGatewayService(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const kube::Service&) {
    for (const sim::PodProcess* pod : Behind(mesh, cluster, object)) {
      if (!pod->bootstrap() || !ViewOf(*pod).empty()) continue;
      return findings.Add(
          cluster, object,
          fmt::format("pod {} has no ISTIO_META_REQUESTED_NETWORK_VIEW: requests that come in through it "
                      "may go out to other networks' gateways again",
                      pod->name()));
    }
  });
}

// Host of a Gateway's server, without the namespace that it may name.
std::string_view WithoutNamespace(std::string_view host) {
  const size_t slash = host.find('/');
  return slash == host.npos ? host : host.substr(slash + 1);
}

void HostsNotExposed(const Mesh& mesh, Findings& findings) {
  if (!HasSeveralNetworks(mesh)) return;
  EachGatewayService(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const kube::Service&) {
    const MeshCluster* config = mesh.Find(cluster.control_plane);
    const auto pods = Behind(mesh, cluster, object);
    if (config == nullptr || pods.empty()) return;
    const auto servers = AutoPassthroughServers(*config, *pods.front());
    std::vector<std::string> hosts = HostsByGatewayApi(mesh, cluster, *pods.front(), PortForOthers(object));
    const bool by_api = !hosts.empty();
    for (const auto& [gateway, server] : servers) hosts.insert(hosts.end(), server->hosts.begin(), server->hosts.end());
    if (hosts.empty()) return;
    std::string missing;
    int count = 0;
    for (const kube::ObjectRef& service : mesh.List(cluster, "Service")) {
      if (IsSystemNamespace(mesh, service->meta.ns) || Behind(mesh, cluster, *service).empty()) continue;
      const std::string host = FullHost(service->meta.name, service->meta.ns);
      const bool exposed = std::any_of(hosts.begin(), hosts.end(), [&](const std::string& h) {
        return pilot::HostMatches(WithoutNamespace(h), host);
      });
      if (!exposed && ++count <= 3) missing += (missing.empty() ? "" : ", ") + host;
    }
    if (count == 0) return;
    std::string message =
        fmt::format("its hosts leave out {}{}: other networks send requests for {} to this gateway, which resets them",
                    missing, count > 3 ? fmt::format(" and {} more", count - 3) : "", count == 1 ? "it" : "them");
    if (by_api) {
      findings.Add(cluster, *ApiGatewayOf(mesh, cluster, *pods.front()), std::move(message));
      findings.Explain({}, "write hostname: \"*.local\", or take the services out of the mesh of the others");
    } else {
      findings.Add(*config, servers.front().first->meta, std::move(message));
    }
  });
}

void TargetOfGatewayPort(const Mesh& mesh, Findings& findings) {
  if (!HasSeveralNetworks(mesh)) return;
  EachGatewayService(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const kube::Service& service) {
    const MeshCluster* config = mesh.Find(cluster.control_plane);
    const auto pods = Behind(mesh, cluster, object);
    const int wanted = PortForOthers(object), target = TargetForOthers(object, service, pods);
    if (config == nullptr || pods.empty() || target == 0) return;
    int listens = 0;
    for (const auto& [gateway, server] : AutoPassthroughServers(*config, *pods.front())) {
      const int number = static_cast<int>(server->port.number), at = ListensAt(mesh, *pods.front(), number);
      if (at == target) return;
      if (number == wanted) listens = at;
    }
    if (listens == 0) return;  // WT110 says that no Gateway is for it
    findings.Add(cluster, object,
                 fmt::format("port {} leads to {} of the gateway's pods, which listen at {} for the Gateway's port {}: "
                             "connections from other networks are refused",
                             wanted, target, listens, wanted));
  });
}

void ViewOfAnotherNetwork(const Mesh& mesh, Findings& findings) {
  if (!HasSeveralNetworks(mesh)) return;
  EachGatewayService(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const kube::Service&) {
    for (const sim::PodProcess* pod : Behind(mesh, cluster, object)) {
      if (!pod->bootstrap()) continue;
      const std::string view = ViewOf(*pod), own = NetworkOfProxy(*pod);
      if (view.empty() || own.empty()) continue;
      const std::vector<std::string> networks = absl::StrSplit(view, ',');
      if (std::find(networks.begin(), networks.end(), own) != networks.end()) continue;
      const bool known = std::any_of(mesh.clusters().begin(), mesh.clusters().end(), [&](const auto& c) {
        return std::find(networks.begin(), networks.end(), c->label) != networks.end();
      });
      return findings.Add(
          cluster, OwnerOf(mesh, cluster, *pod),
          fmt::format("ISTIO_META_REQUESTED_NETWORK_VIEW is {}, and the gateway's own network {}: it does not see the "
                      "pods that it leads to, and {}",
                      view, own,
                      known ? "sends what comes in on to that network's gateway: the callers' own pods answer"
                            : "resets what comes in"));
    }
  });
}

// A pod says another network than its cluster: its own label counts first, which injection sets by global.network
// (istiod: pkg/kube/inject/webhook.go, applyMetadata; kube/controller/controller.go, Network).
void PodOfAnotherNetwork(const Mesh& mesh, Findings& findings) {
  struct Owner {
    kube::ObjectRef object;
    std::string network;
    bool router = false;
  };
  for (const auto& cluster : mesh.clusters()) {
    if (cluster->label.empty()) continue;
    std::set<std::string> seen, networks;  // objects' names
    std::vector<Owner> owners;
    for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
      if (!pod->bootstrap()) continue;
      const std::string own = NetworkOfProxy(*pod);
      if (own.empty()) continue;
      networks.insert(own);
      const kube::ObjectRef owner = OwnerOf(mesh, *cluster, *pod);
      if (own != cluster->label && seen.insert(NameOf(*owner)).second) owners.push_back({owner, own, pod->router()});
    }
    // Where all of them agree it is the namespace's label that is another.
    if (const kube::ObjectRef ns = SystemNamespace(mesh, *cluster);
        ns != nullptr && owners.size() > 1 && networks.size() == 1) {
      findings.Add(*cluster, *ns,
                   fmt::format("says network {}, and all pods of {} are in {} by their labels or what is injected "
                               "(global.network, or /net/ in the webhook's path): {} and {} more",
                               cluster->label, cluster->name, *networks.begin(), NameOf(*owners.front().object),
                               owners.size() - 1));
      continue;
    }
    for (const Owner& owner : owners) {
      const std::string where = Text(At(owner.object->body, {"spec", "template", "metadata", "labels"}),
                                     std::string(pilot::kNetworkLabel)) == owner.network
                                    ? "their label"
                                    : "what is injected (global.network, or /net/ in the webhook's path)";
      findings.Add(
          *cluster, owner.object,
          fmt::format("its pods are in network {} by {}, and {}'s namespace {} says {}: {}", owner.network, where,
                      cluster->name, cluster->system_namespace, cluster->label,
                      owner.router ? "the gateway takes the pods behind it for those of another network, and sends "
                                     "what comes in to a gateway"
                                   : "they are reached through that network's gateway, and reach this one's pods so"));
    }
  }
}

void SourceRanges(const Mesh& mesh, Findings& findings) {
  EachGatewayService(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const kube::Service&) {
    std::string ranges;
    for (const auto& range : Items(At(object.body, {"spec", "loadBalancerSourceRanges"})))
      ranges += (ranges.empty() ? "" : ", ") + TextOf(range);
    if (ranges.empty() || ranges == "0.0.0.0/0") return;
    findings.Add(
        cluster, object,
        fmt::format("loadBalancerSourceRanges {}: what other clusters send from elsewhere is dropped, and their "
                    "istiods send it there all the same",
                    ranges));
  });
}

struct Annotation {
  std::string_view name;
  std::string_view value;  // a part of it; empty: any
};

// Of the clouds' load balancers: GKE, AKS, EKS (both controllers), OCI, each in its provider's documentation.
constexpr Annotation kInternal[] = {{"networking.gke.io/load-balancer-type", "nternal"},
                                    {"cloud.google.com/load-balancer-type", "nternal"},
                                    {"service.beta.kubernetes.io/azure-load-balancer-internal", "true"},
                                    {"service.beta.kubernetes.io/aws-load-balancer-internal", "true"},
                                    {"service.beta.kubernetes.io/aws-load-balancer-internal", "0.0.0.0/0"},
                                    {"service.beta.kubernetes.io/aws-load-balancer-scheme", "internal"},
                                    {"service.beta.kubernetes.io/oci-load-balancer-internal", "true"}};
constexpr Annotation kOpensTls[] = {{"service.beta.kubernetes.io/aws-load-balancer-ssl-cert", ""},
                                    {"service.beta.kubernetes.io/aws-load-balancer-backend-protocol", "http"},
                                    {"service.beta.kubernetes.io/aws-load-balancer-backend-protocol", "ssl"},
                                    {"service.beta.kubernetes.io/do-loadbalancer-tls-ports", "15443"},
                                    {"service.beta.kubernetes.io/oci-load-balancer-ssl-ports", "15443"}};

// "NAME: VALUE" of the first of them that the object has; empty: none.
template <size_t N>
std::string HasOneOf(const kube::Object& object, const Annotation (&of)[N]) {
  for (const Annotation& each : of) {
    const auto it = object.meta.annotations.find(std::string(each.name));
    if (it != object.meta.annotations.end() && it->second.find(each.value) != std::string::npos)
      return fmt::format("{}: {}", it->first, it->second);
  }
  return {};
}

void InternalAddress(const Mesh& mesh, Findings& findings) {
  if (!HasSeveralNetworks(mesh)) return;
  EachGatewayService(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const kube::Service& service) {
    const std::string annotation = HasOneOf(object, kInternal);
    const std::string asked = Text(At(object.body, "spec"), "loadBalancerClass");
    if (service.type != "LoadBalancer" || (annotation.empty() && asked.empty())) return;
    findings.Add(cluster, object,
                 annotation.empty()
                     ? fmt::format("loadBalancerClass {}: without a controller of that class it gets no address, and "
                                   "whether other networks reach it is the class's to say",
                                   asked)
                     : fmt::format("{}: its address is one of its own network, and clients are in others", annotation));
  });
}

void LoadBalancerOpensTls(const Mesh& mesh, Findings& findings) {
  if (!HasSeveralNetworks(mesh)) return;
  EachGatewayService(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const kube::Service&) {
    const std::string annotation = HasOneOf(object, kOpensTls);
    if (annotation.empty()) return;
    const auto ports = object.meta.annotations.find("service.beta.kubernetes.io/aws-load-balancer-ssl-ports");
    const std::string wanted = fmt::format("{}", PortForOthers(object));
    if (ports != object.meta.annotations.end()) {
      std::string name;
      for (const kube::ServicePort& port : kube::ParseService(object).ports) {
        if (port.port == PortForOthers(object)) name = port.name;
      }
      const std::vector<std::string> listed = absl::StrSplit(ports->second, ',');
      const bool ours = std::any_of(listed.begin(), listed.end(), [&](const std::string& each) {
        return each == "*" || each == wanted || (!name.empty() && each == name);
      });
      if (!ours) return;
    }
    findings.Add(
        cluster, object,
        fmt::format("{}: the load balancer opens TLS of port {}, and the gateway gets it without SNI and without "
                    "the clients' certificates",
                    annotation, wanted));
  });
}

// Clouds whose load balancers ask a Service's first port for its health (istio: manifests/charts/gateways/*/values.yaml
// has status-port first for that).
constexpr int kStatusPort = 15021;

void HealthPortNotFirst(const Mesh& mesh, Findings& findings) {
  EachGatewayService(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const kube::Service& service) {
    if (service.type != "LoadBalancer" || service.ports.size() < 2) return;
    if (service.ports.front().port == kStatusPort) return;
    findings.Add(cluster, object,
                 fmt::format("its first port is {}, {}: a load balancer that asks the first port for its health (AWS) "
                             "meets no health check there",
                             service.ports.front().port,
                             std::any_of(service.ports.begin(), service.ports.end(),
                                         [](const auto& port) { return port.port == kStatusPort; })
                                 ? "and 15021 (status-port) stands behind it"
                                 : "and it has no 15021 (status-port)"));
  });
}

}  // namespace

const std::vector<Rule>& GatewayServiceRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT117", "HostsNotExposed", Level::kError, "a gateway has a filter chain only for services that its hosts cover",
       "write hosts: [\"*.local\"], or take the services out of the mesh of the others", "", HostsNotExposed},
      {"WT118", "GatewayTargetPort", Level::kError, "nothing listens where the load balancer leads",
       "let targetPort be the Gateway's port number", "istio/istio#47198", TargetOfGatewayPort},
      {"WT125", "GatewayViewOfAnotherNetwork", Level::kError,
       "a gateway between networks has to see the pods of its own",
       "set ISTIO_META_REQUESTED_NETWORK_VIEW to the gateway's network, as gen-eastwest-gateway.sh --network does",
       "istio/istio#26293", ViewOfAnotherNetwork},
      {"WT126", "PodOfAnotherNetwork", Level::kError, "a pod's network by its own label counts before its cluster's",
       "give the label of istio-system, global.network of the installation and the pods' labels one name",
       "istio/istio#39712", PodOfAnotherNetwork},
      {"WT119", "GatewaySourceRanges", Level::kWarning, "addresses of other clusters' nodes and NATs change",
       "let the ranges cover every cluster's egress, or leave them out: mesh TLS authenticates clients", "",
       SourceRanges},
      {"WT128", "GatewayInternalAddress", Level::kInfo,
       "a private address leads nowhere from another network, unless routes (peering, VPN) do",
       "see that the other networks are routed there, or take the annotation or class away", "istio/istio#43656",
       InternalAddress, false},
      {"WT129", "LoadBalancerOpensTls", Level::kError,
       "AUTO_PASSTHROUGH routes by the SNI of mesh TLS, which runs from sidecar to sidecar",
       "let the load balancer pass TCP on: take the annotation away, or leave port 15443 out of it",
       "istio/istio.io#16648", LoadBalancerOpensTls},
      {"WT131", "LoadBalancerAddressTwice", Level::kError,
       "istiod sends each network's requests to that address, and who answers there depends on who asks",
       "give the clusters' load balancers ranges that do not overlap (MetalLB: IPAddressPool)", "metallb/metallb#772",
       BalancerAddressTwice},
      {"WT132", "LoadBalancerUnannounced", Level::kError,
       "MetalLB's controller gives addresses, and its speakers tell the network of advertised pools alone",
       "create an L2Advertisement in MetalLB's namespace; without ipAddressPools it is for all of them",
       "metallb/metallb#1561", BalancerAddressUnannounced},
      {"WT137", "GatewayHealthPort", Level::kInfo, "nodes that the load balancer takes for sick get no connections",
       "put status-port (15021) first among the ports, as Istio's charts do", "istio/istio#12503", HealthPortNotFirst,
       false},
      {"WT102", "GatewayWithoutAddress", Level::kError, "without an address a gateway counts as none",
       "make it a LoadBalancer that gets an address, or set spec.externalIPs", "istio/istio#31453, #45516",
       GatewayWithoutAddress},
      {"WT103", "NodePortGatewayWithoutAddress", Level::kError,
       "istiod takes addresses of nodes that traffic.istio.io/nodeSelector selects and that have an ExternalIP",
       "annotate the Service with traffic.istio.io/nodeSelector: '{}', and give nodes an ExternalIP; or use a "
       "LoadBalancer",
       "istio/istio#39930, #49045", NodePortWithoutAddress},
      {"WT105", "GatewayOfAnotherNetwork", Level::kError, "the gateway knows its own cluster's pods only",
       "label the gateway's Service, Deployment and istio-system with one network", "istio/istio#39712",
       GatewayOfAnotherNetwork},
      {"WT107", "GatewayMixesAddresses", Level::kWarning,
       "externalIPs are added to the load balancer's, and not put in their place",
       "keep the one that every network reaches", "istio/istio#43656", MixedAddresses},
      {"WT108", "GatewayTrafficPolicyLocal", Level::kWarning, "nodes without a pod of the gateway drop connections",
       "run a pod of the gateway on each node, or set externalTrafficPolicy: Cluster", "istio/istio#34246",
       LocalTrafficPolicy},
      {"WT109", "GatewayWithoutPods", Level::kError, "the network's way in leads nowhere",
       "let the Service select the gateway's pods", "helm/charts#21508", GatewayWithoutPods},
      {"WT110", "NoAutoPassthrough", Level::kError,
       "a gateway without the listener refuses connections from other networks",
       "apply Istio's expose-services Gateway, with a selector that the pods match", "istio/istio#40624",
       NoAutoPassthrough},
      {"WT136", "GatewaySettingUnread", Level::kWarning,
       "istiod passes what it cannot read over, and takes the default", "write it as istiod reads it", "istio/api#2744",
       GatewaySettingUnread, false},
      {"WT111", "GatewayPortMissing", Level::kError, "the load balancer has no such port",
       "add port 15443 to the Service, or name its port in the label networking.istio.io/gatewayPort",
       "istio/istio#26545", GatewayPortMissing},
      {"WT112", "AutoPassthroughTwice", Level::kError, "Envoy rejects the whole listener and keeps what it had",
       "leave one of them", "istio/istio#42050", AutoPassthroughTwice},
      {"WT115", "GatewaySeesOtherNetworks", Level::kWarning, "a request may cross two gateways",
       "set ISTIO_META_REQUESTED_NETWORK_VIEW to the gateway's network", "istio/istio#26293", ExtraHops},
  };
  return *rules;
}

}  // namespace wavetank::check
