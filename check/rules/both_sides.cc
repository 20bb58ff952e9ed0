// PeerAuthentication against gateways between networks, and against DestinationRules.
#include <algorithm>
#include <set>

#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/xds/discovery_server.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

using Mode = config::PeerAuthentication::Mode;

bool Disables(const config::PeerAuthentication& spec) {
  if (spec.mtls == Mode::kDisable) return true;
  return std::any_of(spec.port_level_mtls.begin(), spec.port_level_mtls.end(),
                     [](const auto& port) { return port.second == Mode::kDisable; });
}

// istiod leaves such an endpoint out wherever only a gateway leads to it (istiod: pilot/pkg/xds/mtls_checker.go).
void CutsOtherNetworks(const Mesh& mesh, Findings& findings) {
  if (!HasSeveralNetworks(mesh)) return;
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->push == nullptr) continue;
    for (const config::PeerAuthenticationRef& policy : cluster->configs.PeerAuthentications()) {
      if (!Disables(policy->spec)) continue;
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

}  // namespace

const std::vector<Rule>& MutualTlsRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT541", "PeerAuthenticationCutsOtherNetworks", Level::kError, "between networks there is nothing but mTLS",
       "set PERMISSIVE, or keep the Service's clients in its own network", "istio/istio#28798", CutsOtherNetworks},
      {"IST0113", "MTLSPolicyConflict", Level::kError, "one side refuses what the other sends",
       "leave tls out of the DestinationRule: auto mTLS follows the policy", "", ModesConflict},
  };
  return *rules;
}

}  // namespace wavetank::check
