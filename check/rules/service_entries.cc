// ServiceEntries: hosts that are someone else's, and endpoints that are none.
#include <algorithm>
#include <map>

#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/config/schema/protocol.h"
#include "core/registry/multicluster/registries.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

using config::ServiceEntry;

template <class Fn>
void EachEntry(const Mesh& mesh, Fn fn) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary) continue;
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

void Unreachable(const Mesh& mesh, Findings& findings) {
  EachEntry(mesh, [&](const MeshCluster& cluster, const auto& entry) {
    const ServiceEntry& spec = entry.spec;
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

void NetworkOfDnsEntry(const Mesh& mesh, Findings& findings) {
  EachEntry(mesh, [&](const MeshCluster& cluster, const auto& entry) {
    if (entry.spec.resolution != ServiceEntry::Resolution::kDns &&
        entry.spec.resolution != ServiceEntry::Resolution::kDnsRoundRobin)
      return;
    for (const auto& endpoint : entry.spec.endpoints) {
      if (endpoint.network.empty() || endpoint.network == cluster.label) continue;
      findings.Add(
          cluster, entry.meta,
          fmt::format(
              "endpoint {} of a DNS entry is in network {}: istiod 1.18 sends its own address, not the gateway's",
              endpoint.address, endpoint.network));
    }
  });
}

void AddressesRequired(const Mesh& mesh, Findings& findings) {
  EachEntry(mesh, [&](const MeshCluster& cluster, const auto& entry) {
    if (!entry.spec.addresses.empty()) return;
    for (const config::PortSpec& port : entry.spec.ports) {
      const pilot::Protocol protocol = pilot::ParseProtocol(port.protocol);
      if (protocol != pilot::Protocol::kTcp && protocol != pilot::Protocol::kUnsupported) continue;
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

}  // namespace

const std::vector<Rule>& ServiceEntryRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT554", "EntryCoversServices", Level::kWarning, "a listener for a range takes what has no listener of its own",
       "give the entry addresses outside of the cluster's Services", "", CoversServices},
      {"WT551", "HostTwice", Level::kWarning, "endpoints of two owners are mixed, or one owner is not heard",
       "give the ServiceEntry a host of its own", "istio/istio#37981", HostTwice},
      {"WT552", "ServiceEntryUnreachable", Level::kError, "requests are answered with 503",
       "name endpoints that are there", "", Unreachable},
      {"WT553", "DnsEntryInOtherNetwork", Level::kWarning,
       "gateways stand in for endpoints that EDS sends, not for DNS clusters", "use resolution STATIC",
       "istio/istio#45506", NetworkOfDnsEntry},
      {"IST0134", "ServiceEntryAddressesRequired", Level::kWarning, "TCP has nothing but the address to tell it by",
       "set addresses", "", AddressesRequired},
  };
  return *rules;
}

}  // namespace wavetank::check
