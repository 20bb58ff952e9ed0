#include "oracles/golden/views.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace wavetank::golden {
namespace {

using nlohmann::json;

std::string_view ResolutionName(pilot::Resolution resolution) {
  switch (resolution) {
    case pilot::Resolution::kClientSideLb:
      return "ClientSide";
    case pilot::Resolution::kDnsLb:
      return "DNS";
    case pilot::Resolution::kDnsRoundRobinLb:
      return "DNSRoundRobin";
    case pilot::Resolution::kPassthrough:
      return "Passthrough";
    case pilot::Resolution::kDynamicDns:
      return "DynamicDNS";
    case pilot::Resolution::kAlias:
      break;
  }
  return "Alias";
}

json AddressesView(const pilot::AddressMap& addresses) {
  json out = json::object();
  for (auto [cluster, list] : addresses) {
    std::sort(list.begin(), list.end());
    out[cluster.str()] = std::move(list);
  }
  return out;
}

// Go writes a map that was never made as null.
json LabelsView(const pilot::Labels& labels, bool made) { return made ? json(labels) : json(); }

json ServiceView(const pilot::Service& service, bool cluster_local) {
  const pilot::ServiceAttributes& attributes = service.attributes;
  json ports = json::array();
  for (const pilot::Port& port : service.ports) {
    ports.push_back({{"name", port.name}, {"port", port.port}, {"protocol", pilot::ProtocolName(port.protocol)}});
  }
  json external_ports = json::object();
  for (const auto& [cluster, numbers] : attributes.cluster_external_ports) {
    json& of_cluster = external_ports[cluster.str()] = json::object();
    for (const auto& [port, node_port] : numbers) of_cluster[std::to_string(port)] = node_port;
  }
  std::vector<std::string> export_to(attributes.export_to.namespaces.begin(), attributes.export_to.namespaces.end());
  if (attributes.export_to.is_public) export_to.emplace_back("*");
  if (attributes.export_to.is_private) export_to.emplace_back(".");
  if (attributes.export_to.is_none) export_to.emplace_back("~");
  std::sort(export_to.begin(), export_to.end());
  std::vector<std::string> accounts = service.service_accounts;
  std::sort(accounts.begin(), accounts.end());
  return {{"auto_allocated_ipv4", service.auto_allocated_ipv4},
          {"cluster_external_addresses", AddressesView(attributes.cluster_external_addresses)},
          {"cluster_external_ports", std::move(external_ports)},
          {"cluster_local", cluster_local},
          {"cluster_vips", AddressesView(service.cluster_vips)},
          {"default_address", service.default_address},
          {"export_to", export_to},
          {"hostname", service.hostname},
          {"label_selectors", LabelsView(attributes.label_selectors, attributes.has_label_selectors)},
          {"labels", LabelsView(attributes.labels, attributes.has_labels)},
          {"mesh_external", service.mesh_external},
          {"name", attributes.name},
          {"namespace", attributes.ns},
          {"node_local", attributes.node_local},
          {"ports", std::move(ports)},
          {"registry", pilot::ProviderName(attributes.registry)},
          {"resolution", ResolutionName(service.resolution)},
          {"service_accounts", accounts}};
}

json EndpointView(const pilot::IstioEndpoint& endpoint) {
  const pilot::EndpointProfile& profile = endpoint.p();
  json out = {{"address", endpoint.address}};
  const auto text = [&](const char* name, const std::string& value) {
    if (!value.empty()) out[name] = value;
  };
  if (endpoint.endpoint_port != 0) out["port"] = endpoint.endpoint_port;
  if (endpoint.lb_weight != 0) out["weight"] = endpoint.lb_weight;
  if (static_cast<int>(endpoint.health) != 0) out["health"] = static_cast<int>(endpoint.health);
  if (!profile.labels.empty()) out["labels"] = profile.labels;
  text("port_name", profile.service_port_name);
  text("cluster", profile.locality.cluster.str());
  text("locality", profile.locality.label);
  text("network", profile.network.str());
  text("namespace", profile.ns);
  text("service_account", profile.service_account);
  text("tls_mode", profile.tls_mode);
  text("workload", profile.workload_name);
  text("node", profile.node_name);
  text("hostname", profile.host_name);
  text("subdomain", profile.sub_domain);
  return out;
}

}  // namespace

json GatewaysView(const pilot::NetworkGateways& gateways) {
  std::vector<pilot::NetworkGateway> all = gateways.All();
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tie(a.network, a.cluster, a.addr, a.port) < std::tie(b.network, b.cluster, b.addr, b.port);
  });
  json list = json::array();
  std::map<std::string, int> per_network, per_network_cluster;
  for (const pilot::NetworkGateway& gateway : all) {
    json& one = list.emplace_back(json{{"addr", gateway.addr},
                                       {"cluster", gateway.cluster.str()},
                                       {"network", gateway.network.str()},
                                       {"port", gateway.port}});
    if (gateway.hbone_port != 0) one["hbone_port"] = gateway.hbone_port;
    ++per_network[gateway.network.str()];
    ++per_network_cluster[gateway.network.str() + "|" + gateway.cluster.str()];
  }
  return {{"gateways", std::move(list)},
          {"gateways_per_network", per_network},
          {"gateways_per_network_cluster", per_network_cluster},
          {"lb_weight_scale_factor", gateways.LbWeightScaleFactor()},
          {"multi_network_enabled", gateways.IsMultiNetworkEnabled()}};
}

json ServicesView(const pilot::Aggregate& registries,
                  const std::function<bool(const pilot::Service&)>& is_cluster_local) {
  std::vector<std::string> names;
  for (const pilot::Registry* registry : registries.registries()) {
    names.push_back(std::string(pilot::ProviderName(registry->provider())) + "/" + registry->cluster().str());
  }
  std::sort(names.begin(), names.end());
  std::vector<pilot::ServiceRef> services = registries.Services();
  std::stable_sort(services.begin(), services.end(), [](const auto& a, const auto& b) {
    return std::tie(a->hostname, a->attributes.ns) < std::tie(b->hostname, b->attributes.ns);
  });
  json list = json::array();
  for (const pilot::ServiceRef& service : services) list.push_back(ServiceView(*service, is_cluster_local(*service)));
  return {{"registries", names}, {"services", std::move(list)}};
}

json ShardsView(const pilot::EndpointIndex& index, const std::set<std::string>& left_out) {
  json out = json::object();
  for (const auto& [key, service] : index.Sorted()) {
    if (left_out.contains(key)) continue;
    json shards = json::object();
    for (const auto& [shard, endpoints] : service->shards) {
      if (endpoints->empty()) continue;
      using SortKey = std::tuple<std::string, uint32_t, std::string>;
      std::vector<std::pair<SortKey, json>> sorted;
      for (const pilot::IstioEndpoint& endpoint : *endpoints) {
        sorted.emplace_back(SortKey{endpoint.address, endpoint.endpoint_port, endpoint.p().service_port_name},
                            EndpointView(endpoint));
      }
      std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      json& list = shards[std::string(pilot::ProviderName(shard.provider)) + "/" + shard.cluster.str()] = json::array();
      for (auto& [sort_key, view] : sorted) list.push_back(std::move(view));
    }
    if (!shards.empty()) out[key] = std::move(shards);
  }
  return out;
}

}  // namespace wavetank::golden
