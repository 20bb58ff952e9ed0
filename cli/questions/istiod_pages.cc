#include "cli/questions/istiod_pages.h"

#include "core/istiod/istiod.h"
#include "core/registry/multicluster/registries.h"
#include "core/xds/discovery_server.h"

namespace wavetank::cli {
namespace {

using Json = nlohmann::ordered_json;

Json Map(const pilot::Labels& labels) {
  Json out = Json::object();
  for (const auto& [key, value] : labels) out[key] = value;
  return out;
}

// Fields have the names of Go's struct: IstioEndpoint has no tags.
Json Endpoint(const pilot::IstioEndpoint& endpoint) {
  const pilot::EndpointProfile& p = endpoint.p();
  return {{"Labels", Map(p.labels)},
          {"Address", endpoint.address},
          {"ServicePortName", p.service_port_name},
          {"ServiceAccount", p.service_account},
          {"Network", p.network.str()},
          {"Locality", {{"Label", p.locality.label}, {"ClusterID", p.locality.cluster.str()}}},
          {"EndpointPort", endpoint.endpoint_port},
          {"LbWeight", endpoint.lb_weight},
          {"TLSMode", p.tls_mode},
          {"Namespace", p.ns},
          {"WorkloadName", p.workload_name},
          {"HostName", p.host_name},
          {"SubDomain", p.sub_domain},
          {"HealthStatus", static_cast<int>(endpoint.health)},
          {"NodeName", p.node_name}};
}

}  // namespace

Json EndpointShardz(const pilot::Istiod& istiod) {
  Json out = Json::object();
  for (const auto& [key, entry] : istiod.discovery().endpoints().Sorted()) {
    Json shards = Json::object(), accounts = Json::object();
    for (const auto& [shard, endpoints] : entry->shards) {
      Json& list = shards[std::string(pilot::ProviderName(shard.provider)) + "/" + shard.cluster.str()] = Json::array();
      for (const pilot::IstioEndpoint& endpoint : *endpoints) list.push_back(Endpoint(endpoint));
    }
    for (const std::string& account : entry->service_accounts) accounts[account] = Json::object();
    const size_t slash = key.find('/');
    out[key.substr(slash + 1)][key.substr(0, slash)] = {{"Shards", std::move(shards)},
                                                        {"ServiceAccounts", std::move(accounts)}};
  }
  return out;
}

Json Networkz(const pilot::Istiod& istiod) {
  Json out = Json::array();
  for (const pilot::NetworkGateway& gateway : istiod.registries().networks().Gateways()->All()) {
    out.push_back({{"Network", gateway.network.str()},
                   {"Cluster", gateway.cluster.str()},
                   {"Addr", gateway.addr},
                   {"Port", gateway.port}});
  }
  return out;
}

Json Registryz(const pilot::Istiod& istiod) {
  Json out = Json::array();
  for (const pilot::ServiceRef& service : istiod.registries().aggregate().Services()) {
    Json ports = Json::array(), vips = Json::object();
    for (const pilot::Port& port : service->ports)
      ports.push_back({{"name", port.name}, {"port", port.port}, {"protocol", pilot::ProtocolName(port.protocol)}});
    for (const auto& [cluster, addresses] : service->cluster_vips) vips[cluster.str()] = addresses;
    const pilot::ServiceAttributes& attributes = service->attributes;
    out.push_back({{"Attributes",
                    {{"ServiceRegistry", pilot::ProviderName(attributes.registry)},
                     {"Name", attributes.name},
                     {"Namespace", attributes.ns},
                     {"Labels", Map(attributes.labels)},
                     {"LabelSelectors", Map(attributes.label_selectors)}}},
                   {"ports", std::move(ports)},
                   {"hostname", service->hostname},
                   {"clusterVIPs", {{"Addresses", std::move(vips)}}},
                   {"defaultAddress", service->default_address},
                   {"autoAllocatedIPv4Address", service->auto_allocated_ipv4},
                   {"Resolution", static_cast<int>(service->resolution)},
                   {"MeshExternal", service->mesh_external},
                   {"ResourceVersion", std::to_string(service->resource_version)}});
  }
  return out;
}

}  // namespace wavetank::cli
