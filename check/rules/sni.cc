// SNI closure: what clients ask another network's gateway for, that gateway must serve.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_split.h"
#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/model/host_name.h"
#include "core/model/service.h"
#include "fakes/envoy/envoy.h"
#include "fakes/envoy/lb/endpoint_table.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

struct Gateway {
  const MeshCluster* cluster = nullptr;
  kube::ObjectRef service;
  std::set<std::string> served;  // SNI clusters with an endpoint
};

bool SetsOtherTls(const config::DestinationRule& rule, int port) {
  const auto other = [](const std::optional<config::ClientTlsSettings>& tls) {
    return tls && tls->mode != config::ClientTlsSettings::Mode::kIstioMutual;
  };
  if (!rule.traffic_policy) return false;
  for (const config::PortTrafficPolicy& each : rule.traffic_policy->port_level_settings) {
    if (static_cast<int>(each.port) == port) return other(each.tls);
  }
  return other(rule.traffic_policy->tls);
}

bool DisablesMtlsOf(const Mesh& mesh, const MeshCluster& far,
                    const config::TypedConfig<config::PeerAuthentication>& policy, const std::string& ns,
                    const kube::Labels& selector) {
  if (!HoldsIn(far, policy.meta.ns, ns) || !DisablesMtls(policy.spec)) return false;
  const auto pods = mesh.Pods(far);
  return std::any_of(pods.begin(), pods.end(), [&](const sim::PodProcess* pod) {
    const kube::Labels& labels = pod->pod()->meta.labels;
    return pod->pod()->meta.ns == ns && Selects(selector, labels) &&
           (!policy.spec.selector || Selects(*policy.spec.selector, labels));
  });
}

// By "address:port" of the gateways' Services.
std::map<std::string, Gateway> Gateways(const Mesh& mesh) {
  std::map<std::string, Gateway> out;
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& object : NetworkGatewayServices(mesh, *cluster)) {
      Gateway gateway;
      gateway.cluster = cluster.get();
      gateway.service = object;
      for (const sim::PodProcess* pod : Behind(mesh, *cluster, *object)) {
        if (pod->envoy() == nullptr) continue;
        for (const envoysim::EndpointStatus& e : pod->envoy()->Endpoints()) gateway.served.insert(e.cluster);
      }
      const kube::Service& service = kube::ParseService(*object);
      for (const auto& ingress : service.ingress) out[ingress.ip + ":15443"] = gateway;
      for (const std::string& ip : service.external_ips) out[ip + ":15443"] = gateway;
    }
  }
  return out;
}

// Other rules say why that gateway lets nothing in at all: told again for each name it would be of a wrong cause.
bool IsShut(const Findings& findings, const MeshCluster& cluster) {
  return cluster.istiod == nullptr || findings.Has("WT109", cluster.name) || findings.Has("WT110", cluster.name);
}

// Why the far side's gateway has no endpoint for a host and port that has no subset, and the remedy.
void TellWhole(const Mesh& mesh, const MeshCluster& near, const Gateway& gateway, const pilot::SubsetKey& key,
               const std::string& message, Findings& findings) {
  const MeshCluster& far = *gateway.cluster;
  const MeshCluster* config = mesh.Find(far.control_plane);
  const pilot::ServiceRef service = ServiceOf(far, key.hostname);
  const std::vector<std::string> labels = absl::StrSplit(std::string(key.hostname), '.');
  const kube::ObjectRef object = labels.size() < 2 ? nullptr : mesh.Get(far, "Service", labels[1], labels[0]);
  const auto add = [&](const std::string& why) {
    if (object != nullptr) return findings.Add(far, *object, message + why);
    findings.Add(far, *gateway.service, message + why);
  };
  if (service == nullptr) {
    add(object == nullptr ? fmt::format("; {} has no Service of that name", far.name)
                          : fmt::format("; {}'s istiod does not show that Service to its gateway", far.name));
    findings.Explain(
        "a gateway has a filter chain for the services alone that its own istiod knows",
        fmt::format("apply the Service in {} as it is in {}, and export it everywhere", far.name, near.name));
    return;
  }
  if (service->FindPort(static_cast<int>(key.port)) == nullptr) {
    add(fmt::format("; the Service has no TCP port {} there", key.port));
    findings.Explain("istiod merges addresses of namesakes, not their ports",
                     fmt::format("give the Service port {} in {} too", key.port, far.name));
    return;
  }
  // The gateway gets an endpoint only where client and server agree on mesh TLS.
  for (const config::DestinationRuleRef& rule : config->configs.DestinationRules()) {
    const std::string host = FullHost(rule->spec.host, rule->meta.ns);
    if (host != key.hostname && !pilot::HostSubsetOf(key.hostname, host)) continue;
    if (!SetsOtherTls(rule->spec, static_cast<int>(key.port))) continue;
    findings.Add(*config, rule->meta,
                 message + "; this rule sets a tls mode that gateways between networks do not have");
    findings.Explain("a gateway between networks gets endpoints that take mesh TLS alone",
                     "leave tls out of the rule, or set ISTIO_MUTUAL");
    return;
  }
  for (const config::PeerAuthenticationRef& policy : config->configs.PeerAuthentications()) {
    if (!DisablesMtlsOf(mesh, far, *policy, service->attributes.ns, service->attributes.label_selectors)) continue;
    findings.Add(*config, policy->meta, message + "; this policy disables mTLS of the pods behind it");
    findings.Explain("a gateway between networks gets endpoints that take mesh TLS alone",
                     "set PERMISSIVE or STRICT, or keep the Service's clients in its own network");
    return;
  }
  add("; it has no endpoint for it");
  findings.Explain("a gateway between networks gets endpoints that take mesh TLS alone, and closes what has none",
                   fmt::format("see why {} has no such endpoint: `wavetank why MESH --proxy GATEWAY@{} --host {}`",
                               far.name, far.name, key.hostname));
}

// Whether a proxy holds one of these addresses in a table and under a configuration that was not seen before.
bool HoldsAny(const envoysim::Envoy& envoy, const std::set<SocketAddress>& addresses,
              std::set<std::pair<const void*, const void*>>* seen) {
  bool out = false;
  for (const envoysim::EndpointsInUse& each : envoy.EndpointTables()) {
    if (each.table == nullptr || !seen->insert({each.config, each.table}).second) continue;
    out = out || std::any_of(each.table->endpoints.begin(), each.table->endpoints.end(),
                             [&](const envoysim::LbEndpoint& e) { return addresses.contains(e.address); });
  }
  return out;
}

void SniClosure(const Mesh& mesh, Findings& findings) {
  const std::map<std::string, Gateway> gateways = Gateways(mesh);
  if (gateways.empty()) return;  // as of a mesh of one network, whose proxies may hold millions of endpoints
  std::set<SocketAddress> addresses;
  for (const auto& [text, gateway] : gateways) {
    if (const absl::StatusOr<SocketAddress> address = SocketAddress::Parse(text); address.ok())
      addresses.insert(*address);
  }
  std::set<std::tuple<std::string, std::string, std::string>> told;
  for (const auto& cluster : mesh.clusters()) {
    std::set<std::pair<const void*, const void*>> seen;
    for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
      if (pod->envoy() == nullptr || pod->router()) continue;
      if (!HoldsAny(*pod->envoy(), addresses, &seen)) continue;
      for (const envoysim::EndpointStatus& e : pod->envoy()->Endpoints()) {
        const auto gateway = gateways.find(e.address);
        const auto key = pilot::ParseSubsetKey(e.cluster);
        if (gateway == gateways.end() || !key || !e.tls) continue;
        const std::string sni =
            pilot::BuildDnsSrvSubsetKey(pilot::TrafficDirection::kOutbound, key->subset, key->hostname, key->port);
        const MeshCluster& far = *gateway->second.cluster;
        if (IsShut(findings, far) || gateway->second.served.contains(sni) ||
            !told.insert({cluster->name, far.name, sni}).second)
          continue;
        // Where the subset comes from, if it is one.
        const config::DestinationRuleRef* from = nullptr;
        const MeshCluster* config = mesh.Find(cluster->control_plane);
        for (const config::DestinationRuleRef& rule : config->configs.DestinationRules()) {
          if (FullHost(rule->spec.host, rule->meta.ns) != key->hostname) continue;
          for (const auto& subset : rule->spec.subsets) {
            if (subset.name == key->subset) from = &rule;
          }
        }
        const std::string message =
            fmt::format("clients in {} ask {}'s gateway for {}, which it does not serve: connections are reset",
                        cluster->name, far.name, sni);
        if (from != nullptr) {
          findings.Add(*config, (*from)->meta,
                       message + fmt::format("; {} lacks the subset {}", far.name, key->subset));
        } else {
          TellWhole(mesh, *cluster, gateway->second, *key, message, findings);
        }
      }
    }
  }
}

}  // namespace

const std::vector<Rule>& SniRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT516", "SniClosure", Level::kError,
       "a gateway between networks has a filter chain for each service, port and subset that its own istiod knows",
       "apply the DestinationRule with its subsets in every primary cluster", "istio/istio#40673, #37077, #45010",
       SniClosure},
  };
  return *rules;
}

}  // namespace wavetank::check
