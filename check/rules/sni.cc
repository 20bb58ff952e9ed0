// SNI closure: what clients ask another network's gateway for, that gateway must serve.
#include <map>
#include <set>

#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/model/service.h"
#include "fakes/envoy/envoy.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

struct Gateway {
  const MeshCluster* cluster = nullptr;
  std::set<std::string> served;  // SNI clusters with an endpoint
};

// By "address:port" of the gateways' Services.
std::map<std::string, Gateway> Gateways(const Mesh& mesh) {
  std::map<std::string, Gateway> out;
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& object : NetworkGatewayServices(mesh, *cluster)) {
      Gateway gateway;
      gateway.cluster = cluster.get();
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

void SniClosure(const Mesh& mesh, Findings& findings) {
  const std::map<std::string, Gateway> gateways = Gateways(mesh);
  std::set<std::tuple<std::string, std::string, std::string>> told;
  for (const auto& cluster : mesh.clusters()) {
    for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
      if (pod->envoy() == nullptr || pod->router()) continue;
      for (const envoysim::EndpointStatus& e : pod->envoy()->Endpoints()) {
        const auto gateway = gateways.find(e.address);
        const auto key = pilot::ParseSubsetKey(e.cluster);
        if (gateway == gateways.end() || !key || !e.tls) continue;
        const std::string sni =
            pilot::BuildDnsSrvSubsetKey(pilot::TrafficDirection::kOutbound, key->subset, key->hostname, key->port);
        const MeshCluster& far = *gateway->second.cluster;
        if (gateway->second.served.contains(sni) || !told.insert({cluster->name, far.name, sni}).second) continue;
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
          findings.Add(cluster->name, "", {}, message);
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
