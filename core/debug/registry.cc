#include "core/debug/registry.h"

#include <map>
#include <string_view>
#include <tuple>

#include "core/config/schema/protocol.h"
#include "core/debug/model_json.h"
#include "core/istiod/istiod.h"
#include "core/registry/kube/multi_cluster_services.h"
#include "core/registry/multicluster/registries.h"
#include "core/xds/discovery_server.h"
#include "fmt/format.h"

namespace wavetank::debug {
namespace {

using Json = nlohmann::ordered_json;

// Go's %v of a map: "map[app:helloworld version:v1]".
std::string GoMap(const pilot::Labels& labels) {
  std::string out;
  for (const auto& [name, value] : labels) out += (out.empty() ? "" : " ") + name + ":" + value;
  return "map[" + out + "]";
}

}  // namespace

Json Registryz(const pilot::Istiod& istiod) {
  Json out = Json::array();
  for (const pilot::ServiceRef& service : istiod.registries().aggregate().Services()) {
    out.push_back(ServiceJson(*service));
  }
  return out;
}

// istiod: pilot/pkg/model/service.go, MCSServiceInfo.
Json Mcsz(const pilot::Istiod& istiod) {
  std::map<std::tuple<std::string, std::string, std::string>, Json> services;  // by cluster, namespace and name
  const auto of = [&](const pilot::KubeController& registry, const kube::ObjectMeta& meta) -> Json& {
    Json& service = services[{registry.cluster().str(), meta.ns, meta.name}];
    if (service.is_null()) {
      service = {{"Cluster", registry.cluster().str()},
                 {"Name", meta.name},
                 {"Namespace", meta.ns},
                 {"Exported", false},
                 {"Imported", false},
                 {"ClusterSetVIP", ""},
                 {"Discoverability", nullptr}};
    }
    return service;
  };
  for (const pilot::Registry* one : istiod.registries().aggregate().registries()) {
    const auto* const registry = dynamic_cast<const pilot::KubeController*>(one);
    const pilot::MultiClusterServices* const known = registry == nullptr ? nullptr : registry->multi_cluster_services();
    if (known == nullptr) continue;
    for (const kube::ObjectRef& object : known->exports().List()) {
      Json& service = of(*registry, object->meta);
      service["Exported"] = true;
      service["Discoverability"] = Json::object();
      const kube::NamespacedName name{object->meta.ns, object->meta.name};
      for (const pilot::ServiceRef& of_host : registry->ServicesOf(name)) {
        service["Discoverability"][of_host->hostname] =
            known->Confines(of_host->hostname, name, true) ? "DiscoverableFromSameCluster" : "AlwaysDiscoverable";
      }
    }
    for (const kube::ObjectRef& object : known->imports().List()) {
      Json& service = of(*registry, object->meta);
      service["Imported"] = true;
      const pilot::ServiceRef imported =
          registry->GetService(pilot::ClusterSetHostname({object->meta.ns, object->meta.name}));
      if (imported == nullptr) continue;
      const auto vips = imported->cluster_vips.find(registry->cluster());
      if (vips != imported->cluster_vips.end() && !vips->second.empty()) service["ClusterSetVIP"] = vips->second[0];
    }
  }
  if (services.empty()) return nullptr;
  Json out = Json::array();
  for (auto& [key, service] : services) out.push_back(std::move(service));
  return out;
}

Json Endpointz(const pilot::Istiod& istiod) {
  const pilot::Aggregate& registries = istiod.registries().aggregate();
  Json out = Json::array();
  for (const pilot::ServiceRef& service : registries.Services()) {
    for (const pilot::Port& port : service->ports) {
      Json endpoints;  // null, if there are none
      for (const pilot::ServiceInstance& instance : registries.InstancesByPort(*service, port.port)) {
        endpoints.push_back(InstanceJson(instance));
      }
      out.push_back({{"svc", service->hostname + ":" + port.name}, {"ep", std::move(endpoints)}});
    }
  }
  return out;
}

std::string BriefEndpointz(const pilot::Istiod& istiod) {
  const pilot::Aggregate& registries = istiod.registries().aggregate();
  std::string out;
  for (const pilot::ServiceRef& service : registries.Services()) {
    for (const pilot::Port& port : service->ports) {
      for (const pilot::ServiceInstance& instance : registries.InstancesByPort(*service, port.port)) {
        const pilot::IstioEndpoint& endpoint = instance.endpoint;
        out += fmt::format("{}:{} {}:{} {} {}\n", service->hostname, port.name, endpoint.address,
                           endpoint.endpoint_port, GoMap(endpoint.p().labels), endpoint.p().service_account);
      }
    }
  }
  return out;
}

Json EndpointShardz(const pilot::Istiod& istiod) {
  // By host name first; an ordered map sorts as Go does.
  std::map<std::string, std::map<std::string, Json>> hosts;
  for (const auto& [key, entry] : istiod.discovery().endpoints().Sorted()) {
    const size_t slash = key.find('/');
    Json shards = Json::object();
    for (const auto& [shard, endpoints] : entry->shards) {
      Json list = Json::array();
      for (const pilot::IstioEndpoint& endpoint : *endpoints) list.push_back(EndpointJson(endpoint));
      shards[std::string(pilot::ProviderName(shard.provider)) + "/" + shard.cluster.str()] = std::move(list);
    }
    Json accounts = Json::object();
    for (const std::string& account : entry->service_accounts) accounts[account] = Json::object();
    hosts[key.substr(slash + 1)][key.substr(0, slash)] = {{"Shards", std::move(shards)},
                                                          {"ServiceAccounts", std::move(accounts)}};
  }
  Json out = Json::object();
  for (auto& [host, namespaces] : hosts) {
    Json& of_host = out[host] = Json::object();
    for (auto& [ns, shards] : namespaces) of_host[ns] = std::move(shards);
  }
  return out;
}

Json Networkz(const pilot::Istiod& istiod) {
  Json out;
  for (const pilot::NetworkGateway& gateway : istiod.registries().networks().Gateways()->All()) {
    out.push_back({{"Network", gateway.network.str()},
                   {"Cluster", gateway.cluster.str()},
                   {"Addr", gateway.addr},
                   {"Port", gateway.port}});
  }
  return out;
}

// istiod: pkg/kube/multicluster/secretcontroller.go, ListRemoteClusters.
Json Clusterz(const pilot::Istiod& istiod) {
  const pilot::Registries& registries = istiod.registries();
  Json out;
  for (const pilot::SecretController::ClusterState& state : registries.secrets().Clusters()) {
    const std::string_view status = state.stopped                          ? "closed"
                                    : registries.ClusterTimedOut(state.id) ? "timeout"
                                    : registries.ClusterSynced(state.id)   ? "synced"
                                                                           : "syncing";
    out.push_back({{"id", state.id.str()}, {"secretName", state.secret}, {"syncStatus", status}});
  }
  return out;
}

}  // namespace wavetank::debug
