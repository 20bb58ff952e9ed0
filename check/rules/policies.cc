// Security policies that ask for what nobody has, or mean something else than they say.
#include <algorithm>
#include <map>
#include <set>

#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/json/json_read.h"
#include "core/base/json_access.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::check {
namespace {

using nlohmann::json;
using PeerPolicy = config::TypedConfig<config::PeerAuthentication>;
using PeerMode = config::PeerAuthentication::Mode;

template <class Fn>
void EachPeerPolicy(const Mesh& mesh, Fn fn) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->push == nullptr) continue;
    for (const config::PeerAuthenticationRef& policy : cluster->configs.PeerAuthentications()) fn(*cluster, *policy);
  }
}

// istiod: pilot/pkg/security/authn, portLevelMtls by the port that the workload listens on.
void PortLevelMtlsOfServicePort(const Mesh& mesh, Findings& findings) {
  EachPeerPolicy(mesh, [&](const MeshCluster& cluster, const PeerPolicy& policy) {
    for (const auto& [number, mode] : policy.spec.port_level_mtls) {
      const int port = static_cast<int>(number);
      std::set<int> targets, declared;
      std::string of;
      for (const sim::PodProcess* pod : mesh.ServedPods(cluster)) {
        if (!HoldsFor(cluster, policy.meta.ns, policy.spec.selector, *pod)) continue;
        for (const kube::ContainerPort& each : kube::ParsePod(*pod->pod()).ports) declared.insert(each.container_port);
        for (const kube::ObjectRef& object : ServicesBefore(mesh, *pod)) {
          for (const kube::ServicePort& each : kube::ParseService(*object).ports) {
            if (const int target = kube::TargetPortOf(each, kube::ParsePod(*pod->pod())); target != 0)
              targets.insert(target);
            if (each.port == port && of.empty()) of = object->meta.ns + "/" + object->meta.name;
          }
        }
      }
      if (of.empty() && !targets.empty() && !targets.contains(port) && !declared.contains(port)) {
        findings.Add(
            cluster, policy.meta,
            fmt::format("portLevelMtls has {}, which no container of its pods declares and no Service leads to: "
                        "they listen on {}",
                        port, fmt::join(targets, ", ")));
        findings.Explain({}, "name the port that the pods listen on, or take it out");
        continue;
      }
      if (of.empty() || targets.contains(port)) continue;
      findings.Add(cluster, policy.meta,
                   fmt::format("portLevelMtls has {}, the port of Service {}: its pods listen on {}", port, of,
                               fmt::join(targets, ", ")));
    }
  });
}

void PlainClients(const Mesh& mesh, Findings& findings) {
  std::set<std::string> plain;
  for (const sim::PodProcess* pod : mesh.world().Pods()) {
    if (IsApplication(*pod) && !pod->bootstrap())
      plain.insert(fmt::format("{}.{}@{}", pod->app(), pod->pod()->meta.ns, pod->site().name));
  }
  if (plain.empty()) return;
  EachPeerPolicy(mesh, [&](const MeshCluster& cluster, const PeerPolicy& policy) {
    if (policy.spec.mtls != PeerMode::kStrict) return;
    findings.Add(
        cluster, policy.meta,
        fmt::format(
            "mtls STRICT, and {} run{} without a sidecar: what they call here resets their connections",
            plain.size() > 3 ? fmt::format("{} applications", plain.size()) : fmt::format("{}", fmt::join(plain, ", ")),
            plain.size() == 1 ? "s" : ""));
  });
}

// istiod: pilot/pkg/security/authn/policy_applier.go, ComposePeerAuthentication: of each scope the oldest.
void PeerPoliciesOfOneScope(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary) continue;
    std::map<std::pair<std::string, std::string>, const PeerPolicy*> first;
    for (const config::PeerAuthenticationRef& policy : cluster->configs.PeerAuthentications()) {
      const std::string scope = policy->spec.selector ? LabelText(*policy->spec.selector) : std::string();
      const auto [it, added] = first.emplace(std::pair(policy->meta.ns, scope), policy.get());
      if (added) continue;
      const kube::ObjectRef here =
          mesh.Get(*cluster, "PeerAuthentication.security.istio.io", policy->meta.ns, policy->meta.name);
      if (here == nullptr) continue;
      findings.Add(*cluster, *here,
                   fmt::format("{}/{} is for {} too: only the older one's counts", policy->meta.ns,
                               it->second->meta.name, scope.empty() ? "the whole namespace" : "pods with " + scope));
    }
  }
}

// istiod: pilot/pkg/model: what holds for the whole mesh is read in the root namespace alone.
void OutsideOfRootNamespace(const Mesh& mesh, Findings& findings) {
  static constexpr const char* kKinds[] = {
      "AuthorizationPolicy.security.istio.io", "EnvoyFilter.networking.istio.io",
      "PeerAuthentication.security.istio.io",  "RequestAuthentication.security.istio.io",
      "Sidecar.networking.istio.io",           "Telemetry.telemetry.istio.io",
      "WasmPlugin.extensions.istio.io"};
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->push == nullptr || cluster->root_namespace == cluster->system_namespace) continue;
    if (const kube::ObjectRef map = MeshConfigMap(mesh, *cluster);
        map != nullptr && mesh.Get(*cluster, "Namespace", "", cluster->root_namespace) == nullptr) {
      findings.Add(*cluster, *map,
                   fmt::format("rootNamespace {} is no namespace here: nothing holds for the whole mesh",
                               cluster->root_namespace));
      findings.Explain({}, "mend rootNamespace, or make the namespace");
    }
    for (const char* kind : kKinds) {
      for (const kube::ObjectRef& object : mesh.List(*cluster, kind, cluster->system_namespace)) {
        const json& spec = At(object->body, "spec");
        if (spec.contains("selector") || spec.contains("workloadSelector") || spec.contains("targetRef")) continue;
        findings.Add(*cluster, *object,
                     fmt::format("is for namespace {} alone: what holds for the mesh is read in {}, its rootNamespace",
                                 object->meta.ns, cluster->root_namespace));
      }
    }
  }
}

template <class Fn>
void EachOperation(const kube::Object& policy, Fn fn) {
  for (const json& rule : Items(At(policy.body, {"spec", "rules"}))) {
    for (const json& to : Items(At(rule, "to"))) fn(At(to, "operation"));
  }
}

// istiod: pilot/pkg/security/authz/matcher, StringMatcher: a star at the beginning or the end, or alone.
void StarWithin(const Mesh& mesh, Findings& findings) {
  EachAuthorization(mesh, [&](const MeshCluster& cluster, const kube::Object& policy, const auto&) {
    EachOperation(policy, [&](const json& operation) {
      for (const char* field : {"paths", "notPaths", "hosts", "notHosts", "methods", "notMethods"}) {
        for (const json& each : Items(At(operation, field))) {
          const std::string text = TextOf(each);
          const bool takes_templates =
              std::string_view(field).ends_with("aths") && Has(cluster, pilot::Change::kPathTemplates);
          if (text.size() < 2 || (takes_templates && text.find("{*") != std::string::npos)) continue;
          const bool ends = text.starts_with('*') && text.ends_with('*');
          if (text.find('*', 1) >= text.size() - 1 && !ends) continue;
          findings.Add(
              cluster, policy,
              fmt::format("operation.{}: '{}' has a star that is taken for itself: one counts at the beginning "
                          "or at the end alone",
                          field, text));
        }
      }
    });
  });
}

// Envoy matches :authority as it is, and clients write a port there that is not the scheme's.
void HostWithoutPort(const Mesh& mesh, Findings& findings) {
  EachAuthorization(mesh, [&](const MeshCluster& cluster, const kube::Object& policy, const auto& pods) {
    std::set<int> ports;
    for (const sim::PodProcess* pod : pods) {
      if (pod->router()) continue;
      for (const kube::ObjectRef& object : ServicesBefore(mesh, *pod)) {
        for (const kube::ServicePort& port : kube::ParseService(*object).ports)
          if (port.port != 80 && port.port != 443) ports.insert(port.port);
      }
    }
    if (ports.empty()) return;
    EachOperation(policy, [&](const json& operation) {
      for (const char* field : {"hosts", "notHosts"}) {
        const json& hosts = Items(At(operation, field));
        for (const json& each : hosts) {
          const std::string host = TextOf(each);
          if (host.empty() || host.find(':') != std::string::npos || host.ends_with('*')) continue;
          const bool other = std::any_of(hosts.begin(), hosts.end(), [&](const json& more) {
            const std::string text = TextOf(more);
            return text != host && (text.starts_with(host + ":") || text == host + "*");
          });
          if (other) continue;
          findings.Add(cluster, policy,
                       fmt::format("operation.{}: '{}' is not the Host of requests to port {}, which is '{}:{}'", field,
                                   host, fmt::join(ports, ", "), host, *ports.begin()));
          findings.Explain({}, fmt::format("add '{}:*'", host));
        }
      }
    });
  });
}

// istiod: pilot/pkg/security/authz/model: methods and paths are compared as HTTP has them.
void NeverMatches(const Mesh& mesh, Findings& findings) {
  EachAuthorization(mesh, [&](const MeshCluster& cluster, const kube::Object& policy, const auto&) {
    EachOperation(policy, [&](const json& operation) {
      for (const char* field : {"paths", "notPaths"}) {
        for (const json& each : Items(At(operation, field))) {
          const std::string text = TextOf(each);
          if (text.find('?') != text.npos) {
            // istiod: pilot/pkg/security/authz/model, pathMatcher: Envoy's url_path, which ends before the query.
            findings.Add(cluster, policy,
                         fmt::format("operation.{}: '{}': a path is compared without what follows its question mark",
                                     field, text));
            findings.Explain({}, "write the path alone: an AuthorizationPolicy does not see queries");
            continue;
          }
          if (text.empty() || text.starts_with('/') || text.starts_with('*')) continue;
          findings.Add(cluster, policy,
                       fmt::format("operation.{}: '{}' does not begin with a slash, as every path does", field, text));
        }
      }
      for (const char* field : {"methods", "notMethods"}) {
        for (const json& each : Items(At(operation, field))) {
          const std::string text = TextOf(each);
          if (std::none_of(text.begin(), text.end(), [](char c) { return c >= 'a' && c <= 'z'; })) continue;
          findings.Add(cluster, policy,
                       fmt::format("operation.{}: '{}' is no method: they are written in capitals", field, text));
        }
      }
    });
  });
}

// The first thing that a policy asks of a token; empty: none.
std::string TokenAskedFor(const kube::Object& policy) {
  for (const json& rule : Items(At(policy.body, {"spec", "rules"}))) {
    for (const json& from : Items(At(rule, "from"))) {
      for (const char* field : {"requestPrincipals", "notRequestPrincipals"})
        if (!Items(At(from, {"source", field})).empty()) return fmt::format("source.{}", field);
    }
    for (const json& when : Items(At(rule, "when"))) {
      if (Text(when, "key").starts_with("request.auth.")) return Text(when, "key");
    }
  }
  return {};
}

// A principal is ISSUER/SUBJECT, with a star at its beginning or its end, or alone.
bool MayBeOf(const std::string& principal, const std::string& issuer) {
  const size_t star = principal.find('*');
  if (star == 0) return true;
  const bool within_issuer = star == principal.size() - 1 && star < issuer.size();
  return within_issuer ? issuer.starts_with(principal.substr(0, star)) : principal.starts_with(issuer + "/");
}

// Principals of issuers that nothing reads tokens of.
void TellUnknownIssuers(const MeshCluster& cluster, const kube::Object& policy, Findings& findings) {
  std::set<std::string> issuers;
  for (const config::RequestAuthenticationRef& tokens : cluster.configs.RequestAuthentications()) {
    for (const auto& rule : tokens->spec.jwt_rules) issuers.insert(rule.issuer);
  }
  if (issuers.empty()) return;
  EachSource(policy, [&](const json& source) {
    for (const json& each : Items(At(source, "requestPrincipals"))) {
      const std::string principal = TextOf(each);
      const auto fits = [&](const std::string& issuer) { return MayBeOf(principal, issuer); };
      if (std::any_of(issuers.begin(), issuers.end(), fits)) continue;
      findings.Add(cluster, policy,
                   fmt::format("requestPrincipals has {}, and tokens are read of issuer{} {} alone", principal,
                               issuers.size() == 1 ? "" : "s", fmt::join(issuers, ", ")));
      findings.Explain("a principal is ISSUER/SUBJECT, the issuer letter by letter as the token has it",
                       "mend the issuer there or in the RequestAuthentication");
    }
  });
}

void TokensNobodyChecks(const Mesh& mesh, Findings& findings) {
  EachAuthorization(mesh, [&](const MeshCluster& cluster, const kube::Object& policy, const auto& pods) {
    const std::string asked = TokenAskedFor(policy);
    if (asked.empty() || cluster.push == nullptr) return;
    TellUnknownIssuers(cluster, policy, findings);
    for (const sim::PodProcess* pod : pods) {
      const kube::Object& object = *pod->pod();
      if (!cluster.push->authn().GetJwtPoliciesForWorkload(object.meta.ns, object.meta.labels).empty()) continue;
      return findings.Add(
          cluster, policy,
          fmt::format("asks for {}, and no RequestAuthentication reads tokens for {}.{}: no request has "
                      "any",
                      asked, pod->app(), object.meta.ns));
    }
  });
}

// A Service of TCP before the pod, where nothing but TCP comes to it: of no Service, nor by a ServiceEntry that selects
// it or a Sidecar of its own ports; empty: HTTP may come.
std::string TcpServiceBefore(const Mesh& mesh, const MeshCluster& cluster, const sim::PodProcess& pod) {
  const kube::Object& object = *pod.pod();
  for (const config::ServiceEntryRef& entry : cluster.configs.ServiceEntries()) {
    if (entry->meta.ns == object.meta.ns && entry->spec.workload_selector &&
        Selects(*entry->spec.workload_selector, object.meta.labels))
      return {};
  }
  for (const config::SidecarRef& sidecar : cluster.configs.Sidecars()) {
    if (!sidecar->spec.ingress.empty() && HoldsFor(cluster, sidecar->meta.ns, sidecar->spec.workload_selector, pod))
      return {};
  }
  std::string out;
  for (const kube::ObjectRef& before : ServicesBefore(mesh, pod)) {
    const kube::Service& service = kube::ParseService(*before);
    for (const kube::ServicePort& port : service.ports) {
      const pilot::Protocol protocol = ProtocolOf(port);
      if (protocol == pilot::Protocol::kUdp) continue;
      if (!pilot::IsTcp(protocol)) return {};
      out = before->meta.name;
    }
  }
  return out;
}

// istiod: pilot/pkg/networking/core/v1alpha3/listener_builder.go: filters of TCP get no jwt_authn.
void TokensOfTcp(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->push == nullptr) continue;
    for (const config::RequestAuthenticationRef& tokens : cluster->configs.RequestAuthentications()) {
      std::string service;  // of one of the pods
      bool http = false;
      for (const sim::PodProcess* pod : mesh.ServedPods(*cluster)) {
        if (!pod->bootstrap() || !AttachesTo(*cluster, *tokens, *pod)) continue;
        const std::string tcp = pod->router() ? std::string() : TcpServiceBefore(mesh, *cluster, *pod);
        http = http || tcp.empty();
        if (!tcp.empty()) service = tcp;
      }
      if (http || service.empty()) continue;
      findings.Add(*cluster, tokens->meta,
                   fmt::format("reads tokens of HTTP, and the pods that it holds for are asked by TCP alone, as the "
                               "ports of Service {} say: no token is read or refused",
                               service));
    }
  }
}

// istio.io, RequestAuthentication: a request without a token passes; one with a bad token does not.
void TokensOptional(const Mesh& mesh, Findings& findings) {
  std::set<std::pair<const MeshCluster*, const sim::PodProcess*>> asked;  // for a token, by an istiod
  EachAuthorization(mesh, [&](const MeshCluster& cluster, const kube::Object& policy, const auto& pods) {
    if (TokenAskedFor(policy).empty()) return;
    for (const sim::PodProcess* pod : pods) asked.emplace(&cluster, pod);
  });
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->push == nullptr) continue;
    const std::vector<const sim::PodProcess*> served = mesh.ServedPods(*cluster);
    for (const config::RequestAuthenticationRef& tokens : cluster->configs.RequestAuthentications()) {
      const auto pod = std::find_if(served.begin(), served.end(), [&](const sim::PodProcess* each) {
        return AttachesTo(*cluster, *tokens, *each) && !asked.contains({cluster.get(), each}) &&
               TcpServiceBefore(mesh, *cluster, *each).empty();
      });
      if (pod == served.end()) continue;
      findings.Add(*cluster, tokens->meta,
                   fmt::format("requests to {}.{} without a token pass: no AuthorizationPolicy asks for one",
                               (*pod)->app(), (*pod)->pod()->meta.ns));
    }
  }
}

// istiod: pkg/config/analysis/analyzers/telemetry.
void TelemetriesOfOneScope(const Mesh& mesh, Findings& findings, bool with_selector) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary) continue;
    std::map<std::string, std::string> first;  // of a namespace or a pod of it
    std::set<std::string> told;
    for (const config::TelemetryRef& telemetry : cluster->configs.Telemetries()) {
      if (telemetry->spec.selector.has_value() != with_selector) continue;
      const auto meet = [&](const std::string& scope) {
        const auto [it, added] = first.emplace(scope, telemetry->meta.name);
        if (added || it->second == telemetry->meta.name) return;
        if (!told.insert(telemetry->meta.ns + "/" + telemetry->meta.name).second) return;
        findings.Add(*cluster, telemetry->meta,
                     with_selector ? fmt::format("selects pod {}, as {} does", scope, it->second)
                                   : fmt::format("has no selector, as {} of its namespace", it->second));
      };
      if (!with_selector) {
        meet(telemetry->meta.ns);
        continue;
      }
      for (const sim::PodProcess* pod : mesh.ServedPods(*cluster)) {
        if (pod->pod()->meta.ns == telemetry->meta.ns && Selects(*telemetry->spec.selector, pod->pod()->meta.labels))
          meet(pod->name());
      }
    }
  }
}
void TelemetriesOfOneNamespace(const Mesh& mesh, Findings& findings) { TelemetriesOfOneScope(mesh, findings, false); }
void TelemetriesOfOnePod(const Mesh& mesh, Findings& findings) { TelemetriesOfOneScope(mesh, findings, true); }

// istio.io, app-health-check: kubelets have no certificate, so istiod's injector leads HTTP probes to the agent.
void ProbesMeetMtls(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    std::set<std::string> told;
    for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
      const kube::Object& object = *pod->pod();
      const auto off = object.meta.annotations.find("sidecar.istio.io/rewriteAppHTTPProbers");
      if (!pod->bootstrap() || off == object.meta.annotations.end() || off->second != "false") continue;
      const MeshCluster* primary = mesh.Find(cluster->control_plane);
      if (primary == nullptr || primary->push == nullptr) continue;
      const auto modes = primary->push->authn().ComposeForWorkload(object.meta.ns, object.meta.labels);
      for (const json& container : Items(At(object.body, {"spec", "containers"}))) {
        for (const char* probe : {"readinessProbe", "livenessProbe", "startupProbe"}) {
          const json& http = At(container, {probe, "httpGet"});
          if (Text(container, "name") == "istio-proxy" || http.is_null()) continue;
          const auto port = static_cast<uint32_t>(Number(http, "port"));
          if (modes.ForPort(port) != pilot::MutualTlsMode::kStrict) continue;
          const kube::ObjectRef owner = OwnerOf(mesh, *cluster, *pod);
          if (!told.insert(NameOf(*owner) + probe).second) continue;
          findings.Add(*cluster, *owner,
                       fmt::format("{} of container {} asks port {} in clear text, where mTLS is STRICT, and "
                                   "rewriteAppHTTPProbers is false",
                                   probe, Text(container, "name"), port));
        }
      }
    }
  }
}

// istio: pkg/config/analysis/analyzers/authn/blockedcidrs.go, since 1.30: whoever may write a RequestAuthentication has
// istiod ask for any address that istiod reaches.
void KeySetsFromAnywhere(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    const std::vector<kube::ObjectRef> all = mesh.List(*cluster, "RequestAuthentication.security.istio.io");
    if (!cluster->primary || all.empty()) continue;
    for (const kube::ObjectRef& deployment : mesh.List(*cluster, "Deployment.apps", cluster->system_namespace)) {
      const auto app = deployment->meta.labels.find("app");
      if (app == deployment->meta.labels.end() || app->second != "istiod") continue;
      // One that was installed for the user says nothing of the user's own.
      if (mesh.Where(cluster->name, *deployment).file.empty()) continue;
      bool blocks = false;
      for (const json& container : Items(At(deployment->body, {"spec", "template", "spec", "containers"}))) {
        for (const json& variable : Items(At(container, "env"))) {
          blocks =
              blocks || (Text(variable, "name") == "BLOCKED_CIDRS_IN_JWKS_URIS" && !Text(variable, "value").empty());
        }
      }
      if (blocks) continue;
      findings.Add(*cluster, *deployment,
                   fmt::format("BLOCKED_CIDRS_IN_JWKS_URIS is not set, and {} RequestAuthentication{} may name any "
                               "address as jwksUri",
                               all.size(), all.size() == 1 ? "" : "s"));
    }
  }
}

}  // namespace

const std::vector<Rule>& PolicyRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT542", "PortLevelMtlsByServicePort", Level::kError, "portLevelMtls of a port that is none holds for nothing",
       "name the pods' port, not the Service's", "istio/istio#49098", PortLevelMtlsOfServicePort},
      {"WT543", "StrictWithPlainClients", Level::kInfo, "a client without a sidecar has no certificate to show",
       "give them sidecars, or keep PERMISSIVE where they call", "fluxcd/flagger#239", PlainClients},
      {"WT544", "PeerAuthenticationsOfOneScope", Level::kWarning,
       "istiod takes the oldest of a namespace, or of a workload", "join them into one", "istio/istio#30596",
       PeerPoliciesOfOneScope},
      {"WT545", "OutsideOfRootNamespace", Level::kWarning,
       "istiod takes for the whole mesh what stands in meshConfig.rootNamespace, wherever it is installed itself",
       "move it to the root namespace, or give it a selector", "kiali/kiali#3062", OutsideOfRootNamespace},
      {"WT568", "AuthorizationHostWithoutPort", Level::kWarning,
       "hosts are compared with the Host header as it is sent", "add the host with its port", "istio/istio#44080",
       HostWithoutPort},
      {"WT569", "AuthorizationStarWithin", Level::kWarning,
       "a pattern that never matches lets in, or keeps out, nobody",
       "match by a prefix or a suffix, or name each value", "istio/istio#46910", StarWithin},
      {"WT576", "AuthorizationNeverMatches", Level::kWarning, "what never matches lets in, or keeps out, nobody",
       "write paths from their slash on, and methods in capitals", "AthenZ/k8s-athenz-istio-auth#59", NeverMatches},
      {"WT570", "TokensNobodyChecks", Level::kError,
       "an ALLOW refuses everyone, a DENY by what a token lacks everyone, too",
       "add a RequestAuthentication for these workloads", "", TokensNobodyChecks},
      {"WT757", "TokensOfTcp", Level::kWarning, "a connection of TCP has no headers in which a token could be",
       "name the Service's port http, if it is HTTP; or ask for principals of the mesh (AuthorizationPolicy)",
       "ray-project/kuberay#1025, aspenmesh/istio-vet#62", TokensOfTcp, false},
      {"WT575", "TokensOptional", Level::kInfo, "RequestAuthentication alone refuses bad tokens, not missing ones",
       "add an AuthorizationPolicy with requestPrincipals, if tokens shall be shown", "istio/istio#43982",
       TokensOptional},
      {"IST0175", "JwksUriFetchUnrestricted", Level::kWarning, "istiod asks for whatever a jwksUri names",
       "set BLOCKED_CIDRS_IN_JWKS_URIS to the ranges that nobody is to reach by it", "istio/istio#59523",
       KeySetsFromAnywhere, false, "1.30"},
      {"IST0159", "ConflictingTelemetryWorkloadSelectors", Level::kError, "which of them holds is not defined",
       "join them into one", "istio/istio#43705", TelemetriesOfOnePod},
      {"IST0160", "MultipleTelemetriesWithoutWorkloadSelectors", Level::kError, "which of them holds is not defined",
       "join them into one", "istio/istio#51256, #50414", TelemetriesOfOneNamespace},
      {"WT604", "ProbesMeetMtls", Level::kError,
       "a kubelet has no certificate: its probe fails, and the pod never gets ready",
       "take the annotation away, or probe a port that is not STRICT", "istio/istio#41010, #53786", ProbesMeetMtls},
  };
  return *rules;
}

}  // namespace wavetank::check
