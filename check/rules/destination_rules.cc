// DestinationRules: hosts, subsets, failover, TLS towards other networks.
#include <algorithm>
#include <map>
#include <set>

#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/model/host_name.h"
#include "core/xds/discovery_server.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

using config::ClientTlsSettings;
using config::DestinationRule;
using config::TrafficPolicy;
using RuleConfig = config::TypedConfig<DestinationRule>;

template <class Fn>
void EachRule(const Mesh& mesh, Fn fn) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->push == nullptr) continue;
    for (const config::DestinationRuleRef& rule : cluster->configs.DestinationRules()) fn(*cluster, *rule);
  }
}

// Fn(policy, "of subset v1" or "") for the rule's and its subsets'.
template <class Fn>
void EachPolicy(const DestinationRule& spec, Fn fn) {
  if (spec.traffic_policy) fn(*spec.traffic_policy, std::string());
  for (const config::Subset& subset : spec.subsets) {
    if (subset.traffic_policy) fn(*subset.traffic_policy, " of subset " + subset.name);
  }
}

// Endpoints of all services that the rule's host covers, with their shards' clusters.
std::vector<std::pair<std::string, const pilot::IstioEndpoint*>> EndpointsOf(const MeshCluster& cluster,
                                                                             const RuleConfig& rule) {
  std::vector<std::pair<std::string, const pilot::IstioEndpoint*>> out;
  const std::string host = FullHost(rule.spec.host, rule.meta.ns);
  for (const pilot::ServiceRef& service : cluster.push->GetAllServices()) {
    if (service->hostname != host && !pilot::HostSubsetOf(service->hostname, host)) continue;
    const auto* shards = cluster.istiod->discovery().endpoints().Find(service->hostname, service->attributes.ns);
    if (shards == nullptr) continue;
    for (const auto& [shard, endpoints] : shards->shards) {
      for (const pilot::IstioEndpoint& e : *endpoints) out.emplace_back(shard.cluster.str(), &e);
    }
  }
  return out;
}

// A cluster of another network that has endpoints of the host; empty: none.
std::string RemoteNetwork(const Mesh& mesh, const MeshCluster& cluster, const RuleConfig& rule) {
  for (const auto& [name, endpoint] : EndpointsOf(cluster, rule)) {
    const MeshCluster* far = mesh.Find(name);
    if (far != nullptr && far->network != cluster.network) return far->name;
  }
  return {};
}

void HostUnknown(const Mesh& mesh, Findings& findings) {
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    const std::string host = FullHost(rule.spec.host, rule.meta.ns);
    if (!KnowsHost(cluster, host))
      findings.Add(cluster, rule.meta,
                   fmt::format("host {} is of no service that istiod knows: the rule holds for nothing", host));
  });
}

void SubsetSelectsNothing(const Mesh& mesh, Findings& findings) {
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    const auto endpoints = EndpointsOf(cluster, rule);
    if (endpoints.empty()) return;
    for (const config::Subset& subset : rule.spec.subsets) {
      const bool any = std::any_of(endpoints.begin(), endpoints.end(),
                                   [&](const auto& e) { return Selects(subset.labels, e.second->p().labels); });
      if (any) continue;
      findings.Add(cluster, rule.meta,
                   fmt::format("subset {}: no pod of {} has the labels {}", subset.name, rule.spec.host,
                               LabelText(subset.labels)));
    }
  });
}

// Locality failover moves priorities by health, and health of endpoints is what outlier detection says.
void FailoverWithoutOutlierDetection(const Mesh& mesh, Findings& findings) {
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    EachPolicy(rule.spec, [&](const TrafficPolicy& policy, const std::string& of) {
      if (!policy.load_balancer || !policy.load_balancer->locality_lb_setting) return;
      const config::LocalityLbSetting& locality = *policy.load_balancer->locality_lb_setting;
      if (locality.failover.empty() && locality.failover_priority.empty()) return;
      const bool of_rule = rule.spec.traffic_policy && rule.spec.traffic_policy->outlier_detection;
      if (policy.outlier_detection || of_rule) return;
      findings.Add(cluster, rule.meta, fmt::format("failover{} without outlierDetection: it never happens", of));
    });
  });
}

void FailoverPriorityThroughGateway(const Mesh& mesh, Findings& findings) {
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    const std::string far = RemoteNetwork(mesh, cluster, rule);
    if (far.empty()) return;
    EachPolicy(rule.spec, [&](const TrafficPolicy& policy, const std::string& of) {
      if (!policy.load_balancer || !policy.load_balancer->locality_lb_setting) return;
      for (const std::string& label : policy.load_balancer->locality_lb_setting->failover_priority) {
        const std::string key = label.substr(0, label.find('='));
        if (key == "topology.istio.io/network" || key == "topology.istio.io/cluster") continue;
        findings.Add(cluster, rule.meta,
                     fmt::format("failoverPriority{} by {}: endpoints in {} are behind a gateway, which has labels of "
                                 "network and cluster alone, and end in the last priority",
                                 of, key, far));
        return;
      }
    });
  });
}

void TlsModeCutsGateways(const Mesh& mesh, Findings& findings) {
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    const std::string far = RemoteNetwork(mesh, cluster, rule);
    if (far.empty()) return;
    const auto look = [&](const ClientTlsSettings& tls, const std::string& of) {
      if (tls.mode == ClientTlsSettings::Mode::kIstioMutual) return;
      const char* mode = tls.mode == ClientTlsSettings::Mode::kDisable  ? "DISABLE"
                         : tls.mode == ClientTlsSettings::Mode::kSimple ? "SIMPLE"
                                                                        : "MUTUAL";
      findings.Add(
          cluster, rule.meta,
          fmt::format("tls mode {}{}: endpoints in {} are behind a gateway that knows mesh TLS only, and {}", mode, of,
                      far, tls.mode == ClientTlsSettings::Mode::kDisable ? "are left out" : "requests there fail"));
    };
    EachPolicy(rule.spec, [&](const TrafficPolicy& policy, const std::string& of) {
      if (policy.tls) look(*policy.tls, of);
      for (const auto& port : policy.port_level_settings) {
        if (port.tls) look(*port.tls, fmt::format(" of port {}{}", port.port, of));
      }
    });
  });
}

bool LacksRoots(const ClientTlsSettings& tls) {
  const bool original = tls.mode == ClientTlsSettings::Mode::kSimple || tls.mode == ClientTlsSettings::Mode::kMutual;
  return original && tls.ca_certificates.empty() && tls.credential_name.empty();
}

void NoRoots(const Mesh& mesh, Findings& findings) {
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    EachPolicy(rule.spec, [&](const TrafficPolicy& policy, const std::string& of) {
      if (policy.tls && LacksRoots(*policy.tls))
        findings.Add(cluster, rule.meta, fmt::format("tls{} names no caCertificates: any server is believed", of));
    });
  });
}

void NoRootsOfPort(const Mesh& mesh, Findings& findings) {
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    EachPolicy(rule.spec, [&](const TrafficPolicy& policy, const std::string& of) {
      for (const auto& port : policy.port_level_settings) {
        if (!port.tls || !LacksRoots(*port.tls)) continue;
        findings.Add(cluster, rule.meta,
                     fmt::format("tls of port {}{} names no caCertificates: any server is believed", port.port, of));
      }
    });
  });
}

void TwoOfOneHost(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary) continue;
    std::map<std::pair<std::string, std::string>, const RuleConfig*> first;
    for (const config::DestinationRuleRef& rule : cluster->configs.DestinationRules()) {
      if (rule->spec.workload_selector) continue;
      const auto [it, added] =
          first.emplace(std::pair(rule->meta.ns, FullHost(rule->spec.host, rule->meta.ns)), rule.get());
      if (added) continue;
      const bool policies = rule->spec.traffic_policy && it->second->spec.traffic_policy;
      std::set<std::string> names;
      bool same_subset = false;
      for (const auto& s : it->second->spec.subsets) names.insert(s.name);
      for (const auto& s : rule->spec.subsets) same_subset = same_subset || names.contains(s.name);
      if (!policies && !same_subset) continue;
      findings.Add(
          *cluster, rule->meta,
          fmt::format("{}/{} is for the same host: {} of this one {} dropped", it->second->meta.ns,
                      it->second->meta.name, policies ? "the trafficPolicy" : "a subset of the same name", "is"));
    }
  }
}

}  // namespace

const std::vector<Rule>& DestinationRuleRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT511", "DestinationRuleHostUnknown", Level::kWarning, "clients keep the defaults", "mend the host's name", "",
       HostUnknown},
      {"WT512", "SubsetSelectsNothing", Level::kWarning, "requests for the subset find no endpoint",
       "mend the subset's labels or the pods'", "", SubsetSelectsNothing},
      {"WT513", "FailoverWithoutOutlierDetection", Level::kWarning, "without it every endpoint counts as healthy",
       "add outlierDetection to the same trafficPolicy", "istio/istio#33024, #19257", FailoverWithoutOutlierDetection},
      {"WT514", "FailoverPriorityThroughGateway", Level::kWarning,
       "a gateway stands for pods whose labels it does not bear",
       "rank by topology.istio.io/network or cluster, or use failover by region", "istio/istio#49500",
       FailoverPriorityThroughGateway},
      {"WT515", "TlsModeCutsOtherNetworks", Level::kError,
       "gateways between networks tell services by the SNI of mesh TLS", "leave tls out, or set ISTIO_MUTUAL",
       "istio/istio#46555", TlsModeCutsGateways},
      {"IST0128", "NoServerCertificateVerificationDestinationLevel", Level::kWarning, "the server is not authenticated",
       "set caCertificates", "", NoRoots},
      {"IST0129", "NoServerCertificateVerificationPortLevel", Level::kWarning, "the server is not authenticated",
       "set caCertificates", "", NoRootsOfPort},
      {"WT517", "DestinationRulesOfOneHost", Level::kWarning,
       "istiod merges subsets; of what both define it keeps the older", "put them into one", "", TwoOfOneHost},
  };
  return *rules;
}

}  // namespace wavetank::check
