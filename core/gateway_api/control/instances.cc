#include "core/gateway_api/control/instances.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "fmt/format.h"

namespace wavetank::gatewayapi {
namespace {

using pilot::EndpointIndex;
using pilot::EndpointShards;
using pilot::IstioEndpoint;
using pilot::Service;

template <typename Visit>
void ForEachEndpoint(const EndpointIndex& index, const Service& service, Visit visit) {
  const EndpointShards* shards = index.Find(service.hostname, service.attributes.ns);
  if (shards == nullptr) return;
  for (const auto& [key, list] : shards->shards) {
    for (const IstioEndpoint& endpoint : *list) visit(endpoint);
  }
}

std::vector<std::string> Sorted(const std::set<std::string>& from) { return {from.begin(), from.end()}; }

// All of one Service; what was found is added to sets, as several Services may share it.
struct Found {
  std::set<std::string> internal, internal_ips, external, pending;
  std::vector<std::string> warnings;
  bool unusable = false;

  void Add(const EndpointIndex& index, const Service& service, const std::set<int>& ports) {
    for (const int number : ports) {
      const pilot::Port* port = service.FindPort(number);
      bool any = false, served = false;
      std::set<std::string> hints;  // ports of the Service that lead to this one of its pods
      ForEachEndpoint(index, service, [&](const IstioEndpoint& endpoint) {
        any = true;
        if (port != nullptr && endpoint.p().service_port_name == port->name) served = true;
        if (endpoint.endpoint_port != static_cast<uint32_t>(number)) return;
        if (const pilot::Port* of = service.FindPort(endpoint.p().service_port_name)) {
          hints.insert(std::to_string(of->port));
        }
      });
      if (served) {
        AddServed(service, number);
      } else if (!any) {
        warnings.push_back(fmt::format("no instances found for hostname \"{}\"", service.hostname));
      } else if (!hints.empty()) {
        warnings.push_back(
            fmt::format("port {} not found for hostname \"{}\" (hint: the service port should be specified, not the "
                        "workload port. Did you mean one of these ports: [{}]?)",
                        number, service.hostname, absl::StrJoin(hints, " ")));
        unusable = true;
      } else if (!service.attributes.labels.contains("gateway.istio.io/managed") || port == nullptr) {
        // Of a gateway that istiod deployed, endpoints are only late.
        warnings.push_back(fmt::format("port {} not found for hostname \"{}\"", number, service.hostname));
        unusable = true;
      }
    }
  }

 private:
  void AddServed(const Service& service, int number) {
    internal.insert(fmt::format("{}:{}", service.hostname, number));
    for (const auto& [cluster, addresses] : service.cluster_vips)
      internal_ips.insert(addresses.begin(), addresses.end());
    if (!service.attributes.cluster_external_addresses.empty()) {
      for (const auto& [cluster, addresses] : service.attributes.cluster_external_addresses) {
        external.insert(addresses.begin(), addresses.end());
      }
    } else if (service.attributes.kubernetes_service_type == "LoadBalancer" &&
               pending.insert(service.hostname).second) {
      warnings.push_back(fmt::format("address pending for hostname \"{}\"", service.hostname));
    }
  }
};

}  // namespace

GatewayInstances ResolveInstances(const pilot::ServiceDiscovery& discovery, const EndpointIndex& endpoints,
                                  const std::string& ns, const std::vector<std::string>& services,
                                  const std::set<int>& ports) {
  Found found;
  for (const std::string& hostname : services) {
    pilot::ServiceRef service;
    std::set<std::string> elsewhere;
    for (const pilot::ServiceRef& known : discovery.Services()) {
      if (known->hostname != hostname) continue;
      if (known->attributes.ns == ns) {
        if (service == nullptr) service = known;
      } else {
        elsewhere.insert("\"" + known->attributes.ns + "\"");
      }
    }
    if (service != nullptr) {
      found.Add(endpoints, *service, ports);
      continue;
    }
    found.unusable = true;
    found.warnings.push_back(
        elsewhere.empty()
            ? fmt::format("hostname \"{}\" not found", hostname)
            : fmt::format("hostname \"{}\" not found in namespace \"{}\", but it was found in namespace(s) {}",
                          hostname, ns, absl::StrJoin(elsewhere, ", ")));
  }
  std::sort(found.warnings.begin(), found.warnings.end());
  return {Sorted(found.internal), Sorted(found.internal_ips), Sorted(found.external),
          Sorted(found.pending),  std::move(found.warnings),  !found.unusable};
}

}  // namespace wavetank::gatewayapi
