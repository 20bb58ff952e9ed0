// What both sides of a request have to agree on: PeerAuthentication against gateways between networks and against
// DestinationRules; and what stands in one primary's cluster and is missed in another's, as each istiod reads the
// configuration of its own cluster alone (istio.io, deployment models: multi-primary).
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/model/host_name.h"
#include "core/xds/discovery_server.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::check {
namespace {

using Mode = config::PeerAuthentication::Mode;

// istiod leaves such an endpoint out wherever only a gateway leads to it (istiod: pilot/pkg/xds/mtls_checker.go).
void CutsOtherNetworks(const Mesh& mesh, Findings& findings) {
  if (!HasSeveralNetworks(mesh)) return;
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->push == nullptr) continue;
    for (const config::PeerAuthenticationRef& policy : cluster->configs.PeerAuthentications()) {
      if (!DisablesMtls(policy->spec)) continue;
      std::set<std::string> apps;
      for (const sim::PodProcess* pod : mesh.world().Pods()) {
        if (pod->envoy() == nullptr || pod->router()) continue;
        if (!HoldsFor(*cluster, policy->meta.ns, policy->spec.selector, *pod)) continue;
        if (!ServicesBefore(mesh, *pod).empty()) apps.insert(pod->app() + "." + pod->pod()->meta.ns);
      }
      for (const std::string& app : apps) {
        findings.Add(
            *cluster, policy->meta,
            fmt::format(
                "disables mTLS of {}: clients of {} in other networks do not get its endpoints, since a gateway "
                "needs mTLS",
                app, cluster->name));
      }
    }
  }
}

void ModesConflict(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->push == nullptr) continue;
    for (const config::DestinationRuleRef& rule : cluster->configs.DestinationRules()) {
      if (!rule->spec.traffic_policy || !rule->spec.traffic_policy->tls) continue;
      const bool mutual = rule->spec.traffic_policy->tls->mode == config::ClientTlsSettings::Mode::kIstioMutual;
      const bool plain = rule->spec.traffic_policy->tls->mode == config::ClientTlsSettings::Mode::kDisable;
      const std::string host = FullHost(rule->spec.host, rule->meta.ns);
      const pilot::ServiceRef service = ServiceOf(*cluster, host);
      if (service == nullptr) continue;
      for (const config::PeerAuthenticationRef& policy : cluster->configs.PeerAuthentications()) {
        if (!HoldsIn(*cluster, policy->meta.ns, service->attributes.ns)) continue;
        if (policy->spec.selector && !Selects(*policy->spec.selector, service->attributes.label_selectors)) continue;
        const bool conflict =
            (plain && policy->spec.mtls == Mode::kStrict) || (mutual && policy->spec.mtls == Mode::kDisable);
        if (!conflict) continue;
        findings.Add(
            *cluster, rule->meta,
            fmt::format("sends to {} {}, and PeerAuthentication {}/{} {}", host, plain ? "without TLS" : "with mTLS",
                        policy->meta.ns, policy->meta.name, plain ? "asks for it" : "disables it"));
      }
    }
  }
}

bool IsMeshPrimary(const MeshCluster& cluster) {
  return cluster.primary && cluster.istiod != nullptr && cluster.push != nullptr;
}

// An application with a sidecar whose requests that istiod routes.
bool HasClients(const Mesh& mesh, const MeshCluster& primary) {
  const auto pods = mesh.ServedPods(primary);
  return std::any_of(pods.begin(), pods.end(), [](const auto* pod) { return pod->bootstrap() && !pod->router(); });
}

bool IsForMesh(const config::VirtualService& vs) {
  return vs.gateways.empty() || std::find(vs.gateways.begin(), vs.gateways.end(), "mesh") != vs.gateways.end();
}

bool Covers(std::string_view rule, const std::string& host) {
  return rule == host || pilot::HostSubsetOf(host, std::string(rule));
}

// Of `host`, for clients of the primary.
bool HasRoutesFor(const MeshCluster& primary, const std::string& host) {
  const auto& all = primary.configs.VirtualServices();
  return std::any_of(all.begin(), all.end(), [&](const config::VirtualServiceRef& vs) {
    return IsForMesh(vs->spec) && std::any_of(vs->spec.hosts.begin(), vs->spec.hosts.end(), [&](const auto& each) {
             return Covers(FullHost(each, vs->meta.ns), host);
           });
  });
}

bool HasRuleFor(const MeshCluster& primary, const std::string& host) {
  const auto& all = primary.configs.DestinationRules();
  return std::any_of(all.begin(), all.end(), [&](const config::DestinationRuleRef& rule) {
    return Covers(FullHost(rule->spec.host, rule->meta.ns), host);
  });
}

// Fn(cluster where it stands, the object, its host, whether it is a VirtualService: else a DestinationRule).
template <class Fn>
void EachRuleOfMesh(const Mesh& mesh, Fn fn) {
  for (const auto& cluster : mesh.clusters()) {
    if (!IsMeshPrimary(*cluster)) continue;
    for (const config::VirtualServiceRef& vs : cluster->configs.VirtualServices()) {
      if (!IsForMesh(vs->spec)) continue;
      for (const std::string& host : vs->spec.hosts) fn(*cluster, vs->meta, FullHost(host, vs->meta.ns), true);
    }
    for (const config::DestinationRuleRef& rule : cluster->configs.DestinationRules())
      fn(*cluster, rule->meta, FullHost(rule->spec.host, rule->meta.ns), false);
  }
}

void RulesOnOneSide(const Mesh& mesh, Findings& findings) {
  std::vector<const MeshCluster*> sides;
  for (const auto& cluster : mesh.clusters()) {
    if (IsMeshPrimary(*cluster) && HasClients(mesh, *cluster)) sides.push_back(cluster.get());
  }
  EachRuleOfMesh(mesh, [&](const MeshCluster& cluster, const config::ConfigMeta& meta, const std::string& host,
                           bool routes) {
    if (host.starts_with('*') || ServiceOf(cluster, host) == nullptr) return;
    std::vector<std::string> without;
    for (const MeshCluster* const other : sides) {
      if (other == &cluster || ServiceOf(*other, host) == nullptr) continue;
      if (routes ? HasRoutesFor(*other, host) : HasRuleFor(*other, host)) continue;
      without.push_back(other->name);
    }
    if (without.empty()) return;
    findings.Add(cluster, meta,
                 fmt::format("holds for clients in {} alone: {} has none for {}, and clients there send as without it",
                             cluster.name, fmt::join(without, ", "), host));
  });
}

// Some pod that runs an application and is served by the primary; null: none.
template <class Policy>
const sim::PodProcess* HeldBy(const Mesh& mesh, const MeshCluster& primary, const Policy& policy) {
  for (const sim::PodProcess* pod : mesh.ServedPods(primary)) {
    if (IsApplication(*pod) && pod->bootstrap() && HoldsFor(primary, policy.meta.ns, policy.spec.selector, *pod))
      return pod;
  }
  return nullptr;
}

// `of_primary`: the kind's list of any primary; `counts`: whether one restricts anything.
template <class List, class Counts>
void PoliciesOfOneKind(const Mesh& mesh, Findings& findings, std::string_view kind, List of_primary, Counts counts) {
  for (const auto& cluster : mesh.clusters()) {
    if (!IsMeshPrimary(*cluster)) continue;
    for (const auto& policy : of_primary(*cluster)) {
      if (!counts(policy->spec) || HeldBy(mesh, *cluster, *policy) == nullptr) continue;
      for (const auto& other : mesh.clusters()) {
        if (other == cluster || !IsMeshPrimary(*other)) continue;
        const sim::PodProcess* const free = HeldBy(mesh, *other, *policy);  // if it stood there
        if (free == nullptr) continue;
        const auto& there = of_primary(*other);
        const bool held = std::any_of(there.begin(), there.end(), [&](const auto& each) {
          return HoldsFor(*other, each->meta.ns, each->spec.selector, *free);
        });
        if (held) continue;
        findings.Add(*cluster, policy->meta,
                     fmt::format("holds for pods in {} alone: no {} of {} holds for {}, which serves whoever asks",
                                 cluster->name, kind, other->name, free->name()));
      }
    }
  }
}

void PoliciesOnOneSide(const Mesh& mesh, Findings& findings) {
  PoliciesOfOneKind(
      mesh, findings, "AuthorizationPolicy",
      [](const MeshCluster& c) -> const auto& { return c.configs.AuthorizationPolicies(); },
      [](const auto&) { return true; });
  PoliciesOfOneKind(
      mesh, findings, "PeerAuthentication",
      [](const MeshCluster& c) -> const auto& { return c.configs.PeerAuthentications(); },
      [](const config::PeerAuthentication& p) { return p.mtls == config::PeerAuthentication::Mode::kStrict; });
}

}  // namespace

const std::vector<Rule>& MutualTlsRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT541", "PeerAuthenticationCutsOtherNetworks", Level::kError, "between networks there is nothing but mTLS",
       "set PERMISSIVE, or keep the Service's clients in its own network", "istio/istio#28798", CutsOtherNetworks},
      {"IST0113", "MTLSPolicyConflict", Level::kError, "one side refuses what the other sends",
       "leave tls out of the DestinationRule: auto mTLS follows the policy", "istio/istio#31425", ModesConflict},
  };
  return *rules;
}

const std::vector<Rule>& OneSideRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT537", "RulesOnOneSide", Level::kWarning,
       "in a multi-primary mesh each istiod reads the configuration of its own cluster, and configures the clients "
       "there",
       "apply it in every primary cluster that has clients of the host", "istio/istio#44863, #36241", RulesOnOneSide,
       false},
      {"WT546", "PoliciesOnOneSide", Level::kWarning,
       "in a multi-primary mesh each istiod reads the policies of its own cluster, and guards the pods there",
       "apply it in every primary cluster that has such pods", "istio/istio#44863", PoliciesOnOneSide, false},
  };
  return *rules;
}

}  // namespace wavetank::check
