#include "core/registry/service_entry/service_entry_conversion.h"

#include <utility>

#include "absl/strings/match.h"
#include "core/base/ip.h"
#include "core/model/addresses.h"
#include "core/model/export_to.h"
#include "core/profile/changes.h"
#include "core/registry/service_conversion.h"

namespace wavetank::pilot {
namespace {

Port ConvertPort(const config::PortSpec& port) {
  return {port.name, static_cast<int>(port.number), ParseProtocol(port.protocol)};
}

Resolution ConvertResolution(config::ServiceEntry::Resolution resolution) {
  switch (resolution) {
    case config::ServiceEntry::Resolution::kStatic:
      return Resolution::kClientSideLb;
    case config::ServiceEntry::Resolution::kDns:
      return Resolution::kDnsLb;
    case config::ServiceEntry::Resolution::kDnsRoundRobin:
      return Resolution::kDnsRoundRobinLb;
    case config::ServiceEntry::Resolution::kDynamicDns:
      return Resolution::kDynamicDns;
    case config::ServiceEntry::Resolution::kNone:
      break;
  }
  return Resolution::kPassthrough;
}

// An IP or prefix as listeners and routes take it: a prefix of one address is that address.
std::string UsableAddress(const std::string& address) {
  if (IsIpAddress(address)) return address;
  const absl::StatusOr<IpPrefix> prefix = IpPrefix::Parse(address);
  if (!prefix.ok()) return {};
  return prefix->length == (prefix->ip.is_v4() ? 32 : 128) ? prefix->ip.ToString() : address;
}

uint32_t FallbackPort(const config::PortSpec& port) { return port.target_port > 0 ? port.target_port : port.number; }

// The port of a workload that names some of its ports.
uint32_t WorkloadPort(const config::PortSpec& port, const std::map<std::string, uint32_t>& named) {
  const auto there = named.find(port.name);
  return there != named.end() && there->second > 0 ? there->second : FallbackPort(port);
}

// The workload's ports as instances of every service that selects it.
void AppendForEach(const std::vector<ServiceRef>& services, const std::vector<ServiceInstance>& ports,
                   InstanceList& out) {
  for (const ServiceRef& service : services) {
    for (const ServiceInstance& port : ports) {
      auto instance = std::make_shared<ServiceInstance>(port);
      instance->service = service;
      out.push_back(std::move(instance));
    }
  }
}

}  // namespace

std::vector<ServiceRef> ConvertServiceEntry(const config::TypedConfig<config::ServiceEntry>& entry,
                                            const Profile& profile, const Labels& namespace_annotations) {
  const config::ServiceEntry& spec = entry.spec;
  Service common;
  common.creation_unix_seconds = entry.meta.creation_unix_seconds;
  common.mesh_external = spec.location == config::ServiceEntry::Location::kMeshExternal;
  common.resolution = ConvertResolution(spec.resolution);
  const bool overrides = common.Passthrough() && profile.Has(Change::kPassthroughTargetPorts);
  for (const config::PortSpec& port : spec.ports) {
    common.ports.push_back(ConvertPort(port));
    if (overrides && port.target_port != 0) common.attributes.passthrough_target_ports[port.number] = port.target_port;
  }
  common.service_accounts = spec.subject_alt_names;
  common.attributes.registry = Provider::kExternal;
  common.attributes.ns = entry.meta.ns;
  common.attributes.labels = entry.meta.labels;
  common.attributes.has_labels = entry.meta.has_labels;
  common.attributes.export_to = ParseExportTo(spec.export_to);
  if (spec.workload_selector) common.attributes.label_selectors = *spec.workload_selector;
  common.attributes.traffic_distribution =
      DistributionOf("", entry.meta.annotations,
                     profile.Has(Change::kTrafficDistributionOfNamespaces) ? namespace_annotations : Labels(), profile);
  // istiod: pilot/pkg/model/service.go, GetDNSConnectStrategy.
  if (const auto strategy = entry.meta.annotations.find(kConnectStrategyAnnotation);
      strategy != entry.meta.annotations.end() && profile.Has(Change::kDnsConnectStrategy))
    common.attributes.races_addresses = absl::EqualsIgnoreCase(strategy->second, "RACE_FIRST_TCP_CONNECT");
  common.attributes.has_label_selectors = !common.attributes.label_selectors.empty();

  std::vector<ServiceRef> out;
  for (const std::string& host : spec.hosts) {
    const auto add = [&](std::string address) {
      auto service = std::make_shared<Service>(common);
      service->hostname = service->attributes.name = host;
      service->default_address = std::move(address);
      out.push_back(std::move(service));
    };
    if (spec.addresses.empty()) add(std::string(kUnspecifiedIp));
    for (const std::string& address : spec.addresses) {
      if (std::string usable = UsableAddress(address); !usable.empty()) add(std::move(usable));
    }
  }
  return out;
}

EndpointProfile EndpointConverter::Profile(const config::WorkloadEntry& workload,
                                           std::string_view account_namespace) const {
  EndpointProfile out;
  if (const auto mode = workload.labels.find(kTlsModeLabel); mode != workload.labels.end()) {
    out.tls_mode = mode->second;
  } else {
    out.tls_mode = std::string(workload.service_account.empty() ? kDisabledTlsMode : kMutualTlsMode);
  }
  if (!workload.service_account.empty()) {
    out.service_account =
        SpiffeId(trust_domain ? trust_domain() : "cluster.local", account_namespace, workload.service_account);
  }
  // The network that is derived goes into the labels only (istiod: convertEndpoint, conversion.go).
  out.network = NetworkId(workload.network);
  NetworkId labelled = out.network;
  if (labelled.empty() && network) labelled = network(workload.address, workload.labels);
  std::string locality = workload.locality;
  if (locality.empty() && locality_by_label) {
    for (const char* label : {"topology.istio.io/locality", "istio-locality"}) {
      const auto it = workload.labels.find(label);
      if (it == workload.labels.end()) continue;
      locality = LocalityFromLabel(it->second);
      break;
    }
  }
  out.locality = {locality, cluster};
  out.labels = workload.labels;
  AugmentLabels(out.labels, cluster, locality, "", labelled);
  return out;
}

void EndpointConverter::Append(const config::WorkloadEntry& workload, const std::vector<ServiceRef>& services,
                               const config::ServiceEntry& entry, const InstanceSource& source,
                               InstanceList& out) const {
  if (services.empty()) return;
  const bool unix_socket = workload.address.starts_with(kUnixPrefix);
  EndpointProfile common = Profile(workload, services[0]->attributes.ns);
  common.workload_name = source.name;
  common.ns = source.ns;
  std::vector<ServiceInstance> ports;
  for (const config::PortSpec& port : entry.ports) {
    ServiceInstance instance;
    instance.service_port = ConvertPort(port);
    instance.endpoint.address = unix_socket ? workload.address.substr(kUnixPrefix.size()) : workload.address;
    instance.endpoint.lb_weight = workload.weight;
    if (!unix_socket) instance.endpoint.endpoint_port = WorkloadPort(port, workload.ports);
    auto profile = std::make_shared<EndpointProfile>(common);
    profile->service_port_name = port.name;
    profile->entry_port = static_cast<int>(port.number);
    instance.endpoint.profile = std::move(profile);
    ports.push_back(std::move(instance));
  }
  AppendForEach(services, ports, out);
}

InstanceList EndpointConverter::InstancesOf(const config::TypedConfig<config::ServiceEntry>& written,
                                            const std::vector<ServiceRef>& services) const {
  const config::ServiceEntry& entry = written.spec;
  InstanceList out;
  if (!entry.endpoints.empty() || !IsDns(entry)) {
    // Per service, then port, then endpoint, as istiod has them.
    for (const ServiceRef& service : services) {
      for (const config::PortSpec& port : entry.ports) {
        config::ServiceEntry one_port;
        one_port.ports = {port};
        for (size_t i = 0; i < entry.endpoints.size(); ++i) {
          InstanceSource source;
          if (names_endpoints) {
            source.name = written.meta.name + "-" + std::to_string(i);
            source.ns = written.meta.ns;
          }
          Append(entry.endpoints[i], {service}, one_port, source, out);
        }
      }
    }
    return out;
  }
  // Resolved by name, and none given: the host itself is the endpoint.
  for (const ServiceRef& service : services) {
    for (const config::PortSpec& port : entry.ports) {
      auto profile = std::make_shared<EndpointProfile>();
      profile->service_port_name = port.name;
      profile->entry_port = static_cast<int>(port.number);
      profile->tls_mode = std::string(kDisabledTlsMode);
      if (names_endpoints) {
        profile->locality.cluster = cluster;
        profile->workload_name = written.meta.name;
        profile->ns = written.meta.ns;
      }
      auto instance = std::make_shared<ServiceInstance>();
      instance->service = service;
      instance->service_port = ConvertPort(port);
      instance->endpoint.address = service->hostname;
      instance->endpoint.endpoint_port = FallbackPort(port);
      instance->endpoint.profile = std::move(profile);
      out.push_back(std::move(instance));
    }
  }
  return out;
}

WorkloadInstance EndpointConverter::Workload(const config::ConfigMeta& meta,
                                             const config::WorkloadEntry& workload) const {
  WorkloadInstance out;
  out.name = meta.name;
  out.ns = meta.ns;
  out.kind = WorkloadInstance::Kind::kWorkloadEntry;
  out.port_map = workload.ports;
  // Kubernetes knows neither sockets nor host names as endpoints.
  out.dns_service_entry_only = !IsIpAddress(workload.address) && !(without_address && workload.address.empty());
  auto profile = std::make_shared<EndpointProfile>(Profile(workload, meta.ns));
  profile->workload_name = meta.name;
  if (names_by_group) {
    const auto group = meta.annotations.find("istio.io/autoRegistrationGroup");
    const auto label = meta.labels.find("service.istio.io/workload-name");
    if (group != meta.annotations.end()) {
      profile->workload_name = group->second;
    } else if (label != meta.labels.end()) {
      profile->workload_name = label->second;
    }
  }
  profile->ns = meta.ns;
  out.endpoint.address = workload.address;
  out.endpoint.lb_weight = workload.weight;
  out.endpoint.profile = std::move(profile);
  return out;
}

InstanceList InstancesOnWorkload(const WorkloadInstance& workload, const std::vector<ServiceRef>& services,
                                 const config::ServiceEntry& entry) {
  InstanceList out;
  std::vector<ServiceInstance> ports;
  for (const config::PortSpec& port : entry.ports) {
    ServiceInstance instance;
    instance.service_port = ConvertPort(port);
    instance.endpoint = workload.endpoint;
    instance.endpoint.endpoint_port = WorkloadPort(port, workload.port_map);
    auto profile = std::make_shared<EndpointProfile>(workload.endpoint.p());
    profile->service_port_name = port.name;
    profile->entry_port = static_cast<int>(port.number);
    instance.endpoint.profile = std::move(profile);
    ports.push_back(std::move(instance));
  }
  AppendForEach(services, ports, out);
  return out;
}

}  // namespace wavetank::pilot
