#include "core/istiod/debug.h"

#include <string>

#include "core/istiod/istiod.h"
#include "core/registry/multicluster/registries.h"
#include "core/xds/discovery_server.h"

namespace wavetank::pilot {
namespace {

using Json = nlohmann::ordered_json;

std::string_view HealthName(HealthStatus health) {
  switch (health) {
    case HealthStatus::kHealthy:
      return "Healthy";
    case HealthStatus::kUnhealthy:
      return "UnHealthy";
    case HealthStatus::kDraining:
      return "Draining";
    default:
      return "Unknown";
  }
}

}  // namespace

Json DebugServices(const Istiod& istiod) {
  Json out = Json::array();
  for (const ServiceRef& service : istiod.registries().aggregate().Services()) {
    Json ports = Json::array();
    for (const Port& port : service->ports) {
      ports.push_back({{"name", port.name}, {"port", port.port}, {"protocol", ProtocolName(port.protocol)}});
    }
    Json vips = Json::object();
    for (const auto& [cluster, addresses] : service->cluster_vips) vips[cluster.str()] = addresses;
    out.push_back({{"hostname", service->hostname},
                   {"namespace", service->attributes.ns},
                   {"registry", ProviderName(service->attributes.registry)},
                   {"address", service->default_address},
                   {"clusterVIPs", std::move(vips)},
                   {"ports", std::move(ports)}});
  }
  return out;
}

Json DebugEndpointShards(const Istiod& istiod) {
  Json out = Json::object();
  for (const auto& [key, entry] : istiod.discovery().endpoints().Sorted()) {
    Json shards = Json::object();
    for (const auto& [shard, endpoints] : entry->shards) {
      Json list = Json::array();
      for (const IstioEndpoint& endpoint : *endpoints) {
        const EndpointProfile& profile = endpoint.p();
        list.push_back({{"address", endpoint.address},
                        {"port", endpoint.endpoint_port},
                        {"portName", profile.service_port_name},
                        {"health", HealthName(endpoint.health)},
                        {"network", profile.network.str()},
                        {"locality", profile.locality.label},
                        {"cluster", profile.locality.cluster.str()},
                        {"serviceAccount", profile.service_account},
                        {"tlsMode", profile.tls_mode},
                        {"workload", profile.workload_name},
                        {"weight", endpoint.lb_weight}});
      }
      shards[std::string(ProviderName(shard.provider)) + "/" + shard.cluster.str()] = std::move(list);
    }
    out[key] = {{"shards", std::move(shards)}, {"serviceAccounts", entry->service_accounts}};
  }
  return out;
}

Json DebugSync(const Istiod& istiod) {
  Json out = Json::array();
  for (const Connection* connection : istiod.discovery().Clients()) {
    const Proxy& proxy = connection->proxy();
    Json types = Json::object();
    for (const auto& [type, watched] : proxy.watched_resources) {
      const bool acked = !watched.nonce_sent.empty() && watched.nonce_sent == watched.nonce_acked;
      const bool nacked = !watched.nonce_nacked.empty() && watched.nonce_sent == watched.nonce_nacked;
      types[std::string(ShortTypeName(type))] = {{"status", watched.nonce_sent.empty() ? "NOT SENT"
                                                            : nacked                   ? "ERROR"
                                                            : acked                    ? "SYNCED"
                                                                                       : "STALE"},
                                                 {"sent", watched.nonce_sent},
                                                 {"acked", watched.nonce_acked},
                                                 {"nacked", watched.nonce_nacked},
                                                 {"version", watched.version_sent},
                                                 {"wildcard", watched.wildcard},
                                                 {"resources", watched.resource_names}};
    }
    out.push_back({{"connection", connection->id()},
                   {"proxy", proxy.id},
                   {"cluster", proxy.cluster().str()},
                   {"type", proxy.IsRouter() ? "router" : "sidecar"},
                   {"delta", connection->delta()},
                   {"identity", proxy.verified_identity},
                   {"pushVersion", proxy.last_push_version},
                   {"watched", std::move(types)}});
  }
  return out;
}

Json DebugNetworks(const Istiod& istiod) {
  Json out = Json::array();
  for (const NetworkGateway& gateway : istiod.registries().networks().Gateways()->All()) {
    out.push_back({{"network", gateway.network.str()},
                   {"cluster", gateway.cluster.str()},
                   {"address", gateway.addr},
                   {"port", gateway.port}});
  }
  return out;
}

Json DebugClusters(const Istiod& istiod) {
  Json out = Json::array();
  for (const SecretController::ClusterState& state : istiod.registries().secrets().Clusters()) {
    out.push_back({{"id", state.id.str()},
                   {"secret", state.secret},
                   {"synced", istiod.registries().ClusterSynced(state.id)},
                   {"stopped", state.stopped}});
  }
  return out;
}

}  // namespace wavetank::pilot
