#include "core/debug/registry.h"

#include <map>
#include <string_view>

#include "core/config/schema/protocol.h"
#include "core/debug/model_json.h"
#include "core/istiod/istiod.h"
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
