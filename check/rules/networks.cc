// Networks and what istiod makes of them.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/json_access.h"
#include "core/config/mesh/mesh_networks.h"
#include "core/model/labels.h"
#include "core/registry/multicluster/registries.h"
#include "core/xds/discovery_server.h"
#include "fakes/envoy/envoy.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::check {
namespace {

// Networks of endpoints that an istiod knows, with a service for each.
std::map<std::string, std::string> NetworksOfEndpoints(const MeshCluster& cluster) {
  std::map<std::string, std::string> out;
  for (const auto& [key, shards] : cluster.istiod->discovery().endpoints().Sorted()) {
    if (IsSystemNamespace(key.substr(0, key.find('/')))) continue;
    for (const auto& [shard, endpoints] : shards->shards) {
      for (const pilot::IstioEndpoint& e : *endpoints) out.emplace(e.p().network.str(), key);
    }
  }
  return out;
}

// Where the mesh has to be told of a network's gateway: the Service that looks like one of a cluster in it and has no
// label or address, or else that cluster's label. Null: no cluster says that it is in it.
struct GatewayPlace {
  const MeshCluster* cluster = nullptr;
  kube::ObjectRef object;
};

GatewayPlace WhereGatewayIsMissing(const Mesh& mesh, std::string_view network) {
  GatewayPlace out;
  for (const auto& cluster : mesh.clusters()) {
    if (cluster->label != network) continue;
    for (const kube::ObjectRef& service : mesh.List(*cluster, "Service")) {
      const auto& ports = kube::ParseService(*service).ports;
      const bool leads = std::any_of(ports.begin(), ports.end(), [](const auto& p) { return p.port == 15443; });
      if (leads || NetworkOfGateway(*service) == network) return {cluster.get(), service};
    }
    if (out.cluster == nullptr) out = {cluster.get(), SystemNamespace(mesh, *cluster)};
  }
  if (out.object != nullptr) return out;
  // A name that pods alone have, from a label of their own or of their gateway.
  for (const auto& cluster : mesh.clusters()) {
    for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
      const auto label = pod->pod()->meta.labels.find(std::string(pilot::kNetworkLabel));
      if (label != pod->pod()->meta.labels.end() && label->second == network)
        return {cluster.get(), OwnerOf(mesh, *cluster, *pod)};
    }
    for (const auto& entry : cluster->configs.WorkloadEntries()) {
      if (entry->spec.network == network)
        return {cluster.get(),
                mesh.Get(*cluster, "WorkloadEntry.networking.istio.io", entry->meta.ns, entry->meta.name)};
    }
    for (const config::ServiceEntryRef& entry : cluster->configs.ServiceEntries()) {
      const auto& endpoints = entry->spec.endpoints;
      if (std::any_of(endpoints.begin(), endpoints.end(), [&](const auto& e) { return e.network == network; }))
        return {cluster.get(),
                mesh.Get(*cluster, "ServiceEntry.networking.istio.io", entry->meta.ns, entry->meta.name)};
    }
  }
  return out;
}

void NetworkWithoutGateway(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->istiod == nullptr) continue;
    const std::map<std::string, std::string> networks = NetworksOfEndpoints(*cluster);
    const auto gateways = cluster->istiod->registries().networks().Gateways();
    // Pods without a network, beside those of the only one that there is, reach them where all are routed.
    const auto named =
        std::count_if(networks.begin(), networks.end(), [](const auto& each) { return !each.first.empty(); });
    if (named < 2 && !HasSeveralNetworks(mesh)) continue;
    for (const auto& [network, service] : networks) {
      if (networks.size() < 2 || network.empty() || !gateways->ForNetwork(pilot::NetworkId(network)).empty()) continue;
      const GatewayPlace at = WhereGatewayIsMissing(mesh, network);
      std::string message = fmt::format(
          "istiod knows endpoints in network {} (of {}) and no gateway that leads there: proxies of other networks get "
          "the pods' own addresses",
          network, service);
      // What every istiod of the mesh lacks is one thing to mend.
      findings.Add(at.object == nullptr ? *cluster : *at.cluster, at.object, std::move(message));
      // Where pods alone say the network, the word is wrong sooner than a gateway is missing.
      const bool of_a_cluster =
          std::any_of(mesh.clusters().begin(), mesh.clusters().end(),
                      [&named_so = network](const auto& each) { return each->label == named_so; });
      if (at.object != nullptr && at.object->kind != "Service" && at.object->kind != "Namespace" && !of_a_cluster) {
        std::set<std::string> with;
        for (const auto& each : mesh.clusters()) {
          if (!each->label.empty()) with.insert(each->label);
        }
        findings.Explain({},
                         fmt::format("mend the label topology.istio.io/network of the pods (clusters say {}), or give "
                                     "that network a gateway Service with the label and an address",
                                     fmt::join(with, ", ")));
      }
    }
  }
}

// What a proxy's packets to an address meet, once for each of the address and the network's doing.
struct OutOfReach {
  int count = 0;
  std::string proxy, address;
  const sim::PodProcess* pod = nullptr;  // whose address it is
  std::string why;
};

// By the proxies' cluster, the address's owner and why: addresses of outbound endpoints that the network keeps from
// proxies. `pods`: those of pods, or all others that something in the mesh has.
std::map<std::tuple<std::string, std::string, std::string>, OutOfReach> KeptApart(const Mesh& mesh, bool pods) {
  std::map<std::string, const sim::PodProcess*> by_address;
  for (const sim::PodProcess* pod : mesh.world().Pods()) by_address[kube::ParsePod(*pod->pod()).ip] = pod;
  std::map<std::tuple<std::string, std::string, std::string>, OutOfReach> out;
  NetworkObstacles obstacles(mesh, sim::MeshNetwork::Heed::kRoutes);  // of NetworkPolicies WT121 to WT138 tell
  for (const auto& here : mesh.clusters()) {
    for (const sim::PodProcess* pod : mesh.Pods(*here)) {
      if (pod->envoy() == nullptr || pod->router()) continue;
      // One that says another network than its cluster's sees that one's pods; WT126 tells.
      if (const std::string own = Text(pod->node().metadata, "NETWORK");
          pods && !own.empty() && !here->label.empty() && own != here->label)
        continue;
      for (const auto& [address, obstacle, cluster] : obstacles.KeptFrom(*pod)) {
        const std::string ip = address.ip.ToString();
        const auto owner = by_address.find(ip);
        if ((owner != by_address.end()) != pods) continue;
        const std::string far = pods ? owner->second->site().name : ip;
        // Which pods it is differs; what stands in the way is one thing.
        const std::string kind = pods ? std::string() : obstacle->why;
        OutOfReach& found = out[{here->name, far, kind}];
        if (found.count++ == 0)
          found = {1, pod->name(), address.ToString(), pods ? owner->second : nullptr, obstacle->why};
      }
    }
  }
  return out;
}

// Why istiod takes pods of `far` for reachable from `here`: one of both clusters has no label, both have the same, or
// no gateway leads to far's network; else the pods themselves.
GatewayPlace WhyPodAddresses(const Mesh& mesh, const MeshCluster& here, const MeshCluster& far,
                             const sim::PodProcess& pod) {
  const MeshCluster& unsaid = here.label.empty() ? here : far;
  if (unsaid.label.empty() || here.label == far.label) {
    if (kube::ObjectRef ns = SystemNamespace(mesh, unsaid); ns != nullptr) return {&unsaid, ns};
  }
  if (here.istiod != nullptr &&
      here.istiod->registries().networks().Gateways()->ForNetwork(pilot::NetworkId(far.label)).empty()) {
    if (GatewayPlace at = WhereGatewayIsMissing(mesh, far.label); at.object != nullptr) return at;
  }
  return {&far, OwnerOf(mesh, far, pod)};
}

void UnreachableEndpoint(const Mesh& mesh, Findings& findings) {
  for (const auto& [key, found] : KeptApart(mesh, true)) {
    const auto& [here, far, why] = key;
    const GatewayPlace at = WhyPodAddresses(mesh, *mesh.Find(here), *mesh.Find(far), *found.pod);
    findings.Add(*at.cluster, *at.object,
                 fmt::format("proxies of {} hold {} addresses of pods in {} that they do not reach: {} sends to {}, "
                             "which is {}; {}",
                             here, found.count, far, found.proxy, found.address, found.pod->name(), found.why));
  }
}

// The object that tells istiods an address: a Service in its status or externalIPs, a ServiceEntry, a WorkloadEntry,
// the mesh config's meshNetworks.
GatewayPlace WhoTells(const Mesh& mesh, const std::string& address) {
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& service : mesh.List(*cluster, "Service")) {
      const kube::Service& typed = kube::ParseService(*service);
      const auto& external = typed.external_ips;
      const bool ingress =
          std::any_of(typed.ingress.begin(), typed.ingress.end(), [&](const auto& each) { return each.ip == address; });
      if (ingress || std::find(external.begin(), external.end(), address) != external.end())
        return {cluster.get(), service};
    }
    for (const config::ServiceEntryRef& entry : cluster->configs.ServiceEntries()) {
      const auto& endpoints = entry->spec.endpoints;
      if (std::any_of(endpoints.begin(), endpoints.end(), [&](const auto& e) { return e.address == address; }))
        return {cluster.get(),
                mesh.Get(*cluster, "ServiceEntry.networking.istio.io", entry->meta.ns, entry->meta.name)};
    }
    for (const auto& entry : cluster->configs.WorkloadEntries()) {
      if (entry->spec.address == address)
        return {cluster.get(),
                mesh.Get(*cluster, "WorkloadEntry.networking.istio.io", entry->meta.ns, entry->meta.name)};
    }
    const kube::ObjectRef map = MeshConfigMap(mesh, *cluster);
    if (map == nullptr) continue;
    const auto data = kube::ConfigMapData(*map);
    if (const auto networks = data.find("meshNetworks");
        networks != data.end() && networks->second.find(address) != std::string::npos)
      return {cluster.get(), map};
  }
  return {};
}

void AddressOutOfReach(const Mesh& mesh, Findings& findings) {
  for (const auto& [key, found] : KeptApart(mesh, false)) {
    const auto& [here, address, why] = key;
    std::string message =
        fmt::format("{} proxies of {} send to {} and do not reach it: {}", found.count, here, found.address, found.why);
    const GatewayPlace at = WhoTells(mesh, address);
    findings.Add(at.object == nullptr ? *mesh.Find(here) : *at.cluster, at.object, std::move(message));
  }
}

void NetworkNameShared(const Mesh& mesh, Findings& findings) {
  std::map<std::string, std::vector<const MeshCluster*>> by_label;
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->label.empty()) by_label[cluster->label].push_back(cluster.get());
  }
  for (const auto& [label, clusters] : by_label) {
    for (const MeshCluster* cluster : clusters) {
      if (cluster->network == clusters.front()->network) continue;
      const kube::ObjectRef ns = SystemNamespace(mesh, *cluster);
      findings.Add(*cluster, *ns,
                   fmt::format("{} and {} are both labelled {}={}, and their pods do not reach each other",
                               clusters.front()->name, cluster->name, pilot::kNetworkLabel, label));
    }
  }
}

// That all its proxies say, and all endpoints that its own istiod knows of it, by the label that injection gives pods
// (istiod: pkg/kube/inject/webhook.go, applyMetadata); empty: some are in none.
std::string InjectedNetwork(const Mesh& mesh, const MeshCluster& cluster) {
  std::string out;
  for (const sim::PodProcess* pod : mesh.Pods(cluster)) {
    if (!pod->bootstrap()) {
      if (IsApplication(*pod)) return {};
      continue;
    }
    const std::string network = Text(pod->node().metadata, "NETWORK");
    if (network.empty() || (!out.empty() && network != out)) return {};
    out = network;
  }
  return out;
}

void NetworkLabelMissing(const Mesh& mesh, Findings& findings) {
  if (!HasSeveralNetworks(mesh)) return;
  // Sites between which routes lead are one flat network, which needs no name.
  std::set<std::string> by_injection;
  bool labelled = false;
  for (const auto& cluster : mesh.clusters()) {
    labelled = labelled || !cluster->label.empty();
    if (const std::string network = InjectedNetwork(mesh, *cluster); !network.empty()) by_injection.insert(network);
  }
  if (!labelled && by_injection.size() < 2 && KeptApart(mesh, true).empty()) return;
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->label.empty()) continue;
    const kube::ObjectRef ns = SystemNamespace(mesh, *cluster);
    if (ns == nullptr) continue;
    if (const std::string injected = InjectedNetwork(mesh, *cluster); !injected.empty()) {
      findings.Add(*cluster, *ns,
                   fmt::format("namespace {} has no label {}: pods with a sidecar are in network {}, which injection "
                               "gives them (global.network), and a pod without one would be in none",
                               cluster->system_namespace, pilot::kNetworkLabel, injected));
      findings.Explain("the addresses of such a pod are sent to every network", {});
      continue;
    }
    findings.Add(
        *cluster, *ns,
        fmt::format("namespace {} has no label {}: the cluster's pods are in no network, and every network's pod "
                    "addresses are sent to them",
                    cluster->system_namespace, pilot::kNetworkLabel));
  }
}

// The networks of a cluster's mesh ConfigMap, and the map; null: there are none, or none that can be read (istiod
// refuses those, and says so).
struct WrittenNetworks {
  kube::ObjectRef map;
  config::MeshNetworks networks;
};
WrittenNetworks NetworksOf(const Mesh& mesh, const MeshCluster& cluster) {
  kube::ObjectRef map = MeshConfigMap(mesh, cluster);
  if (map == nullptr) return {};
  const auto data = kube::ConfigMapData(*map);
  const auto text = data.find("meshNetworks");
  if (text == data.end()) return {};
  absl::StatusOr<config::MeshNetworks> networks = config::ParseMeshNetworks(text->second);
  if (!networks.ok()) return {};
  return {std::move(map), *std::move(networks)};
}

void UnknownMeshNetworksRegistry(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    const auto [map, networks] = NetworksOf(mesh, *cluster);
    if (map == nullptr) continue;
    for (const auto& [name, network] : networks.networks) {
      for (const auto& endpoint : network.endpoints) {
        if (endpoint.from_registry.empty() || mesh.Find(endpoint.from_registry) != nullptr) continue;
        findings.Add(
            *cluster, *map,
            fmt::format("meshNetworks: network {} takes endpoints from registry {}, which is no cluster of this "
                        "mesh",
                        name, endpoint.from_registry));
      }
    }
  }
}

// istiod: pilot/pkg/model/network.go, NameCache: a name that does not resolve is no gateway;
// pilot/pkg/serviceregistry/kube/controller/network.go: a Service is looked for by its full host.
void UnknownMeshNetworksGateway(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->push == nullptr) continue;
    const auto [map, networks] = NetworksOf(mesh, *cluster);
    if (map == nullptr) continue;
    const auto pods = mesh.Pods(*cluster);
    for (const auto& [name, network] : networks.networks) {
      for (const auto& gateway : network.gateways) {
        if (gateway.address.empty()) {
          if (KnowsHost(*cluster, gateway.registry_service_name)) continue;
          findings.Add(*cluster, *map,
                       fmt::format("meshNetworks: the gateway of network {} is Service {}, which istiod does not know",
                                   name, gateway.registry_service_name));
          findings.Explain({}, "write its full host, e.g. istio-eastwestgateway.istio-system.svc.cluster.local");
          continue;
        }
        if (IpAddress::Parse(gateway.address).ok() || pods.empty()) continue;
        if (const auto found = pods.front()->ResolveName(gateway.address); found.ok() && !found->empty()) continue;
        findings.Add(*cluster, *map,
                     fmt::format("meshNetworks: the gateway of network {} is {}, which does not resolve", name,
                                 gateway.address));
      }
    }
  }
}

// istiod: pilot/pkg/serviceregistry/kube/controller/network.go, Network(): the label of the control plane's namespace
// counts before meshNetworks; pilot/pkg/model/network.go: so does a cluster's own gateway before an address there.
void MeshNetworksUnheeded(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->push == nullptr || cluster->istiod == nullptr) continue;
    const auto [map, networks] = NetworksOf(mesh, *cluster);
    if (map == nullptr) continue;
    std::map<std::string, std::string> of_registry;  // the first network that names it
    for (const auto& [name, network] : networks.networks) {
      // istiod: pilot/pkg/xds/ep_filters.go, selectNetworkGateways: gateways of the endpoint's own cluster come first.
      const auto known = cluster->istiod->registries().networks().Gateways();
      bool any = false, all_have = true;
      for (const auto& far : mesh.clusters()) {
        if (far->label != name) continue;
        any = true;
        all_have =
            all_have && !known->ForNetworkAndCluster(pilot::NetworkId(name), pilot::ClusterId(far->name)).empty();
      }
      for (const auto& gateway : network.gateways) {
        if (!any || !all_have || gateway.address.empty()) continue;
        const auto& own = known->ForNetwork(pilot::NetworkId(name));
        const bool same = std::any_of(own.begin(), own.end(), [&](const pilot::NetworkGateway& each) {
          return !each.cluster.empty() && each.addr == gateway.address && each.port == gateway.port;
        });
        if (same) continue;
        findings.Add(*cluster, *map,
                     fmt::format("meshNetworks: gateway {}:{} of network {} is never used: each cluster there has a "
                                 "gateway Service of its own, which istiod takes first",
                                 gateway.address, gateway.port, name));
        findings.Explain(
            "a cluster's own gateway (label topology.istio.io/network) counts before meshNetworks' addresses",
            "leave it out; or take the label from the Service, if the address is the one that is meant");
      }
      for (const auto& endpoint : network.endpoints) {
        if (endpoint.from_registry.empty()) {
          if (endpoint.from_cidr.find('/') != std::string::npos) continue;
          findings.Add(*cluster, *map,
                       fmt::format("meshNetworks: fromCidr {} of network {} is one address and no range: it covers "
                                   "nothing",
                                   endpoint.from_cidr, name));
          findings.Explain("istiod passes what it cannot parse over with a warning (unable to parse CIDR)",
                           fmt::format("write {}/32, or the range", endpoint.from_cidr));
          continue;
        }
        const auto [first, fresh] = of_registry.try_emplace(endpoint.from_registry, name);
        if (!fresh && first->second != name) {
          findings.Add(*cluster, *map,
                       fmt::format("meshNetworks: networks {} and {} both name {} in fromRegistry: it is in one of "
                                   "them, whichever istiod reads first",
                                   first->second, name, endpoint.from_registry));
          findings.Explain({}, "name each cluster in one network");
        }
        const MeshCluster* far = mesh.Find(endpoint.from_registry);
        if (far == nullptr || far->label.empty() || far->label == name) continue;
        findings.Add(*cluster, *map,
                     fmt::format("meshNetworks: {} is to be in network {} (fromRegistry), and the label "
                                 "topology.istio.io/network of its namespace {} says {}: the label counts",
                                 endpoint.from_registry, name, far->system_namespace, far->label));
      }
    }
  }
}

void ZonesBehindOneGateway(const Mesh& mesh, Findings& findings) {
  if (!HasSeveralNetworks(mesh)) return;
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->istiod == nullptr) continue;
    for (const auto& [key, shards] : cluster->istiod->discovery().endpoints().Sorted()) {
      if (IsSystemNamespace(mesh, key.substr(0, key.find('/')))) continue;
      for (const auto& [shard, endpoints] : shards->shards) {
        const MeshCluster* far = mesh.Find(shard.cluster.str());
        if (far == nullptr || far->network == cluster->network) continue;
        std::set<std::string> zones;
        for (const pilot::IstioEndpoint& e : *endpoints)
          zones.insert(e.p().locality.label.empty() ? "no locality" : e.p().locality.label);
        if (zones.size() < 2) continue;
        std::string message = fmt::format(
            "{} has endpoints in {} behind {}'s gateway: Envoy keeps the gateway's address once, with the weight of "
            "the first of them",
            key, fmt::join(zones, " and "), far->name);
        // "sample/helloworld.sample.svc.cluster.local"
        const std::string ns = key.substr(0, key.find('/')), host = key.substr(ns.size() + 1);
        const kube::ObjectRef service = mesh.Get(*far, "Service", ns, host.substr(0, host.find('.')));
        findings.Add(service == nullptr ? *cluster : *far, service, std::move(message));
      }
    }
  }
}

}  // namespace

const std::vector<Rule>& NetworkRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT101", "NetworkWithoutGateway", Level::kError,
       "istiod takes endpoints of a network without a known gateway for reachable, and sends the pods' addresses",
       "give the network's gateway Service the label topology.istio.io/network and an address",
       "istio/istio#44155, #39930", NetworkWithoutGateway},
      {"WT106", "UnreachableEndpoint", Level::kError,
       "a proxy holds a pod's address in a network that its packets do not reach: those requests time out",
       "see what made istiod think so: labels of networks, gateways, the names of clusters",
       "istio/istio#49412, #42516", UnreachableEndpoint},
      {"WT116", "AddressOutOfReach", Level::kError,
       "a proxy balances over an address that routes, firewalls or NAT keep from it: its share of the requests waits "
       "for the connect timeout, or is refused",
       "open the way, or take the address from the gateway's Service (its status, externalIPs, meshNetworks)",
       "istio/istio#43656", AddressOutOfReach},
      {"WT104", "NetworkNameShared", Level::kError, "pods of one network's name are sent to each other by pod address",
       "give each network a name of its own: the label of istio-system, of the gateway's Service and pods",
       "istio/istio#39712", NetworkNameShared},
      {"WT113", "NetworkLabelMissing", Level::kError,
       "a proxy in no network takes every endpoint for its own network's",
       "kubectl label namespace istio-system topology.istio.io/network=NAME", "istio/istio#58612, #17185",
       NetworkLabelMissing},
      {"WT127", "UnknownMeshNetworksGateway", Level::kError, "the network is one without that gateway",
       "write an address, or a name that istiod's resolver knows", "istio/istio#13581", UnknownMeshNetworksGateway},
      {"WT133", "MeshNetworksUnheeded", Level::kWarning,
       "a network's label is looked at first, and meshNetworks where there is none",
       "say one thing in both, or leave meshNetworks to what has no label", "", MeshNetworksUnheeded},
      {"IST0126", "UnknownMeshNetworksServiceRegistry", Level::kError, "no endpoint will ever belong to that network",
       "name a cluster ID of the mesh in fromRegistry", "istio/istio#23828", UnknownMeshNetworksRegistry},
      {"WT114", "ZonesBehindOneGateway", Level::kWarning,
       "istiod sends a gateway once per locality of the pods behind it, and Envoy keeps the first",
       "give the remote pods one zone, or set the split by DestinationRule", "istio/istio#56355, #53767",
       ZonesBehindOneGateway, false},
  };
  return *rules;
}

}  // namespace wavetank::check
