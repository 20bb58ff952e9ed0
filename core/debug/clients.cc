#include "core/debug/clients.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/debug/go_text.h"
#include "core/debug/model_json.h"
#include "core/istiod/istiod.h"
#include "core/profile/changes.h"
#include "core/push/sidecar_scope.h"
#include "core/xds/discovery_server.h"

namespace wavetank::debug {
namespace {

using Json = nlohmann::ordered_json;
using pilot::Connection;
using pilot::Proxy;
using pilot::XdsType;

// Fields of a proxy's metadata in the order of istiod's struct (istiod: pilot/pkg/model/context.go, NodeMetadata).
constexpr const char* kMetadata[] = {"PROXY_CONFIG",
                                     "ISTIO_VERSION",
                                     "ISTIO_REVISION",
                                     "LABELS",
                                     "STATIC_LABELS",
                                     "ANNOTATIONS",
                                     "INSTANCE_IPS",
                                     "NAMESPACE",
                                     "NODE_NAME",
                                     "WORKLOAD_NAME",
                                     "INTERCEPTION_MODE",
                                     "SERVICE_ACCOUNT",
                                     "HTTP_PROXY_PORT",
                                     "MESH_ID",
                                     "CLUSTER_ID",
                                     "NETWORK",
                                     "REQUESTED_NETWORK_VIEW",
                                     "POD_PORTS",
                                     "TLS_SERVER_CERT_CHAIN",
                                     "TLS_SERVER_KEY",
                                     "TLS_SERVER_ROOT_CERT",
                                     "TLS_CLIENT_CERT_CHAIN",
                                     "TLS_CLIENT_KEY",
                                     "TLS_CLIENT_ROOT_CERT",
                                     "BASE",
                                     "IDLE_TIMEOUT",
                                     "HTTP10",
                                     "GENERATOR",
                                     "DNS_CAPTURE",
                                     "DNS_AUTO_ALLOCATE",
                                     "ENABLE_HBONE",
                                     "AUTO_REGISTER_GROUP",
                                     "WORKLOAD_ENTRY",
                                     "UNPRIVILEGED_POD",
                                     "PLATFORM_METADATA",
                                     "STS_PORT",
                                     "ENVOY_STATUS_PORT",
                                     "ENVOY_PROMETHEUS_PORT",
                                     "EXIT_ON_ZERO_ACTIVE_CONNECTIONS",
                                     "INBOUND_LISTENER_EXACT_BALANCE",
                                     "OUTBOUND_LISTENER_EXACT_BALANCE",
                                     "CLOUDRUN_ADDR"};

Json MetadataJson(const nlohmann::json& raw) {
  Json out = Json::object();
  for (const char* name : kMetadata) {
    if (const auto it = raw.find(name); it != raw.end()) out[name] = *it;
  }
  return out;
}

Json LocalityJson(const pilot::ProxyLocality& locality) {
  Json out = Json::object();
  if (!locality.region.empty()) out["region"] = locality.region;
  if (!locality.zone.empty()) out["zone"] = locality.zone;
  if (!locality.sub_zone.empty()) out["sub_zone"] = locality.sub_zone;
  return out;
}

Json ConnectionJson(const Connection& connection) {
  return {{"connectionId", connection.id()},
          {"connectedAt", GoTime(connection.connected_at())},
          {"address", connection.address()}};
}

// istiod: ResourceStatus, by the types' URLs.
Json WatchedJson(const Proxy& proxy) {
  std::map<std::string, Json> by_type;
  for (const auto& [type, watched] : proxy.watched_resources) {
    Json& status = by_type[std::string(pilot::TypeUrl(type))] = Json::object();
    if (!watched.nonce_sent.empty()) status["sent"] = watched.nonce_sent;
    if (!watched.nonce_acked.empty()) status["acked"] = watched.nonce_acked;
    status["sentTime"] = watched.nonce_sent.empty() ? "0001-01-01T00:00:00Z" : GoTime(watched.last_sent);
    if (!watched.last_error.empty()) status["lastError"] = watched.last_error;
  }
  Json out = Json::object();
  for (auto& [type, status] : by_type) out[type] = std::move(status);
  return out;
}

Json ListJson(Json clients) {
  Json out{{"totalClients", clients.size()}};
  if (!clients.empty()) out["clients"] = std::move(clients);
  return out;
}

}  // namespace

const Connection* FindConnection(const pilot::Istiod& istiod, std::string_view proxy_id) {
  for (const Connection* connection : istiod.discovery().Clients()) {
    if (connection->id().find(proxy_id) != std::string::npos) return connection;
  }
  return nullptr;
}

Json Syncz(const pilot::Istiod& istiod) {
  struct Type {
    XdsType type;
    const char *sent, *acked;
  };
  static constexpr Type kTypes[] = {{XdsType::kCds, "cluster_sent", "cluster_acked"},
                                    {XdsType::kLds, "listener_sent", "listener_acked"},
                                    {XdsType::kRds, "route_sent", "route_acked"},
                                    {XdsType::kEds, "endpoint_sent", "endpoint_acked"},
                                    {XdsType::kEcds, "extensionconfig_sent", "extensionconfig_acked"}};
  Json out = Json::array();
  for (const Connection* connection : istiod.discovery().Clients()) {
    const Proxy& proxy = connection->proxy();
    Json status = Json::object();
    const auto put = [&](const char* name, const std::string& value) {
      if (!value.empty()) status[name] = value;
    };
    put("cluster_id", proxy.cluster().str());
    put("proxy", proxy.id);
    put("proxy_type", proxy.IsRouter() ? "router" : "sidecar");
    put("istio_version", proxy.metadata.istio_version);
    for (const Type& type : kTypes) {
      const auto watched = proxy.watched_resources.find(type.type);
      if (watched == proxy.watched_resources.end()) continue;
      put(type.sent, watched->second.nonce_sent);
      put(type.acked, watched->second.nonce_acked);
    }
    if (istiod.options().profile.Has(pilot::Change::kSyncOfWatched)) {
      if (Json resources = WatchedJson(proxy); !resources.empty()) status["resources"] = std::move(resources);
    }
    out.push_back(std::move(status));
  }
  return out;
}

Json Adsz(const pilot::Istiod& istiod, const Connection* only) {
  std::vector<const Connection*> connections;
  if (only != nullptr) {
    connections = {only};
  } else {
    connections = istiod.discovery().Clients();
    std::sort(connections.begin(), connections.end(), [](const auto* a, const auto* b) { return a->id() < b->id(); });
  }
  Json clients = Json::array();
  for (const Connection* connection : connections) {
    const Proxy& proxy = connection->proxy();
    Json client = ConnectionJson(*connection);
    client["labels"] = proxy.labels.empty() ? Json() : Json(proxy.labels);
    client["metadata"] = MetadataJson(*proxy.metadata.raw);
    if (!proxy.locality.empty()) client["locality"] = LocalityJson(proxy.locality);
    std::map<std::string, Json> watches;
    for (const auto& [type, watched] : proxy.watched_resources) {
      Json& names = watches[std::string(pilot::TypeUrl(type))] = Json::array();
      for (const std::string& name : watched.resource_names) names.push_back(name);
    }
    if (!watches.empty()) client["watches"] = watches;
    clients.push_back(std::move(client));
  }
  return ListJson(std::move(clients));
}

Json Connections(const pilot::Istiod& istiod) {
  Json clients = Json::array();
  for (const Connection* connection : istiod.discovery().Clients()) {
    Json client = ConnectionJson(*connection);
    client["labels"] = nullptr;
    clients.push_back(std::move(client));
  }
  return ListJson(std::move(clients));
}

Json Instancesz(const pilot::Istiod& istiod) {
  std::map<std::string, Json> by_proxy;
  for (const Connection* connection : istiod.discovery().Clients()) {
    Json& instances = by_proxy[connection->proxy().id] = Json();
    for (const pilot::ServiceInstance& instance : connection->proxy().service_instances) {
      instances.push_back(InstanceJson(instance));
    }
  }
  Json out = Json::object();
  for (auto& [proxy, instances] : by_proxy) out[proxy] = std::move(instances);
  return out;
}

// istiod: pilot/pkg/model/sidecar.go, SidecarScope.MarshalJSON; of a consolidated rule no field is exported.
Json Sidecarz(const Connection& connection) {
  const Proxy& proxy = connection.proxy();
  const pilot::SidecarScope* const scope = proxy.sidecar_scope.get();
  if (scope == nullptr) return nullptr;
  std::map<std::string, Json> rules;
  Json services = Json::array();
  for (const pilot::ServiceRef& service : scope->services()) {
    services.push_back(ServiceJson(*service));
    if (scope->DestinationRule(pilot::TrafficDirection::kOutbound, proxy, service->hostname) != nullptr) {
      rules[service->hostname] = Json::array({Json::object()});
    }
  }
  Json rules_json = Json::object();
  for (auto& [host, rule] : rules) rules_json[host] = std::move(rule);
  const bool registry_only = scope->outbound_traffic_policy.mode == config::OutboundTrafficPolicy::Mode::kRegistryOnly;
  Json sidecar;
  if (scope->sidecar != nullptr) {
    sidecar = {{"name", scope->sidecar->meta.name}, {"namespace", scope->sidecar->meta.ns}};
  }
  return {{"destinationRules", std::move(rules_json)},
          {"name", scope->name},
          {"namespace", scope->ns},
          {"outboundTrafficPolicy", registry_only ? Json::object() : Json{{"mode", "ALLOW_ANY"}}},
          {"rootNamespace", scope->root_namespace},
          {"services", std::move(services)},
          {"sidecar", std::move(sidecar)},
          {"version", scope->version}};
}

}  // namespace wavetank::debug
