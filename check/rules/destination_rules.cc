// DestinationRules: hosts, subsets, failover, TLS towards other networks.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/functional/function_ref.h"
#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/gen/cds/istiod_panics.h"
#include "core/model/host_name.h"
#include "core/model/labels.h"
#include "core/xds/discovery_server.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "scenarios/language/yaml_reader.h"

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

// Those of pods, and those that istiod gives endpoints.
std::set<std::string, std::less<>> LabelsOfPods(const Mesh& mesh) {
  std::set<std::string, std::less<>> out;
  for (const std::string_view of_istiod : {pilot::kRegionLabel, pilot::kZoneLabel, pilot::kSubzoneLabel,
                                           pilot::kNetworkLabel, pilot::kClusterLabel, pilot::kHostnameLabel})
    out.emplace(of_istiod);
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& pod : mesh.List(*cluster, "Pod")) {
      for (const auto& [label, value] : pod->meta.labels) out.insert(label);
    }
  }
  return out;
}

// Whether a pod, or an endpoint of another kind of the rule's host, has it.
bool AnyHasLabel(const std::set<std::string, std::less<>>& of_pods, const MeshCluster& cluster, const RuleConfig& rule,
                 const std::string& label) {
  if (of_pods.contains(label)) return true;
  const auto endpoints = EndpointsOf(cluster, rule);
  return std::any_of(endpoints.begin(), endpoints.end(), [&](const auto& e) {
    const auto& labels = e.second->p().labels;
    return std::any_of(labels.begin(), labels.end(), [&](const auto& each) { return each.first == label; });
  });
}

// istiod: pilot/pkg/networking/core/v1alpha3/loadbalancer/loadbalancer.go, applyPriorityFailover(): what neither the
// client nor an endpoint has is the same for both.
void FailoverLabelOfNobody(const Mesh& mesh, Findings& findings) {
  const std::set<std::string, std::less<>> labels = LabelsOfPods(mesh);
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    EachPolicy(rule.spec, [&](const TrafficPolicy& policy, const std::string& of) {
      if (!policy.load_balancer || !policy.load_balancer->locality_lb_setting) return;
      for (const std::string& label : policy.load_balancer->locality_lb_setting->failover_priority) {
        const std::string key = label.substr(0, label.find('='));
        if (AnyHasLabel(labels, cluster, rule, key)) continue;
        findings.Add(cluster, rule.meta,
                     fmt::format("failoverPriority{} by {}: no pod has that label, so it ranks nothing", of, key));
        const std::string_view near =
            scenario::Nearest(key, std::vector<std::string_view>(labels.begin(), labels.end()));
        if (!near.empty()) findings.Explain({}, fmt::format("write {}", near));
      }
    });
  });
}

void FailoverPriorityThroughGateway(const Mesh& mesh, Findings& findings) {
  const std::set<std::string, std::less<>> labels = LabelsOfPods(mesh);
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    const std::string far = RemoteNetwork(mesh, cluster, rule);
    if (far.empty()) return;
    EachPolicy(rule.spec, [&](const TrafficPolicy& policy, const std::string& of) {
      if (!policy.load_balancer || !policy.load_balancer->locality_lb_setting) return;
      for (const std::string& label : policy.load_balancer->locality_lb_setting->failover_priority) {
        const std::string key = label.substr(0, label.find('='));
        if (key == pilot::kNetworkLabel || key == pilot::kClusterLabel) continue;
        if (!AnyHasLabel(labels, cluster, rule, key)) continue;  // WT752
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
      const bool left_out =
          tls.mode == ClientTlsSettings::Mode::kDisable || Has(cluster, pilot::Change::kMtlsByClusterPolicy) ||
          (tls.mode == ClientTlsSettings::Mode::kSimple && Has(cluster, pilot::Change::kTlsSimpleDropsCrossNetwork));
      findings.Add(cluster, rule.meta,
                   fmt::format("tls mode {}{}: endpoints in {} are behind a gateway that knows mesh TLS only, and {}",
                               mode, of, far, left_out ? "are left out" : "requests there fail"));
    };
    EachPolicy(rule.spec, [&](const TrafficPolicy& policy, const std::string& of) {
      if (policy.tls) look(*policy.tls, of);
      for (const auto& port : policy.port_level_settings) {
        if (port.tls) look(*port.tls, fmt::format(" of port {}{}", port.port, of));
      }
    });
  });
}

void PoolsGoAtOnce(const Mesh& mesh, Findings& findings) {
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    EachPolicy(rule.spec, [&](const TrafficPolicy& policy, const std::string& of) {
      if (!policy.connection_pool || !policy.connection_pool->http) return;
      const auto& http = *policy.connection_pool->http;
      if (http.idle_timeout && *http.idle_timeout > Duration::zero() && *http.idle_timeout < 1s) {
        findings.Add(
            cluster, rule.meta,
            fmt::format("connectionPool.http.idleTimeout{} is {} ms: hardly a connection is used twice, and one "
                        "that closes as a request comes fails it (503 UC)",
                        of, http.idle_timeout->count() / 1'000'000));
      }
      if (http.max_requests_per_connection == 1) {
        findings.Add(cluster, rule.meta,
                     fmt::format("connectionPool.http.maxRequestsPerConnection{} is 1: each request makes a connection "
                                 "of its own, with a handshake of mesh TLS, through gateways, too",
                                 of));
      }
    });
  });
}

// envoy: source/common/upstream/outlier_detection_impl.cc, onIntervalTimer: hosts come back when the timer looks.
void EjectedForAnInterval(const Mesh& mesh, Findings& findings) {
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    EachPolicy(rule.spec, [&](const TrafficPolicy& policy, const std::string& of) {
      if (!policy.outlier_detection) return;
      const Duration interval = policy.outlier_detection->interval.value_or(10s);
      const Duration base = policy.outlier_detection->base_ejection_time.value_or(30s);
      if (interval <= 2 * base) return;
      findings.Add(
          cluster, rule.meta,
          fmt::format("outlierDetection{} looks every {} s whether an ejection is over: hosts stay out so long, "
                      "not for baseEjectionTime ({} s)",
                      of, interval.count() / 1'000'000'000, base.count() / 1'000'000'000));
    });
  });
}

// Thresholds of 0 are off (envoy: api/envoy/config/cluster/v3/outlier_detection.proto; istiod: applyOutlierDetection
// enforces what is above 0), and below minHealthPercent Envoy panics: it sends to all, the ejected included.
void EjectsNobody(const Mesh& mesh, Findings& findings) {
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    EachPolicy(rule.spec, [&](const TrafficPolicy& policy, const std::string& of) {
      if (!policy.outlier_detection) return;
      const config::OutlierDetection& o = *policy.outlier_detection;
      const bool off = o.consecutive_5xx_errors == 0u && o.consecutive_gateway_errors.value_or(0) == 0 &&
                       o.consecutive_errors == 0 &&
                       (!o.split_external_local_origin_errors || o.consecutive_local_origin_failures == 0u);
      if (off) {
        findings.Add(
            cluster, rule.meta,
            fmt::format("outlierDetection{} has consecutive5xxErrors 0 and counts nothing else: it ejects nobody", of));
        return;
      }
      std::set<std::string> addresses;
      for (const auto& [far, endpoint] : EndpointsOf(cluster, rule)) addresses.insert(endpoint->address);
      const size_t hosts = addresses.size();
      if (o.min_health_percent == 0 || hosts < 2) return;
      const auto left = static_cast<int>((hosts - 1) * 100 / hosts);
      if (left >= o.min_health_percent) return;
      findings.Add(
          cluster, rule.meta,
          fmt::format("outlierDetection{} has minHealthPercent {}, and one of {} endpoints ejected leaves {} %: "
                      "all are sent to again, the ejected one included",
                      of, o.min_health_percent, hosts, left));
    });
  });
}

// istiod: cluster_builder.go, applyLoadBalancer: PASSTHROUGH makes an ORIGINAL_DST cluster.
void PassthroughLeavesOthers(const Mesh& mesh, Findings& findings) {
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    const std::string far = RemoteNetwork(mesh, cluster, rule);
    if (far.empty()) return;
    EachPolicy(rule.spec, [&](const TrafficPolicy& policy, const std::string& of) {
      if (policy.load_balancer && policy.load_balancer->simple == config::LoadBalancerSettings::Simple::kPassthrough)
        findings.Add(cluster, rule.meta,
                     fmt::format("loadBalancer{} PASSTHROUGH: requests go to the address that the client has, which "
                                 "kube-proxy balances over this cluster's pods; those in {} get none",
                                 of, far));
    });
  });
}

// A sidecar reads such files from its own container (istio.io, DestinationRule: clientCertificate, caCertificates);
// mounts come by the annotation sidecar.istio.io/userVolumeMount.
void FilesNobodyMounts(const Mesh& mesh, Findings& findings) {
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    const auto look = [&](const std::optional<ClientTlsSettings>& tls, const std::string& of) {
      if (!tls || tls->mode == ClientTlsSettings::Mode::kIstioMutual || !tls->credential_name.empty()) return;
      std::vector<std::string> files;
      for (const std::string* file : {&tls->client_certificate, &tls->private_key, &tls->ca_certificates}) {
        if (file->starts_with('/') && !file->starts_with("/etc/ssl/") && !file->starts_with("/var/run/secrets/"))
          files.push_back(*file);
      }
      if (files.empty() || !SeenBySomeone(mesh, cluster, rule.spec.export_to, rule.meta.ns)) return;
      const sim::PodProcess* client = nullptr;
      for (const sim::PodProcess* pod : mesh.ServedPods(cluster)) {
        const bool lacks = std::any_of(files.begin(), files.end(),
                                       [&](const std::string& file) { return !SidecarHasFile(*pod, file); });
        if (pod->bootstrap() && !pod->router() && IsApplication(*pod) && lacks) client = pod;
      }
      if (client == nullptr) return;
      findings.Add(cluster, rule.meta,
                   fmt::format("tls{} reads {}, which the sidecar of {} does not have: its clusters wait for it, and a "
                               "proxy that starts never gets ready",
                               of, fmt::join(files, ", "), client->name()));
    };
    EachPolicy(rule.spec, [&](const TrafficPolicy& policy, const std::string& of) {
      look(policy.tls, of);
      for (const auto& port : policy.port_level_settings) look(port.tls, fmt::format(" of port {}{}", port.port, of));
    });
  });
}

// istiod: pilot/pkg/networking/core, ConstructUpstreamTLSContext: without roots of its own a rule's servers are checked
// by the system's since 1.20 (VERIFY_CERTIFICATE_AT_CLIENT), not at all before.
bool BelievesAnyServer(const MeshCluster& cluster, const ClientTlsSettings& tls) {
  const bool original = tls.mode == ClientTlsSettings::Mode::kSimple || tls.mode == ClientTlsSettings::Mode::kMutual;
  if (!original) return false;
  if (tls.insecure_skip_verify.value_or(false) && Has(cluster, pilot::Change::kInsecureSkipVerify)) return true;
  return tls.ca_certificates.empty() && tls.credential_name.empty() &&
         !Has(cluster, pilot::Change::kSystemRootByDefault);
}
const char* WhyAnyServer(const ClientTlsSettings& tls) {
  return tls.ca_certificates.empty() && tls.credential_name.empty() ? "names no caCertificates"
                                                                    : "says insecureSkipVerify";
}

void NoRoots(const Mesh& mesh, Findings& findings) {
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    EachPolicy(rule.spec, [&](const TrafficPolicy& policy, const std::string& of) {
      if (!policy.tls || !BelievesAnyServer(cluster, *policy.tls)) return;
      findings.Add(cluster, rule.meta, fmt::format("tls{} {}: any server is believed", of, WhyAnyServer(*policy.tls)));
    });
  });
}

void NoRootsOfPort(const Mesh& mesh, Findings& findings) {
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    EachPolicy(rule.spec, [&](const TrafficPolicy& policy, const std::string& of) {
      for (const auto& port : policy.port_level_settings) {
        if (!port.tls || !BelievesAnyServer(cluster, *port.tls)) continue;
        findings.Add(
            cluster, rule.meta,
            fmt::format("tls of port {}{} {}: any server is believed", port.port, of, WhyAnyServer(*port.tls)));
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

void NamesNobodyHas(const Mesh& mesh, Findings& findings) {
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    EachPolicy(rule.spec, [&](const TrafficPolicy& policy, const std::string& of) {
      if (!policy.tls || policy.tls->mode != ClientTlsSettings::Mode::kIstioMutual ||
          policy.tls->subject_alt_names.empty())
        return;
      const auto& names = policy.tls->subject_alt_names;
      for (const auto& [far, endpoint] : EndpointsOf(cluster, rule)) {
        const std::string& account = endpoint->p().service_account;
        if (account.empty() || std::find(names.begin(), names.end(), account) != names.end()) continue;
        return findings.Add(
            cluster, rule.meta,
            fmt::format("subjectAltNames{} lack {}, as which pods in {} serve: handshakes with them fail", of, account,
                        far));
      }
    });
  });
}

void SniThroughGateway(const Mesh& mesh, Findings& findings) {
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    const std::string far = RemoteNetwork(mesh, cluster, rule);
    if (far.empty()) return;
    EachPolicy(rule.spec, [&](const TrafficPolicy& policy, const std::string& of) {
      if (!policy.tls || policy.tls->mode != ClientTlsSettings::Mode::kIstioMutual || policy.tls->sni.empty()) return;
      findings.Add(cluster, rule.meta,
                   fmt::format("sni {}{}: the gateway of {} has no filter chain for that name, and resets connections",
                               policy.tls->sni, of, far));
    });
  });
}

std::string RegionOf(const std::string& locality) { return locality.substr(0, locality.find('/')); }

std::set<std::string> RegionsOfNodes(const Mesh& mesh) {
  std::set<std::string> out;
  for (const auto& each : mesh.clusters()) {
    for (const kube::ObjectRef& node : mesh.List(*each, "Node")) {
      const auto it = node->meta.labels.find("topology.kubernetes.io/region");
      if (it != node->meta.labels.end()) out.insert(it->second);
    }
  }
  return out;
}

// Localities of a region that is none of these: pairs of both, in order.
std::vector<std::pair<std::string, std::string>> Unknown(const config::LocalityLbSetting& setting,
                                                         absl::FunctionRef<std::set<std::string>()> known_regions) {
  std::set<std::string> named;
  for (const auto& d : setting.distribute) {
    named.insert(d.from);
    for (const auto& [to, weight] : d.to) named.insert(to);
  }
  for (const auto& f : setting.failover) named.insert({f.from, f.to});
  std::vector<std::pair<std::string, std::string>> out;
  if (named.empty()) return out;
  const std::set<std::string> known = known_regions();
  for (const std::string& locality : named) {
    std::string region = RegionOf(locality);
    if (region.find('*') == region.npos && !known.contains(region)) out.emplace_back(locality, std::move(region));
  }
  return out;
}

void LocalitiesUnknown(const Mesh& mesh, Findings& findings) {
  // Those of the mesh hold for every host that has no setting of its own.
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->push == nullptr || !cluster->push->mesh().locality_lb_setting) continue;
    const auto known = [&] {
      std::set<std::string> out = RegionsOfNodes(mesh);
      for (const auto& each : mesh.clusters()) {
        for (const sim::PodProcess* pod : mesh.Pods(*each)) {
          const auto it = pod->pod()->meta.labels.find("istio-locality");
          if (it != pod->pod()->meta.labels.end()) out.insert(it->second.substr(0, it->second.find_first_of("./")));
        }
      }
      return out;
    };
    for (const auto& [locality, region] : Unknown(*cluster->push->mesh().locality_lb_setting, known)) {
      findings.Add(
          *cluster, MeshConfigMap(mesh, *cluster),
          fmt::format("localityLbSetting of the mesh config names {}: no node is in region {}", locality, region));
    }
  }
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    // Endpoints that say theirs, too.
    const auto known = [&] {
      std::set<std::string> out = RegionsOfNodes(mesh);
      for (const auto& [name, endpoint] : EndpointsOf(cluster, rule)) {
        const std::string& label = endpoint->p().locality.label;
        if (!label.empty()) out.insert(RegionOf(label));
      }
      return out;
    };
    EachPolicy(rule.spec, [&](const TrafficPolicy& policy, const std::string& of) {
      if (!policy.load_balancer || !policy.load_balancer->locality_lb_setting) return;
      for (const auto& [locality, region] : Unknown(*policy.load_balancer->locality_lb_setting, known)) {
        findings.Add(
            cluster, rule.meta,
            fmt::format("localityLbSetting{} names {}: no node or endpoint is in region {}", of, locality, region));
      }
    });
  });
}

// istiod makes a filter chain of a gateway between networks for each subset's name, and Envoys refuse two that match
// the same (istiod: pilot/pkg/networking/core/v1alpha3/gateway.go, builtAutoPassthroughFilterChains); 1.18.2's
// validation lets them pass.
void SubsetsOfOneName(const Mesh& mesh, Findings& findings) {
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    std::set<std::string> names, told;
    for (const auto& subset : rule.spec.subsets) {
      if (names.insert(subset.name).second || !told.insert(subset.name).second) continue;
      findings.Add(cluster, rule.meta, fmt::format("has two subsets of the name {}", subset.name));
    }
  });
}

// istiod looks in the client's namespace, the service's and its own.
void RuleOutOfSight(const Mesh& mesh, Findings& findings) {
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    const bool by_default = rule.spec.export_to.empty();
    const auto& export_to = by_default ? cluster.push->mesh().default_destination_rule_export_to : rule.spec.export_to;
    if (!SeenBySomeone(mesh, cluster, export_to, rule.meta.ns)) {
      return findings.Add(cluster, rule.meta,
                          fmt::format("{} {}: no proxy there that could heed it",
                                      by_default ? "meshConfig.defaultDestinationRuleExportTo" : "exportTo",
                                      fmt::join(export_to, ", ")));
    }
    if (rule.meta.ns == cluster.root_namespace) return;
    const pilot::ServiceRef service = ServiceOf(cluster, FullHost(rule.spec.host, rule.meta.ns));
    if (service == nullptr || service->attributes.ns == rule.meta.ns) return;
    const auto pods = mesh.ServedPods(cluster);
    const bool clients = std::any_of(pods.begin(), pods.end(), [&](const auto* pod) {
      return pod->bootstrap() && pod->pod()->meta.ns == rule.meta.ns;
    });
    if (clients) return;
    findings.Add(cluster, rule.meta,
                 fmt::format("stands in {}, its host in {}: it holds for clients in {} alone, and there are none",
                             rule.meta.ns, service->attributes.ns, rule.meta.ns));
  });
}

// istiod: pilot/pkg/networking/core/v1alpha3/cluster_builder.go, MergeTrafficPolicy: by the Service's port number
void PortsUnknown(const Mesh& mesh, Findings& findings) {
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    const pilot::ServiceRef service = ServiceOf(cluster, FullHost(rule.spec.host, rule.meta.ns));
    if (service == nullptr) return;
    EachPolicy(rule.spec, [&](const TrafficPolicy& policy, const std::string& of) {
      for (const config::PortTrafficPolicy& each : policy.port_level_settings) {
        if (service->FindPort(static_cast<int>(each.port)) != nullptr) continue;
        std::vector<int> ports;
        for (const pilot::Port& port : service->ports) ports.push_back(port.port);
        findings.Add(cluster, rule.meta,
                     fmt::format("portLevelSettings{} are for port {}, which {} does not have; it has {}", of,
                                 each.port, service->hostname, fmt::join(ports, ", ")));
      }
    });
  });
}

// A gateway's address is one host for all pods behind it (Envoy: outlier detection ejects hosts).
void EjectsNetworks(const Mesh& mesh, Findings& findings) {
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    if (cluster.istiod == nullptr) return;
    EachPolicy(rule.spec, [&](const TrafficPolicy& policy, const std::string& of) {
      if (!policy.outlier_detection || policy.outlier_detection->max_ejection_percent < 100) return;
      const std::string far = RemoteNetwork(mesh, cluster, rule);
      if (far.empty()) return;
      findings.Add(
          cluster, rule.meta,
          fmt::format("outlierDetection{} ejects up to 100 %: one bad pod behind the gateway of {} takes all of "
                      "that cluster's with it",
                      of, far));
    });
  });
}

// A gateway is one endpoint of the hash ring, and balances by itself over the pods behind it.
void HashEndsAtGateway(const Mesh& mesh, Findings& findings) {
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    const std::string far = RemoteNetwork(mesh, cluster, rule);
    if (far.empty()) return;
    EachPolicy(rule.spec, [&](const TrafficPolicy& policy, const std::string& of) {
      if (!policy.load_balancer || !policy.load_balancer->consistent_hash) return;
      findings.Add(cluster, rule.meta,
                   fmt::format("consistentHash{}: what the hash sends to {} ends at its gateway, which spreads it over "
                               "the pods there",
                               of, far));
    });
  });
}

// istio.io's task of circuit breaking sets it to see requests fail.
void PoolOfOne(const Mesh& mesh, Findings& findings) {
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    const auto look = [&](const std::optional<config::ConnectionPoolSettings>& pool, const std::string& of) {
      if (!pool) return;
      const char* field = pool->http && pool->http->http1_max_pending_requests == 1 ? "http1MaxPendingRequests"
                          : pool->http && pool->http->http2_max_requests == 1       ? "http2MaxRequests"
                          : pool->tcp && pool->tcp->max_connections == 1            ? "maxConnections"
                                                                                    : nullptr;
      if (field == nullptr) return;
      findings.Add(cluster, rule.meta,
                   fmt::format("{} is 1{}: what comes while one is under way is refused (503, UO)", field, of));
    };
    EachPolicy(rule.spec, [&](const TrafficPolicy& policy, const std::string& of) {
      look(policy.connection_pool, of);
      for (const auto& port : policy.port_level_settings)
        look(port.connection_pool, fmt::format(" for port {}{}", port.port, of));
    });
  });
}

// istiod: pilot/pkg/networking/core/v1alpha3/cluster.go, ApplyRingHashLoadBalancer, applySimpleLoadBalancer: slow start
// is round robin's and least request's.
void WarmsUpNobody(const Mesh& mesh, Findings& findings) {
  using Simple = config::LoadBalancerSettings::Simple;
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    const auto look = [&](const std::optional<config::LoadBalancerSettings>& balancer, const std::string& of) {
      if (!balancer || (!balancer->warmup_duration_secs && !balancer->warmup)) return;
      const bool random = balancer->simple == Simple::kRandom, passes = balancer->simple == Simple::kPassthrough;
      if (!random && !passes && !balancer->consistent_hash) return;
      findings.Add(cluster, rule.meta,
                   fmt::format("warm-up{} beside {}: new endpoints get their full share at once", of,
                               random   ? "RANDOM"
                               : passes ? "PASSTHROUGH"
                                        : "consistentHash"));
    };
    EachPolicy(rule.spec, [&](const TrafficPolicy& policy, const std::string& of) {
      look(policy.load_balancer, of);
      for (const auto& port : policy.port_level_settings)
        look(port.load_balancer, fmt::format(" of port {}{}", port.port, of));
    });
  });
}

// istiod: pilot/pkg/networking/core/v1alpha3/cluster_traffic_policy.go, selectTrafficPolicyComponents: what a port has
// of its own stands alone.
void PortSettingsReplace(const Mesh& mesh, Findings& findings) {
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    EachPolicy(rule.spec, [&](const TrafficPolicy& policy, const std::string& of) {
      for (const auto& port : policy.port_level_settings) {
        std::vector<std::string_view> dropped;
        if (policy.load_balancer && !port.load_balancer) dropped.emplace_back("loadBalancer");
        if (policy.connection_pool && !port.connection_pool) dropped.emplace_back("connectionPool");
        if (policy.outlier_detection && !port.outlier_detection) dropped.emplace_back("outlierDetection");
        if (policy.tls && !port.tls) dropped.emplace_back("tls");
        if (dropped.empty()) continue;
        findings.Add(cluster, rule.meta,
                     fmt::format("portLevelSettings of port {}{} leave out {}: what the policy above says of it does "
                                 "not hold for that port",
                                 port.port, of, fmt::join(dropped, ", ")));
      }
    });
  });
}

// istio.io, DestinationRule: policies of subsets hold where a route sends to the subset by name. istiod makes a cluster
// of it (cluster_builder.go, buildSubsetCluster), which no route names.
void SubsetPolicyUnused(const Mesh& mesh, Findings& findings) {
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    const std::string host = FullHost(rule.spec.host, rule.meta.ns);
    const auto used = [&](const std::string& subset) {
      const auto names = [&](const config::Destination& to, const std::string& ns) {
        const std::string full = FullHost(to.host, ns);
        return to.subset == subset && (full == host || pilot::HostSubsetOf(full, host));
      };
      const auto& all = cluster.configs.VirtualServices();
      return std::any_of(all.begin(), all.end(), [&](const config::VirtualServiceRef& vs) {
        const auto any = [&](const auto& routes) {
          return std::any_of(routes.begin(), routes.end(), [&](const auto& each) {
            return std::any_of(each.route.begin(), each.route.end(),
                               [&](const auto& route) { return names(route.destination, vs->meta.ns); });
          });
        };
        const bool mirrored = std::any_of(vs->spec.http.begin(), vs->spec.http.end(), [&](const auto& http) {
          return http.mirror && names(*http.mirror, vs->meta.ns);
        });
        return mirrored || any(vs->spec.http) || any(vs->spec.tls) || any(vs->spec.tcp);
      });
    };
    for (const config::Subset& subset : rule.spec.subsets) {
      if (!subset.traffic_policy || used(subset.name)) continue;
      findings.Add(
          cluster, rule.meta,
          fmt::format("subset {} has a policy of its own, and no VirtualService of {} routes to it: its policy "
                      "holds for no request",
                      subset.name, cluster.name));
    }
  });
}

// A VirtualService leads the mesh's requests for the host elsewhere first, to an egress gateway.
bool GoesByAnotherHost(const MeshCluster& cluster, const std::string& host) {
  const auto& all = cluster.configs.VirtualServices();
  return std::any_of(all.begin(), all.end(), [&](const config::VirtualServiceRef& vs) {
    const bool of = std::any_of(vs->spec.hosts.begin(), vs->spec.hosts.end(),
                                [&](const auto& each) { return FullHost(each, vs->meta.ns) == host; });
    const auto elsewhere = [&](const auto& routes) {
      return std::any_of(routes.begin(), routes.end(), [&](const auto& each) {
        return std::any_of(each.route.begin(), each.route.end(),
                           [&](const auto& route) { return FullHost(route.destination.host, vs->meta.ns) != host; });
      });
    };
    return of && (elsewhere(vs->spec.http) || elsewhere(vs->spec.tls) || elsewhere(vs->spec.tcp));
  });
}

// istiod: pilot/pkg/networking/core/v1alpha3/cluster_builder.go, buildUpstreamClusterTLSContext.
void CredentialOfSidecars(const Mesh& mesh, Findings& findings) {
  EachRule(mesh, [&](const MeshCluster& cluster, const RuleConfig& rule) {
    if (rule.spec.workload_selector || !HasClients(mesh, cluster)) return;
    if (GoesByAnotherHost(cluster, FullHost(rule.spec.host, rule.meta.ns))) return;
    const auto look = [&](const std::optional<ClientTlsSettings>& tls, const std::string& of) {
      if (!tls || tls->credential_name.empty()) return;
      if (tls->mode != ClientTlsSettings::Mode::kSimple && tls->mode != ClientTlsSettings::Mode::kMutual) return;
      findings.Add(cluster, rule.meta,
                   fmt::format("tls.credentialName {}{}: the rule has no workloadSelector, so sidecars get no TLS for "
                               "this host and send in clear text",
                               tls->credential_name, of));
    };
    EachPolicy(rule.spec, [&](const TrafficPolicy& policy, const std::string& of) {
      look(policy.tls, of);
      for (const auto& each : policy.port_level_settings) look(each.tls, fmt::format(" of port {}{}", each.port, of));
    });
  });
}

// Of releases that do it.
void IstiodPanics(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->push == nullptr || mesh.ServedPods(*cluster).empty()) continue;
    for (const pilot::IstiodPanic& panic : pilot::IstiodPanics(*cluster->push)) {
      if (panic.ejects_names) {
        findings.Add(*cluster, *panic.meta,
                     fmt::format("outlierDetection of {}, whose names proxies look up (DYNAMIC_DNS): istiod ends in a "
                                 "panic as soon as a proxy that knows the host connects (here it goes on)",
                                 panic.host));
        findings.Explain(
            "istiod 1.30 sets a panic threshold where such a cluster has no place for one (nil pointer), and so it "
            "ends again after each start",
            "leave outlierDetection out for the host");
        continue;
      }
      findings.Add(
          *cluster, *panic.meta,
          fmt::format("failoverPriority of {}, whose endpoints are resolved by name and of several localities: "
                      "istiod ends in a panic as soon as a proxy that knows the host connects (here it goes on)",
                      panic.host));
    }
  }
}

}  // namespace

const std::vector<Rule>& DestinationRuleRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT751", "IstiodPanics", Level::kError,
       "istiod 1.30 orders the endpoints of one locality and counts those of all (index out of range), and so it ends "
       "again after each start",
       "give the endpoints one locality, or leave failoverPriority or outlierDetection out for the host",
       "istio/istio#61857", IstiodPanics},
      {"WT746", "PoolsGoAtOnce", Level::kWarning, "connections that are not kept cost a handshake, or a failed request",
       "leave it out, or give it minutes; age is bounded by maxConnectionDuration", "istio/istio#13848", PoolsGoAtOnce,
       false},
      {"WT747", "EjectedForAnInterval", Level::kWarning, "a host that is well again is not asked",
       "let interval be below baseEjectionTime: 10s is the default", "istio/istio#44493", EjectedForAnInterval, false},
      {"WT540", "EjectsNobody", Level::kWarning,
       "a host that fails goes on getting its share, and failover never happens",
       "set consecutive5xxErrors above 0, and leave minHealthPercent out", "istio/istio#24077", EjectsNobody, false},
      {"WT548", "TlsFilesMissing", Level::kError, "Envoy waits for a secret that its agent cannot read",
       "mount the files into the sidecars (sidecar.istio.io/userVolume, userVolumeMount); for hosts in the mesh leave "
       "tls "
       "out",
       "istio/istio#26741", FilesNobodyMounts},
      {"WT549", "PassthroughLeavesOthers", Level::kWarning,
       "who is sent where the client says is not balanced by the mesh",
       "use ROUND_ROBIN, LEAST_REQUEST or RANDOM, or leave loadBalancer.simple out", "", PassthroughLeavesOthers,
       false},
      {"WT511", "DestinationRuleHostUnknown", Level::kWarning, "clients keep the defaults", "mend the host's name",
       "istio/istio#19195", HostUnknown},
      {"WT512", "SubsetSelectsNothing", Level::kWarning, "requests for the subset find no endpoint",
       "mend the subset's labels or the pods'", "istio/istio#34992", SubsetSelectsNothing},
      {"WT535", "SubsetsOfOneName", Level::kError,
       "a gateway between networks refuses its listener as a whole, and one that starts never gets ready",
       "give each subset a name of its own", "istio/istio#50353", SubsetsOfOneName},
      {"WT513", "FailoverWithoutOutlierDetection", Level::kWarning, "without it every endpoint counts as healthy",
       "add outlierDetection to the same trafficPolicy", "istio/istio#33024, #19257", FailoverWithoutOutlierDetection},
      {"WT752", "FailoverLabelOfNobody", Level::kWarning,
       "endpoints differ by labels that some have and others have not",
       "name a label that pods have, or one that istiod gives them", "", FailoverLabelOfNobody},
      {"WT514", "FailoverPriorityThroughGateway", Level::kWarning,
       "a gateway stands for pods whose labels it does not bear",
       "rank by topology.istio.io/network or cluster, or use failover by region", "istio/istio#49500",
       FailoverPriorityThroughGateway},
      {"WT515", "TlsModeCutsOtherNetworks", Level::kError,
       "gateways between networks tell services by the SNI of mesh TLS", "leave tls out, or set ISTIO_MUTUAL",
       "istio/istio#46555", TlsModeCutsGateways},
      {"IST0128", "NoServerCertificateVerificationDestinationLevel", Level::kWarning, "the server is not authenticated",
       "set caCertificates", "istio/istio#25652", NoRoots},
      {"IST0129", "NoServerCertificateVerificationPortLevel", Level::kWarning, "the server is not authenticated",
       "set caCertificates", "istio/istio#25652", NoRootsOfPort},
      {"WT517", "DestinationRulesOfOneHost", Level::kWarning,
       "istiod merges subsets; of what both define it keeps the older", "put them into one", "istio/istio#33147",
       TwoOfOneHost},
      {"WT518", "SubjectAltNamesNobodyHas", Level::kError, "the client closes connections to servers of other names",
       "leave subjectAltNames out: istiod knows them, or name every service account of the host", "", NamesNobodyHas},
      {"WT519", "SniCutsOtherNetworks", Level::kError, "gateways between networks tell services by istiod's own SNI",
       "leave sni out", "istio/istio#37134", SniThroughGateway},
      {"WT525", "LocalityUnknown", Level::kWarning, "where nothing is, nothing is sent, and nothing fails over to it",
       "write localities as the nodes' labels have them", "istio/istio#39876", LocalitiesUnknown},
      {"WT526", "DestinationRuleOutOfSight", Level::kWarning, "proxies of other namespaces do not see the rule",
       "put it into the service's namespace, the clients' or the mesh's root namespace", "istio/istio#15556",
       RuleOutOfSight},
      {"WT530", "EjectionOfNetworks", Level::kWarning, "clients see a gateway, not the pods behind it",
       "leave maxEjectionPercent below 100, and let the retries of a route find other pods", "istio/istio#52435",
       EjectsNetworks},
      {"WT527", "PortOfRuleUnknown", Level::kWarning, "settings of a port that is none hold for nothing",
       "name the Service's port, not its pods' targetPort", "", PortsUnknown},
      {"WT536", "HashEndsAtGateway", Level::kWarning, "sessions that have to meet one pod meet another",
       "keep such a Service within one network (clusterLocal, or a subset of it), or share the sessions",
       "istio/istio#60985", HashEndsAtGateway, false},
      {"WT538", "ConnectionPoolOfOne", Level::kWarning, "a limit that was set to be met meets users",
       "set limits that the load does not reach", "istio/istio#42490", PoolOfOne},
      {"WT539", "PortLevelSettingsReplace", Level::kWarning,
       "settings of a port replace those above, they are not joined", "write all that shall hold at the port, too",
       "istio/istio#58297", PortSettingsReplace, false},
      {"WT595", "WarmsUpNobody", Level::kWarning, "istiod sets slow start for ROUND_ROBIN and LEAST_REQUEST alone",
       "choose one of them, or take the warm-up away", "istio/istio#39430", WarmsUpNobody, false},
      {"WT588", "SubsetPolicyUnused", Level::kWarning, "a subset is asked by routes that name it alone",
       "route to the subset in a VirtualService, or write the policy for the host", "istio/istio.io#4653",
       SubsetPolicyUnused, false},
      {"WT550", "CredentialOfSidecars", Level::kError, "Secrets by credentialName are for gateways",
       "give the rule a workloadSelector, or mount the files and name them (clientCertificate, privateKey, "
       "caCertificates)",
       "istio/istio#31738", CredentialOfSidecars},
  };
  return *rules;
}

}  // namespace wavetank::check
