// ServiceEntries: hosts that are someone else's, endpoints that are none, what is sent to hosts outside of the mesh,
// and who sees which of them.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/ip.h"
#include "core/base/json_access.h"
#include "core/config/schema/protocol.h"
#include "core/model/host_name.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "core/registry/multicluster/registries.h"
#include "fakes/envoy/envoy.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "scenarios/mesh/installer_files.h"

namespace wavetank::check {
namespace {

using nlohmann::json;

using config::ServiceEntry;
using Entry = config::TypedConfig<ServiceEntry>;
using TlsMode = config::ClientTlsSettings::Mode;

template <class Fn>
void EachEntry(const Mesh& mesh, Fn fn) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->push == nullptr) continue;
    for (const config::ServiceEntryRef& entry : cluster->configs.ServiceEntries()) fn(*cluster, *entry);
  }
}

void HostTwice(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary) continue;
    std::map<std::string, std::string> owner;  // host -> what has it
    for (const auto& each : mesh.clusters()) {
      for (const kube::ObjectRef& service : mesh.List(*each, "Service"))
        owner.emplace(FullHost(service->meta.name, service->meta.ns),
                      "Kubernetes Service " + service->meta.ns + "/" + service->meta.name);
    }
    for (const config::ServiceEntryRef& entry : cluster->configs.ServiceEntries()) {
      for (const std::string& host : entry->spec.hosts) {
        const auto [it, added] = owner.emplace(host, "ServiceEntry " + entry->meta.ns + "/" + entry->meta.name);
        if (!added) findings.Add(*cluster, entry->meta, fmt::format("host {} is {}'s already", host, it->second));
      }
    }
  }
}

bool BeginsTls(const MeshCluster& cluster, const std::string& host, uint32_t port);

// istiod: pilot/pkg/networking/core/cluster.go, buildOutboundClusters. Envoy:
// clusters/dynamic_forward_proxy/cluster.cc, createClusterWithConfig.
void UnreachableByName(const MeshCluster& cluster, const Entry& entry, Findings& findings) {
  if (!cluster.push->profile().Has(pilot::Change::kDynamicDns)) {
    findings.Add(
        cluster, entry.meta,
        fmt::format("resolution DYNAMIC_DNS: istiod {} does not have it for sidecars, and the entry is nothing",
                    cluster.push->profile().istio));
    return findings.Explain("it came with Istio 1.30", "upgrade istiod, or name the hosts with resolution DNS");
  }
  for (const std::string& host : entry.spec.hosts) {
    if (host.starts_with('*')) continue;
    findings.Add(cluster, entry.meta,
                 fmt::format("resolution DYNAMIC_DNS of {}: it is no wildcard, and no endpoint belongs to it", host));
    findings.Explain("names are looked up for wildcards alone", "say resolution: DNS");
  }
  for (const config::PortSpec& port : entry.spec.ports) {
    const pilot::Protocol protocol = pilot::ParseProtocol(port.protocol);
    const bool http2 = protocol == pilot::Protocol::kGrpc || protocol == pilot::Protocol::kHttp2;
    if (!http2 && protocol != pilot::Protocol::kHttp && protocol != pilot::Protocol::kTls) {
      findings.Add(cluster, entry.meta,
                   fmt::format("port {} is {}: with DYNAMIC_DNS no proxy has a cluster for it", port.number,
                               port.protocol.empty() ? "of no protocol" : port.protocol));
      findings.Explain("a name is read from a request's host or a ClientHello",
                       "call the port HTTP, HTTP2, GRPC or TLS");
      continue;
    }
    const bool verified = std::all_of(entry.spec.hosts.begin(), entry.spec.hosts.end(),
                                      [&](const auto& host) { return BeginsTls(cluster, host, port.number); });
    if (!http2 || verified) continue;
    findings.Add(cluster, entry.meta,
                 fmt::format("port {} is {}, and no DestinationRule begins TLS there: Envoys refuse its cluster",
                             port.number, port.protocol));
    findings.Explain("one that has options for HTTP/2 must say that it checks the server's name",
                     "add a DestinationRule with tls: {mode: SIMPLE} for the host, or call the port HTTP");
  }
}

void Unreachable(const Mesh& mesh, Findings& findings) {
  EachEntry(mesh, [&](const MeshCluster& cluster, const auto& entry) {
    const ServiceEntry& spec = entry.spec;
    if (spec.resolution == ServiceEntry::Resolution::kDynamicDns) return UnreachableByName(cluster, entry, findings);
    const bool by_dns = spec.resolution == ServiceEntry::Resolution::kDns ||
                        spec.resolution == ServiceEntry::Resolution::kDnsRoundRobin;
    if (spec.resolution == ServiceEntry::Resolution::kStatic && spec.endpoints.empty() && !spec.workload_selector) {
      return findings.Add(cluster, entry.meta,
                          "resolution STATIC without endpoints and workloadSelector: no request is answered");
    }
    if (spec.workload_selector) {
      const auto pods = mesh.ServedPods(cluster);
      const bool pod = std::any_of(pods.begin(), pods.end(), [&](const auto* p) {
        return p->pod()->meta.ns == entry.meta.ns && Selects(*spec.workload_selector, p->pod()->meta.labels);
      });
      const auto& entries = cluster.configs.WorkloadEntries();
      const bool machine = std::any_of(entries.begin(), entries.end(), [&](const auto& w) {
        return w->meta.ns == entry.meta.ns &&
               (Selects(*spec.workload_selector, w->spec.labels) || Selects(*spec.workload_selector, w->meta.labels));
      });
      if (!pod && !machine)
        findings.Add(cluster, entry.meta,
                     fmt::format("no pod and no WorkloadEntry of its namespace has the labels {}",
                                 LabelText(*spec.workload_selector)));
    }
    if (by_dns && spec.endpoints.empty()) {
      for (const std::string& host : spec.hosts) {
        if (host.starts_with("*"))
          findings.Add(cluster, entry.meta,
                       fmt::format("resolution DNS of {}: no address belongs to a wildcard", host));
      }
    }
    if (cluster.istiod == nullptr) return;
    for (const auto& endpoint : spec.endpoints) {
      if (endpoint.network.empty() || endpoint.network == cluster.label) continue;
      const auto gateways = cluster.istiod->registries().networks().Gateways();
      if (gateways->ForNetwork(pilot::NetworkId(endpoint.network)).empty()) {
        findings.Add(
            cluster, entry.meta,
            fmt::format("endpoint {} is in network {}, to which no gateway leads", endpoint.address, endpoint.network));
      }
    }
  });
}

bool BeginsTls(const MeshCluster& cluster, const std::string& host, uint32_t port) {
  for (const config::DestinationRuleRef& rule : cluster.configs.DestinationRules()) {
    const std::string of = FullHost(rule->spec.host, rule->meta.ns);
    if ((of != host && !pilot::HostSubsetOf(host, of)) || !rule->spec.traffic_policy) continue;
    if (rule->spec.traffic_policy->tls) return true;
    for (const auto& each : rule->spec.traffic_policy->port_level_settings) {
      if (each.port == port && each.tls) return true;
    }
  }
  return false;
}

// Clients begin TLS towards port 443 by themselves, and a proxy that takes it for HTTP answers 400 or closes.
void PlainAtTlsPort(const Mesh& mesh, Findings& findings) {
  EachEntry(mesh, [&](const MeshCluster& cluster, const auto& entry) {
    for (const config::PortSpec& port : entry.spec.ports) {
      const pilot::Protocol protocol = pilot::ParseProtocol(port.protocol);
      const bool plain = port.number == 443 && pilot::IsHttp(protocol) && port.target_port == 0;
      const bool behind = port.target_port == 443 && pilot::IsHttp(protocol);
      const bool tls = port.number == 80 && pilot::IsTls(protocol);
      const bool originates = std::any_of(entry.spec.hosts.begin(), entry.spec.hosts.end(),
                                          [&](const auto& host) { return BeginsTls(cluster, host, port.number); });
      if ((!plain && !tls && !behind) || originates) continue;
      findings.Add(
          cluster, entry.meta,
          plain ? std::string("port 443 is called HTTP, and no DestinationRule begins TLS there: what clients "
                              "send is TLS of their own, which no HTTP listener reads")
          : behind
              ? fmt::format("port {} is HTTP and leads to targetPort 443, and no DestinationRule begins TLS there: a "
                            "server of TLS is sent plain HTTP",
                            port.number)
              : fmt::format("port 80 is called {}: plain HTTP has no SNI, and finds no filter chain", port.protocol));
      if (behind) {
        findings.Explain(
            "targetPort changes where a request goes, not what it is",
            fmt::format("add a DestinationRule for the host with portLevelSettings of port {}: tls: {{mode: "
                        "SIMPLE, sni: HOST}}",
                        port.number));
      }
    }
  });
}

// istiod: pilot/pkg/serviceregistry/serviceentry/conversion.go, getTLSModeFromWorkloadEntry: by its label, or as it has
// an account; pilot/pkg/xds/ep_filters.go leaves out what a gateway would have to send in clear text.
bool HasMeshTls(const config::WorkloadEntry& entry) {
  const auto mode = entry.labels.find("security.istio.io/tlsMode");
  return mode == entry.labels.end() ? !entry.service_account.empty() : mode->second == "istio";
}

void EndpointWithoutMeshTls(const Mesh& mesh, Findings& findings) {
  const auto message = [](const config::WorkloadEntry& entry) {
    return fmt::format(
        "endpoint {} is in network {} and has neither a serviceAccount nor the label "
        "security.istio.io/tlsMode=istio: clients of other networks are not told of it",
        entry.address, entry.network);
  };
  EachEntry(mesh, [&](const MeshCluster& cluster, const auto& entry) {
    if (entry.spec.resolution != ServiceEntry::Resolution::kStatic) return;
    for (const auto& endpoint : entry.spec.endpoints) {
      if (endpoint.network.empty() || endpoint.network == cluster.label || HasMeshTls(endpoint)) continue;
      findings.Add(cluster, entry.meta, message(endpoint));
    }
  });
  for (const auto& cluster : mesh.clusters()) {
    if (!IsMeshPrimary(*cluster)) continue;
    for (const auto& entry : cluster->configs.WorkloadEntries()) {
      if (entry->spec.network.empty() || entry->spec.network == cluster->label || HasMeshTls(entry->spec)) continue;
      findings.Add(*cluster, entry->meta, message(entry->spec));
    }
  }
}

// Names of the ports of the Services and ServiceEntries of its namespace that select an entry, so that it is an
// endpoint of theirs; nullopt: none does.
std::optional<std::set<std::string>> PortsThatSelect(const Mesh& mesh, const MeshCluster& cluster,
                                                     const std::string& ns, const kube::Labels& labels) {
  std::set<std::string> ports;
  bool selected = false;
  for (const kube::ObjectRef& object : mesh.List(cluster, "Service", ns)) {
    const kube::Service& service = kube::ParseService(*object);
    if (!service.has_selector || !Selects(service.selector, labels)) continue;
    selected = true;
    for (const auto& port : service.ports) ports.insert(port.name);
  }
  for (const config::ServiceEntryRef& each : cluster.configs.ServiceEntries()) {
    if (each->meta.ns != ns || !each->spec.workload_selector || !Selects(*each->spec.workload_selector, labels))
      continue;
    selected = true;
    for (const auto& port : each->spec.ports) ports.insert(port.name);
  }
  return selected ? std::optional(std::move(ports)) : std::nullopt;
}

bool SelectedByDns(const MeshCluster& cluster, const std::string& ns, const kube::Labels& labels) {
  const auto& entries = cluster.configs.ServiceEntries();
  return std::any_of(entries.begin(), entries.end(), [&](const config::ServiceEntryRef& each) {
    return each->meta.ns == ns && each->spec.workload_selector && Selects(*each->spec.workload_selector, labels) &&
           (each->spec.resolution == ServiceEntry::Resolution::kDns ||
            each->spec.resolution == ServiceEntry::Resolution::kDnsRoundRobin);
  });
}

// Who brings no ServiceAccounts of its own, has them elsewhere.
bool AccountIsMissing(const Mesh& mesh, const MeshCluster& cluster, const std::string& ns, const std::string& account) {
  if (account.empty() || account == "default" || cluster.recorded) return false;
  const auto there = mesh.List(cluster, "ServiceAccount", ns);
  return std::any_of(there.begin(), there.end(), [](const auto& each) { return each->meta.name != "default"; }) &&
         mesh.Get(cluster, "ServiceAccount", ns, account) == nullptr;
}

// istiod: pilot/pkg/controllers/workloadentry: machines that connect become WorkloadEntries by the group's template.
void WorkloadGroupOfNowhere(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (!IsMeshPrimary(*cluster)) continue;
    for (const kube::ObjectRef& group : mesh.List(*cluster, "WorkloadGroup.networking.istio.io")) {
      const json& spec = At(group->body, {"spec", "template"});
      const std::string account = Text(spec, "serviceAccount", "default"), network = Text(spec, "network");
      if (mesh.Get(*cluster, "ServiceAccount", group->meta.ns, account) == nullptr) {
        findings.Add(*cluster, *group,
                     fmt::format("template.serviceAccount {}: {} has no such account in namespace {}, so that no token "
                                 "is made for its machines",
                                 account, cluster->name, group->meta.ns));
      }
      if (network.empty()) continue;
      bool known = false;
      for (const auto& each : mesh.clusters()) {
        known = known || each->label == network;
        for (const kube::ObjectRef& service : NetworkGatewayServices(mesh, *each))
          known = known || NetworkOfGateway(*service) == network;
      }
      if (known) continue;
      findings.Add(*cluster, *group,
                   fmt::format("template.network {}: no cluster and no gateway is of that network: its machines are "
                               "taken for reachable by address from everywhere",
                               network));
    }
  }
}

void WorkloadEntryOfNobody(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (!IsMeshPrimary(*cluster)) continue;
    for (const auto& entry : cluster->configs.WorkloadEntries()) {
      const std::string& ns = entry->meta.ns;
      kube::Labels labels = entry->meta.labels;
      for (const auto& [key, value] : entry->spec.labels) labels[key] = value;
      const std::optional<std::set<std::string>> ports = PortsThatSelect(mesh, *cluster, ns, labels);
      if (!ports) {
        findings.Add(*cluster, entry->meta,
                     fmt::format("no Service and no ServiceEntry of namespace {} selects {}", ns,
                                 labels.empty() ? "an entry without labels" : LabelText(labels)));
        continue;
      }
      // istiod: pilot/pkg/serviceregistry/serviceentry/conversion.go, DNSServiceEntryOnly.
      if (!IpAddress::Parse(entry->spec.address).ok() && !entry->spec.address.empty() &&
          !SelectedByDns(*cluster, ns, labels)) {
        findings.Add(*cluster, entry->meta,
                     fmt::format("address {} is a name, and no ServiceEntry of resolution DNS selects the entry: it is "
                                 "an endpoint of nothing",
                                 entry->spec.address));
        findings.Explain("istiod leaves names out where addresses are wanted, without a word",
                         "write its IP address, or say resolution: DNS in the ServiceEntry");
      }
      for (const auto& [name, number] : entry->spec.ports) {
        if (ports->contains(name)) continue;
        findings.Add(*cluster, entry->meta,
                     fmt::format("ports has '{}', and what selects it has ports named {}: {} is never asked", name,
                                 fmt::join(*ports, ", "), number));
        findings.Explain("ports of a WorkloadEntry are told by the name of the Service's port",
                         "name it as the Service's port is named");
      }
      if (!AccountIsMissing(mesh, *cluster, ns, entry->spec.service_account)) continue;
      findings.Add(
          *cluster, entry->meta,
          fmt::format("serviceAccount {} is not in {}: the machine gets no token and no certificate of that name, "
                      "which clients ask for",
                      entry->spec.service_account, ns));
      findings.Explain("clients compare the certificate with the account of the entry",
                       "create the ServiceAccount, or mend serviceAccount");
    }
  }
}

void NetworkOfDnsEntry(const Mesh& mesh, Findings& findings) {
  EachEntry(mesh, [&](const MeshCluster& cluster, const auto& entry) {
    if (entry.spec.resolution != ServiceEntry::Resolution::kDns &&
        entry.spec.resolution != ServiceEntry::Resolution::kDnsRoundRobin)
      return;
    if (Has(cluster, pilot::Change::kDnsEndpointsInShards)) return;
    for (const auto& endpoint : entry.spec.endpoints) {
      if (endpoint.network.empty() || endpoint.network == cluster.label) continue;
      findings.Add(
          cluster, entry.meta,
          fmt::format("endpoint {} of a DNS entry is in network {}: istiod sends its own address, not the gateway's",
                      endpoint.address, endpoint.network));
    }
  });
}

// No sidecar has a listener at whatever address of the port: where agents answer DNS it stands at the address that
// istiod has allocated.
bool HasAddressesOfItsOwn(const Mesh& mesh, const MeshCluster& cluster, uint32_t port) {
  const std::string anywhere = fmt::format("0.0.0.0_{}", port);
  bool sidecars = false;
  for (const sim::PodProcess* pod : mesh.ServedPods(cluster)) {
    if (pod->router() || pod->envoy() == nullptr) continue;
    sidecars = true;
    const std::vector<std::string> names = pod->envoy()->ListenerNames();
    if (std::find(names.begin(), names.end(), anywhere) != names.end()) return false;
  }
  return sidecars;
}

void AddressesRequired(const Mesh& mesh, Findings& findings) {
  EachEntry(mesh, [&](const MeshCluster& cluster, const auto& entry) {
    if (!entry.spec.addresses.empty()) return;
    for (const config::PortSpec& port : entry.spec.ports) {
      const pilot::Protocol protocol = pilot::ParseProtocol(port.protocol);
      if (protocol != pilot::Protocol::kTcp && protocol != pilot::Protocol::kUnsupported) continue;
      if (HasAddressesOfItsOwn(mesh, cluster, port.number)) continue;
      findings.Add(
          cluster, entry.meta,
          fmt::format("port {} is TCP and the entry has no addresses: its listener takes the port of everything else",
                      port.number));
    }
  });
}

void CoversServices(const Mesh& mesh, Findings& findings) {
  EachEntry(mesh, [&](const MeshCluster& cluster, const auto& entry) {
    for (const std::string& range : entry.spec.addresses) {
      for (const auto& each : mesh.clusters()) {
        if (each->control_plane != cluster.control_plane) continue;
        for (const kube::ObjectRef& object : mesh.List(*each, "Service")) {
          if (object->meta.ns == "default" && object->meta.name == "kubernetes") continue;
          if (!AnyCovers(range, kube::ParseService(*object).cluster_ip)) continue;
          return findings.Add(
              cluster, entry.meta,
              fmt::format("addresses {} cover the address of Service {}/{} in {}: connections to one may "
                          "end at the other",
                          range, object->meta.ns, object->meta.name, each->name));
        }
      }
    }
  });
}

// Fn(cluster, rule, entry, host) for DestinationRules whose host is an entry's of hosts outside of the mesh.
template <class Fn>
void EachRuleForStrangers(const Mesh& mesh, Fn fn) {
  EachEntry(mesh, [&](const MeshCluster& cluster, const Entry& entry) {
    if (entry.spec.location != ServiceEntry::Location::kMeshExternal || entry.spec.workload_selector) return;
    for (const config::DestinationRuleRef& rule : cluster.configs.DestinationRules()) {
      for (const std::string& host : entry.spec.hosts) {
        if (rule->spec.traffic_policy && pilot::HostMatches(rule->spec.host, host)) fn(cluster, *rule, entry, host);
      }
    }
  });
}

void MutualTlsToStrangers(const Mesh& mesh, Findings& findings) {
  EachRuleForStrangers(mesh, [&](const MeshCluster& cluster, const auto& rule, const Entry&, const std::string& host) {
    const auto& tls = rule.spec.traffic_policy->tls;
    if (rule.spec.host.starts_with('*') || !tls || tls->mode != TlsMode::kIstioMutual) return;
    findings.Add(cluster, rule.meta,
                 fmt::format("ISTIO_MUTUAL to {}, which is outside of the mesh and knows no certificate of it", host));
  });
}

// Some VirtualService turns HTTP of another port to this one, as istio.io's egress gateways with TLS origination do.
bool RoutesHttpTo(const MeshCluster& cluster, const std::string& host, uint32_t port) {
  for (const config::VirtualServiceRef& vs : cluster.configs.VirtualServices()) {
    for (const auto& http : vs->spec.http) {
      for (const auto& route : http.route) {
        if (FullHost(route.destination.host, vs->meta.ns) == host && route.destination.port == port) return true;
      }
    }
  }
  return false;
}

// The application speaks TLS already where the port says HTTPS or TLS.
void TlsOverTls(const Mesh& mesh, Findings& findings) {
  EachRuleForStrangers(
      mesh, [&](const MeshCluster& cluster, const auto& rule, const Entry& entry, const std::string& host) {
        const config::TrafficPolicy& policy = *rule.spec.traffic_policy;
        for (const config::PortSpec& port : entry.spec.ports) {
          if (!pilot::IsTls(pilot::ParseProtocol(port.protocol))) continue;
          const auto level = std::find_if(policy.port_level_settings.begin(), policy.port_level_settings.end(),
                                          [&](const auto& each) { return each.port == port.number; });
          const auto& tls = level == policy.port_level_settings.end() ? policy.tls : level->tls;
          if (!tls || (tls->mode != TlsMode::kSimple && tls->mode != TlsMode::kMutual)) continue;
          if (RoutesHttpTo(cluster, host, port.number)) continue;
          findings.Add(
              cluster, rule.meta,
              fmt::format("the proxy begins TLS to port {} of {}, whose protocol {} says that the application does: "
                          "TLS within TLS",
                          port.number, host, port.protocol));
        }
      });
}

void AddressesOfTwoEntries(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary) continue;
    std::map<std::pair<std::string, uint32_t>, const Entry*> first;
    for (const config::ServiceEntryRef& entry : cluster->configs.ServiceEntries()) {
      for (const config::PortSpec& port : entry->spec.ports) {
        const pilot::Protocol protocol = pilot::ParseProtocol(port.protocol);
        // HTTP and TLS are told apart by their hosts.
        if (pilot::IsHttp(protocol) || pilot::IsTls(protocol)) continue;
        for (const std::string& address : entry->spec.addresses) {
          const auto [it, added] = first.emplace(std::pair(address, port.number), entry.get());
          if (added || it->second == entry.get()) continue;
          findings.Add(*cluster, entry->meta,
                       fmt::format("{}:{} is ServiceEntry {}/{}'s already: a TCP listener leads to one of both",
                                   address, port.number, it->second->meta.ns, it->second->meta.name));
        }
      }
    }
  }
}

void EntryOutOfSight(const Mesh& mesh, Findings& findings) {
  EachEntry(mesh, [&](const MeshCluster& cluster, const Entry& entry) {
    if (SeenBySomeone(mesh, cluster, entry.spec.export_to, entry.meta.ns)) return;
    findings.Add(cluster, entry.meta,
                 fmt::format("exportTo {}: no proxy there that could use it", fmt::join(entry.spec.export_to, ", ")));
  });
}

// To hosts outside of the mesh sidecars send no mTLS of their own accord.
void PlaintextToOwnPods(const Mesh& mesh, Findings& findings) {
  EachEntry(mesh, [&](const MeshCluster& cluster, const Entry& entry) {
    if (entry.spec.location != ServiceEntry::Location::kMeshExternal || !entry.spec.workload_selector) return;
    for (const sim::PodProcess* pod : mesh.ServedPods(cluster)) {
      const kube::Object& object = *pod->pod();
      if (object.meta.ns != entry.meta.ns || !pod->bootstrap()) continue;
      if (!Selects(*entry.spec.workload_selector, object.meta.labels)) continue;
      const auto modes = cluster.push->authn().ComposeForWorkload(object.meta.ns, object.meta.labels);
      if (modes.mode != pilot::MutualTlsMode::kStrict) continue;
      return findings.Add(cluster, entry.meta,
                          fmt::format("location MESH_EXTERNAL selects pods of the mesh ({}) that demand mTLS: what is "
                                      "sent there in clear text is refused",
                                      pod->app()));
    }
  });
}

// A gateway between networks has a filter chain for each host that its own istiod knows; `.global` names of releases
// before 1.8 are none.
void ThroughGateway(const Mesh& mesh, Findings& findings) {
  std::map<std::string, const MeshCluster*> gateways;  // by address
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& object : NetworkGatewayServices(mesh, *cluster)) {
      const kube::Service& service = kube::ParseService(*object);
      for (const auto& ingress : service.ingress) gateways[ingress.ip] = cluster.get();
      for (const std::string& ip : service.external_ips) gateways[ip] = cluster.get();
    }
  }
  EachEntry(mesh, [&](const MeshCluster& cluster, const auto& entry) {
    for (const config::WorkloadEntry& endpoint : entry.spec.endpoints) {
      const auto at = gateways.find(endpoint.address);
      if (at == gateways.end() || at->second->istiod == nullptr) continue;
      const bool passes = std::any_of(endpoint.ports.begin(), endpoint.ports.end(),
                                      [](const auto& port) { return port.second == 15443; });
      for (const std::string& host : entry.spec.hosts) {
        if (!passes || ServiceOf(*at->second, host) != nullptr) continue;
        findings.Add(cluster, entry.meta,
                     fmt::format("leads to {}'s gateway {}:15443, which knows no host {}: connections are reset",
                                 at->second->name, endpoint.address, host));
      }
    }
  });
}

// A cluster's own range of pods or Services, as the scenario or its installer's file says it.
struct SaidRange {
  std::string cluster, what, cidrs;  // "pods"
};

// Without clusters of which a dump was brought: their pods have other addresses here than there.
std::vector<SaidRange> SaidRanges(const Mesh& mesh) {
  std::vector<SaidRange> out;
  for (const scenario::ClusterSpec& cluster : mesh.scenario().clusters) {
    if (std::any_of(mesh.brought().begin(), mesh.brought().end(),
                    [&](const BroughtObject& each) { return each.dumped && each.cluster == cluster.name; }))
      continue;
    const scenario::ClusterRanges files = scenario::ReadRanges(cluster).value_or(scenario::ClusterRanges());
    for (const auto& [what, said, of_files] : {std::tuple("pods", cluster.pod_cidr, files.pods),
                                               std::tuple("Services", cluster.service_cidr, files.services)}) {
      const std::string cidrs = said.empty() ? of_files : said;
      if (!cidrs.empty()) out.push_back({cluster.name, what, cidrs});
    }
  }
  return out;
}

// An address of the outside is anybody's; one of a cluster's own range is a pod's or a Service's, or nobody's any more.
void AddressesOfNobody(const Mesh& mesh, Findings& findings) {
  const std::vector<SaidRange> ranges = SaidRanges(mesh);
  if (ranges.empty()) return;
  std::set<std::string> taken;
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& pod : mesh.List(*cluster, "Pod")) {
      for (const json& each : Items(At(pod->body, {"status", "podIPs"}))) taken.insert(Text(each, "ip"));
      taken.insert(Text(At(pod->body, "status"), "podIP"));
    }
    for (const kube::ObjectRef& service : mesh.List(*cluster, "Service")) {
      for (const json& each : Items(At(service->body, {"spec", "clusterIPs"}))) taken.insert(TextOf(each));
      taken.insert(Text(At(service->body, "spec"), "clusterIP"));
    }
  }
  EachEntry(mesh, [&](const MeshCluster& cluster, const Entry& entry) {
    for (const config::WorkloadEntry& endpoint : entry.spec.endpoints) {
      if (taken.contains(endpoint.address)) continue;
      const auto range = std::find_if(ranges.begin(), ranges.end(),
                                      [&](const SaidRange& each) { return AnyCovers(each.cidrs, endpoint.address); });
      if (range == ranges.end()) continue;
      findings.Add(cluster, entry.meta,
                   fmt::format("endpoint {} is within {}, the addresses of {}'s {}, and nobody has it there",
                               endpoint.address, range->cidrs, range->cluster, range->what));
    }
  });
}

// Names that proxies are to look up, and whose requests wait for the answer.
struct LookedUp {
  const MeshCluster* cluster;
  kube::ObjectRef object;
  std::string name, host;
  std::vector<int> ports;
};

// Of ServiceEntries of resolution DNS (endpoints by name, or the hosts themselves) and of ExternalName Services.
std::vector<LookedUp> NamesOf(const Mesh& mesh) {
  std::vector<LookedUp> out;
  EachEntry(mesh, [&](const MeshCluster& cluster, const Entry& entry) {
    const ServiceEntry& spec = entry.spec;
    if (spec.resolution != ServiceEntry::Resolution::kDns &&
        spec.resolution != ServiceEntry::Resolution::kDnsRoundRobin)
      return;
    const kube::ObjectRef object =
        mesh.Get(cluster, "ServiceEntry.networking.istio.io", entry.meta.ns, entry.meta.name);
    std::vector<int> ports;
    for (const config::PortSpec& port : spec.ports) ports.push_back(static_cast<int>(port.number));
    for (const std::string& host : spec.hosts) {
      if (!spec.endpoints.empty()) {
        for (const auto& endpoint : spec.endpoints) out.push_back({&cluster, object, endpoint.address, host, ports});
      } else if (!spec.workload_selector && !host.starts_with("*")) {
        out.push_back({&cluster, object, host, host, ports});
      }
    }
  });
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& object : mesh.List(*cluster, "Service")) {
      if (kube::ParseService(*object).type != "ExternalName") continue;
      std::vector<int> ports;
      for (const auto& port : kube::ParseService(*object).ports) ports.push_back(port.port);
      out.push_back({cluster.get(), object, Text(At(object->body, "spec"), "externalName"),
                     FullHost(object->meta.name, object->meta.ns), std::move(ports)});
    }
  }
  std::erase_if(out, [](const LookedUp& each) {
    return each.object == nullptr || each.name.empty() || IpAddress::Parse(each.name).ok() ||
           each.name.starts_with("unix:");
  });
  return out;
}

// Within the clusters' own domain nobody else has an answer, and a top-level domain that is reserved has none at all.
bool NobodyElseKnows(const std::string& name) {
  for (const char* end : {".cluster.local", ".svc", ".invalid"}) {
    if (name.ends_with(end)) return true;
  }
  return name.find('.') == std::string::npos;
}

void NamesThatDoNotResolve(const Mesh& mesh, Findings& findings, bool of_nobody) {
  for (const LookedUp& each : NamesOf(mesh)) {
    if (NobodyElseKnows(each.name) != of_nobody) continue;
    // In releases where an ExternalName is another name of its target no proxy has a cluster of it: applications ask.
    const bool asks = each.object->kind == "Service" && Has(*each.cluster, pilot::Change::kExternalNameAliases);
    const sim::PodProcess* asking = nullptr;
    size_t proxies = 0;
    for (const sim::PodProcess* pod : mesh.ServedPods(*each.cluster)) {
      if (pod->envoy() == nullptr || pod->router()) continue;
      const auto clusters = pod->envoy()->ClusterNames();
      const bool has = std::any_of(each.ports.begin(), each.ports.end(), [&](int port) {
        return std::find(clusters.begin(), clusters.end(), fmt::format("outbound|{}||{}", port, each.host)) !=
               clusters.end();
      });
      if ((!has && !asks) || pod->ResolveName(each.name).ok()) continue;
      if (asking == nullptr) asking = pod;
      ++proxies;
    }
    if (asking == nullptr) continue;
    const std::string more = proxies > 1 ? fmt::format(" and {} more", proxies - 1) : "";
    if (asks) {
      findings.Add(
          *each.cluster, *each.object,
          fmt::format("{} does not resolve: {}{} get no address for {}", each.name, asking->name(), more, each.host));
      findings.Explain("the Service is another name of one that is not there", {});
      continue;
    }
    findings.Add(*each.cluster, *each.object,
                 fmt::format("{} does not resolve: requests for {}:{} from {}{} find no endpoint (503 UH, or a "
                             "connection that is closed)",
                             each.name, each.host, fmt::join(each.ports, ","), asking->name(), more));
  }
}

void NamesOfNobody(const Mesh& mesh, Findings& findings) { NamesThatDoNotResolve(mesh, findings, true); }
void NamesNotKnownHere(const Mesh& mesh, Findings& findings) { NamesThatDoNotResolve(mesh, findings, false); }

}  // namespace

const std::vector<Rule>& ServiceEntryRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT750", "WorkloadGroupOfNowhere", Level::kWarning, "machines of the group do not join, or are not reached",
       "mend the name, or create what it names", "", WorkloadGroupOfNowhere, false},
      {"WT559", "PlainAtTlsPort", Level::kWarning, "a port's protocol tells what clients send there, not the server",
       "call the port HTTPS or TLS; or HTTP with a DestinationRule that begins TLS", "istio/istio#16458, #16450",
       PlainAtTlsPort},
      {"WT560", "WorkloadEntryOfNobody", Level::kWarning, "an entry is nothing by itself",
       "mend its labels, or add a ServiceEntry with that workloadSelector", "istio/istio#34755", WorkloadEntryOfNobody},
      {"WT579", "EndpointWithoutMeshTls", Level::kError, "a gateway between networks takes mesh TLS alone",
       "give the endpoint its serviceAccount, or the label security.istio.io/tlsMode: istio", "",
       EndpointWithoutMeshTls},
      {"WT554", "EntryCoversServices", Level::kWarning, "a listener for a range takes what has no listener of its own",
       "give the entry addresses outside of the cluster's Services", "istio/istio#52847", CoversServices},
      {"WT558", "EntryThroughGateway", Level::kError,
       "a gateway between networks opens for the hosts of its own cluster's istiod alone",
       "leave the entry out: remote Secrets bring the Service's own name", "istio/istio#40624, #29335", ThroughGateway},
      {"WT551", "HostTwice", Level::kWarning, "endpoints of two owners are mixed, or one owner is not heard",
       "give the ServiceEntry a host of its own", "istio/istio#37981", HostTwice},
      {"WT552", "ServiceEntryUnreachable", Level::kError, "requests are answered with 503",
       "name endpoints that are there", "kartverket/skiperator#925", Unreachable},
      {"WT553", "DnsEntryInOtherNetwork", Level::kWarning,
       "gateways stand in for endpoints that EDS sends, not for DNS clusters", "use resolution STATIC",
       "istio/istio#45506", NetworkOfDnsEntry},
      {"IST0134", "ServiceEntryAddressesRequired", Level::kWarning, "TCP has nothing but the address to tell it by",
       "set addresses", "istio/istio#29992", AddressesRequired},
      {"WT528", "MutualTlsToStrangers", Level::kError, "its server does not know the mesh's certificates",
       "use SIMPLE, or leave tls out and let the application speak TLS", "istio/istio#33208", MutualTlsToStrangers},
      {"WT529", "TlsWithinTls", Level::kWarning, "a server that expects a request finds another handshake",
       "let applications send HTTP to a port of protocol HTTP, or leave tls out", "istio/istio#17031", TlsOverTls},
      {"WT555", "AddressesOfTwoEntries", Level::kWarning, "TCP has nothing but address and port to tell hosts apart by",
       "give each host an address of its own", "istio/istio#54990", AddressesOfTwoEntries},
      {"WT556", "ServiceEntryOutOfSight", Level::kWarning,
       "applications of other namespaces go on as if it were not there",
       "export it to the clients' namespaces, or leave exportTo out", "istio/istio#36712", EntryOutOfSight},
      {"WT557", "ServiceEntryOfOwnPods", Level::kError, "auto mTLS is for hosts within the mesh",
       "say location: MESH_INTERNAL", "", PlaintextToOwnPods},
      {"WT589", "NameOfNobody", Level::kError,
       "a proxy asks its DNS for the name, and has no endpoint without an answer",
       "mend the name, or bring what has it", "", NamesOfNobody},
      {"WT758", "AddressOfNobody", Level::kWarning,
       "addresses of pods last as long as their pods: what is sent there waits for its connect timeout",
       "select the pods by their labels (workloadSelector), or name the Service", "", AddressesOfNobody},
      {"WT725", "NameNotKnownHere", Level::kInfo,
       "the names of the outside are not known to this world: whether a real resolver has it is not told here",
       "give a scenario the name (dns:), or silence this", "", NamesNotKnownHere, false},
  };
  return *rules;
}

}  // namespace wavetank::check
