#include "core/istiod/explain_host.h"

#include <algorithm>

#include "core/gen/eds/load_assignment_builder.h"
#include "core/model/environment.h"
#include "core/push/push_context.h"

namespace wavetank::pilot {
namespace {

using Json = nlohmann::ordered_json;

HostExplanation::Cluster ExplainCluster(std::string name, bool watched, const Proxy& proxy, const PushContext& push) {
  HostExplanation::Cluster out{std::move(name), watched, {}};
  LoadAssignmentBuilder(out.name, proxy, push).Build(nullptr, &out.assignment);
  return out;
}

std::vector<HostExplanation::Candidate> Candidates(const Proxy& proxy, const PushContext& push, std::string_view host) {
  std::vector<HostExplanation::Candidate> out;
  for (const ServiceRef& service : push.GetAllServices()) {
    if (service->hostname != host) continue;
    HostExplanation::Candidate candidate{service, push.IsServiceVisible(*service, proxy.config_namespace), {}};
    if (const EndpointShards* shards = push.env().endpoints->Find(host, service->attributes.ns)) {
      for (const auto& [key, list] : shards->shards) {
        candidate.shards.emplace_back(key, list == nullptr ? 0 : list->size());
      }
    }
    out.push_back(std::move(candidate));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.service->attributes.ns < b.service->attributes.ns; });
  return out;
}

std::string ShardName(const ShardKey& key) { return std::string(ProviderName(key.provider)) + "/" + key.cluster.str(); }

Json ToJson(const EndpointRoute& route) {
  Json out = {{"address", route.address}, {"port", route.port}, {"gateway", route.gateway}};
  if (route.gateway) out["gatewayCluster"] = route.gateway_cluster;
  out["weight"] = route.weight;
  out["locality"] = route.locality;
  out["localityWeight"] = route.locality_weight ? Json(*route.locality_weight) : Json();
  out["priority"] = route.priority;
  return out;
}

Json ToJson(const EndpointDecision& decision) {
  const EndpointProfile& profile = decision.endpoint->p();
  Json filters = Json::object();
  for (int i = 0; i < kEndpointFilters; ++i) {
    const auto filter = static_cast<EndpointFilter>(i);
    if (filter > decision.refused_by) break;  // not asked
    filters[std::string(FilterName(filter))] = filter < decision.refused_by;
  }
  Json out = {{"address", decision.endpoint->address},
              {"port", decision.endpoint->endpoint_port},
              {"portName", profile.service_port_name},
              {"shard", ShardName(decision.shard)},
              {"network", profile.network.str()},
              {"locality", profile.locality.label},
              {"workload", profile.workload_name},
              {"filters", std::move(filters)},
              {"refusedBy", decision.refused_by == EndpointFilter::kPassed ? Json() : FilterName(decision.refused_by)}};
  if (decision.mtls) {
    out["mtls"] = VerdictText(*decision.mtls);
    out["mtlsOffByAddress"] = decision.mtls_off_by_address;
    out["ownNetwork"] = decision.own_network;
    out["throughGateways"] = decision.through_gateways;
    out["weight"] = decision.weight;
  }
  Json routes = Json::array();
  for (const EndpointRoute& route : decision.routes) routes.push_back(ToJson(route));
  out["routes"] = std::move(routes);
  return out;
}

}  // namespace

HostExplanation ExplainHost(const Proxy& proxy, const PushContext& push, std::string_view host) {
  HostExplanation out;
  out.host = host;
  out.proxy = proxy.id;
  out.cluster = proxy.cluster().str();
  out.network = proxy.metadata.network.str();
  out.locality = proxy.locality.Label();
  if (proxy.sidecar_scope != nullptr) out.sidecar = proxy.sidecar_scope->ns + "/" + proxy.sidecar_scope->name;
  out.candidates = Candidates(proxy, push, host);
  out.seen = push.ServiceForHostname(proxy, host);
  if (const auto watched = proxy.watched_resources.find(XdsType::kEds); watched != proxy.watched_resources.end()) {
    for (const std::string& name : watched->second.resource_names) {
      const auto key = ParseSubsetKey(name);
      if (key && key->hostname == host) out.clusters.push_back(ExplainCluster(name, true, proxy, push));
    }
  }
  if (out.clusters.empty() && out.seen != nullptr) {
    for (const Port& port : out.seen->ports) {
      out.clusters.push_back(
          ExplainCluster(BuildSubsetKey(TrafficDirection::kOutbound, "", host, port.port), false, proxy, push));
    }
  }
  return out;
}

Json ToJson(const HostExplanation& explanation, std::string_view address) {
  Json candidates = Json::array();
  for (const HostExplanation::Candidate& candidate : explanation.candidates) {
    Json shards = Json::object();
    for (const auto& [key, count] : candidate.shards) shards[ShardName(key)] = count;
    candidates.push_back({{"namespace", candidate.service->attributes.ns},
                          {"exported", candidate.exported},
                          {"shards", std::move(shards)}});
  }
  Json clusters = Json::array();
  for (const HostExplanation::Cluster& cluster : explanation.clusters) {
    const AssignmentExplanation& a = cluster.assignment;
    Json endpoints = Json::array();
    for (const EndpointDecision& decision : a.endpoints) {
      if (address.empty() || decision.endpoint->address == address) endpoints.push_back(ToJson(decision));
    }
    clusters.push_back({{"name", cluster.name},
                        {"watched", cluster.watched},
                        {"refusal", RefusalText(a.refusal)},
                        {"multiNetwork", a.multi_network},
                        {"destinationRule", a.rule},
                        {"outlierDetection", a.outlier_detection},
                        {"localityLb", ModeName(a.locality_lb)},
                        {"endpoints", std::move(endpoints)}});
  }
  return {{"host", explanation.host},
          {"proxy", explanation.proxy},
          {"cluster", explanation.cluster},
          {"network", explanation.network},
          {"locality", explanation.locality},
          {"sidecar", explanation.sidecar},
          {"services", std::move(candidates)},
          {"seen", explanation.seen == nullptr ? Json() : Json(explanation.seen->attributes.ns)},
          {"clusters", std::move(clusters)}};
}

}  // namespace wavetank::pilot
