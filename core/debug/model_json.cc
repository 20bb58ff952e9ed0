#include "core/debug/model_json.h"

#include <set>
#include <string>

#include "core/config/schema/protocol.h"
#include "core/kube/time_format.h"

namespace wavetank::debug {
namespace {

using Json = nlohmann::ordered_json;

// A map of Go's that was never made is null.
Json LabelsJson(const pilot::Labels& labels, bool made) {
  if (!made && labels.empty()) return nullptr;
  Json out = Json::object();
  for (const auto& [name, value] : labels) out[name] = value;
  return out;
}

Json ExportToJson(const pilot::ExportTo& to) {
  if (to.empty()) return nullptr;
  std::set<std::string> names(to.namespaces.begin(), to.namespaces.end());
  if (to.is_public) names.insert("*");
  if (to.is_private) names.insert(".");
  if (to.is_none) names.insert("~");
  Json out = Json::object();
  for (const std::string& name : names) out[name] = true;
  return out;
}

Json AddressesJson(const pilot::AddressMap& addresses) {
  if (addresses.empty()) return nullptr;
  Json out = Json::object();
  for (const auto& [cluster, list] : addresses) out[cluster.str()] = list;
  return out;
}

Json ExternalPortsJson(const pilot::ServiceAttributes& attributes) {
  if (attributes.cluster_external_ports.empty()) return nullptr;
  Json out = Json::object();
  for (const auto& [cluster, ports] : attributes.cluster_external_ports) {
    Json& of_cluster = out[cluster.str()] = Json::object();
    for (const auto& [port, node_port] : ports) of_cluster[std::to_string(port)] = node_port;
  }
  return out;
}

Json AttributesJson(const pilot::ServiceAttributes& attributes) {
  const pilot::AddressMap& external = attributes.cluster_external_addresses;
  return {{"ServiceRegistry", pilot::ProviderName(attributes.registry)},
          {"Name", attributes.name},
          {"Namespace", attributes.ns},
          {"Labels", LabelsJson(attributes.labels, attributes.has_labels)},
          {"ExportTo", ExportToJson(attributes.export_to)},
          {"LabelSelectors", LabelsJson(attributes.label_selectors, attributes.has_label_selectors)},
          {"ClusterExternalAddresses", external.empty() ? Json() : Json{{"Addresses", AddressesJson(external)}}},
          {"ClusterExternalPorts", ExternalPortsJson(attributes)},
          {"Type", attributes.kubernetes_service_type},
          {"ExternalName", attributes.external_name},
          {"NodeLocal", attributes.node_local}};
}

Json PortJson(const pilot::Port& port) {
  Json out = Json::object();
  if (!port.name.empty()) out["name"] = port.name;
  out["port"] = port.port;
  out["protocol"] = pilot::ProtocolName(port.protocol);
  return out;
}

}  // namespace

Json ServiceJson(const pilot::Service& service) {
  Json out{{"Attributes", AttributesJson(service.attributes)}};
  if (!service.ports.empty()) {
    Json& ports = out["ports"] = Json::array();
    for (const pilot::Port& port : service.ports) ports.push_back(PortJson(port));
  }
  if (!service.service_accounts.empty()) out["serviceAccounts"] = service.service_accounts;
  out["creationTime"] =
      service.creation_unix_seconds == 0 ? "0001-01-01T00:00:00Z" : kube::FormatRfc3339(service.creation_unix_seconds);
  out["hostname"] = service.hostname;
  out["clusterVIPs"] = {{"Addresses", AddressesJson(service.cluster_vips)}};
  if (!service.default_address.empty()) out["defaultAddress"] = service.default_address;
  if (!service.auto_allocated_ipv4.empty()) out["autoAllocatedIPv4Address"] = service.auto_allocated_ipv4;
  out["Resolution"] = static_cast<int>(service.resolution);
  out["MeshExternal"] = service.mesh_external;
  out["ResourceVersion"] = service.resource_version == 0 ? "" : std::to_string(service.resource_version);
  return out;
}

Json EndpointJson(const pilot::IstioEndpoint& endpoint) {
  const pilot::EndpointProfile& profile = endpoint.p();
  return {{"Labels", LabelsJson(profile.labels, false)},
          {"Address", endpoint.address},
          {"ServicePortName", profile.service_port_name},
          {"ServiceAccount", profile.service_account},
          {"Network", profile.network.str()},
          {"Locality", {{"Label", profile.locality.label}, {"ClusterID", profile.locality.cluster.str()}}},
          {"EndpointPort", endpoint.endpoint_port},
          {"LbWeight", endpoint.lb_weight},
          {"TLSMode", profile.tls_mode},
          {"Namespace", profile.ns},
          {"WorkloadName", profile.workload_name},
          {"HostName", profile.host_name},
          {"SubDomain", profile.sub_domain},
          {"HealthStatus", static_cast<int>(endpoint.health)},
          {"NodeName", profile.node_name}};
}

Json InstanceJson(const pilot::ServiceInstance& instance) {
  Json out = Json::object();
  if (instance.service != nullptr) out["service"] = ServiceJson(*instance.service);
  out["servicePort"] = PortJson(instance.service_port);
  if (instance.endpoint.profile != nullptr) out["endpoint"] = EndpointJson(instance.endpoint);
  return out;
}

}  // namespace wavetank::debug
