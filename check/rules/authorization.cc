// AuthorizationPolicies: whom they mean, and whether traffic between networks can be what they ask for.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/config/schema/protocol.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

using nlohmann::json;

bool IsAllow(const kube::Object& policy) {
  const std::string action = Text(At(policy.body, "spec"), "action");
  return action.empty() || action == "ALLOW";
}

// "*", "a*", "*a" and "a", as istiod makes matchers of them.
bool PatternFits(std::string_view pattern, std::string_view text) {
  if (pattern == "*") return !text.empty();
  if (pattern.starts_with('*')) return text.ends_with(pattern.substr(1));
  if (pattern.ends_with('*')) return text.starts_with(pattern.substr(0, pattern.size() - 1));
  return pattern == text;
}

// Namespaces with proxies, and "DOMAIN/ns/NAMESPACE/sa/ACCOUNT" of all proxies under every name of their trust domains.
struct Identities {
  std::set<std::string> namespaces, principals;
};

Identities IdentitiesOf(const Mesh& mesh) {
  Identities out;
  std::set<std::string> domains = {"cluster.local"};
  for (const auto& cluster : mesh.clusters()) {
    if (cluster->istiod == nullptr) continue;
    domains.insert(cluster->istiod->mesh_config().trust_domain);
    const auto& aliases = cluster->istiod->mesh_config().trust_domain_aliases;
    domains.insert(aliases.begin(), aliases.end());
  }
  for (const sim::PodProcess* pod : mesh.world().Pods()) {
    if (!pod->bootstrap()) continue;
    const std::string& ns = pod->pod()->meta.ns;
    std::string account = kube::ParsePod(*pod->pod()).service_account;
    if (account.empty()) account = "default";
    out.namespaces.insert(ns);
    for (const std::string& domain : domains) out.principals.insert(fmt::format("{}/ns/{}/sa/{}", domain, ns, account));
  }
  return out;
}

void SourcesNobodyIs(const Mesh& mesh, Findings& findings) {
  const Identities known = IdentitiesOf(mesh);
  const auto none = [](const std::string& pattern, const std::set<std::string>& of) {
    return std::none_of(of.begin(), of.end(), [&](const std::string& text) { return PatternFits(pattern, text); });
  };
  EachAuthorization(mesh, [&](const MeshCluster& cluster, const kube::Object& policy, const auto&) {
    EachSource(policy, [&](const json& source) {
      for (const json& principal : Items(At(source, "principals"))) {
        if (none(TextOf(principal), known.principals))
          findings.Add(cluster, policy, fmt::format("principal {} is no proxy's of the mesh", TextOf(principal)));
      }
      for (const json& ns : Items(At(source, "namespaces"))) {
        if (none(TextOf(ns), known.namespaces))
          findings.Add(cluster, policy, fmt::format("no proxy of the mesh is in namespace {}", TextOf(ns)));
      }
    });
  });
}

// A field that only HTTP has; empty: none.
std::string HttpField(const json& rule) {
  for (const json& to : Items(At(rule, "to"))) {
    for (const char* field : {"methods", "paths", "hosts", "notMethods", "notPaths", "notHosts"}) {
      if (!Items(At(to, {"operation", field})).empty()) return field;
    }
  }
  for (const json& from : Items(At(rule, "from"))) {
    for (const char* field : {"requestPrincipals", "notRequestPrincipals", "remoteIpBlocks", "notRemoteIpBlocks"}) {
      if (!Items(At(from, {"source", field})).empty()) return field;
    }
  }
  for (const json& when : Items(At(rule, "when"))) {
    if (Text(when, "key").starts_with("request.")) return Text(when, "key");
  }
  return {};
}

bool IsTcp(const kube::ServicePort& port) {
  const pilot::Protocol protocol = ProtocolOf(port);
  return protocol == pilot::Protocol::kTcp || protocol == pilot::Protocol::kTls ||
         protocol == pilot::Protocol::kMongo || protocol == pilot::Protocol::kMysql ||
         protocol == pilot::Protocol::kRedis;
}

void HttpRulesOnTcp(const Mesh& mesh, Findings& findings) {
  EachAuthorization(mesh, [&](const MeshCluster& cluster, const kube::Object& policy, const auto& pods) {
    std::string field;
    bool ports = false;
    for (const json& rule : Items(At(policy.body, {"spec", "rules"}))) {
      if (field.empty()) field = HttpField(rule);
      for (const json& to : Items(At(rule, "to"))) ports = ports || !Items(At(to, {"operation", "ports"})).empty();
    }
    if (field.empty() || ports) return;
    for (const sim::PodProcess* pod : pods) {
      if (pod->router()) continue;  // what it speaks its Gateways say
      for (const kube::ObjectRef& object : ServicesBefore(mesh, *pod)) {
        const kube::Service& service = kube::ParseService(*object);
        const auto tcp = std::find_if(service.ports.begin(), service.ports.end(), IsTcp);
        if (tcp == service.ports.end() || IsSystemNamespace(mesh, object->meta.ns)) continue;
        return findings.Add(cluster, policy,
                            fmt::format("asks for {}, which port {} of Service {} does not have, as it is TCP: {}",
                                        field, tcp->port, object->meta.name,
                                        IsAllow(policy) ? "the rule never matches there, and connections are refused"
                                                        : "the rule holds there without that condition"));
      }
    }
  });
}

void AddressesBehindGateways(const Mesh& mesh, Findings& findings) {
  if (!HasSeveralNetworks(mesh)) return;
  EachAuthorization(mesh, [&](const MeshCluster& cluster, const kube::Object& policy, const auto& pods) {
    const bool application =
        std::any_of(pods.begin(), pods.end(), [](const auto* pod) { return !pod->router() && IsApplication(*pod); });
    if (!application) return;
    EachSource(policy, [&](const json& source) {
      for (const char* field : {"ipBlocks", "notIpBlocks"}) {
        if (Items(At(source, field)).empty()) continue;
        findings.Add(cluster, policy,
                     fmt::format("source.{}: requests from other networks come with the address of the gateway here, "
                                 "whoever sent them",
                                 field));
      }
    });
  });
}

// Gateways between networks pass mesh TLS on unopened: they know addresses, ports and the SNI.
void OnNetworkGateway(const Mesh& mesh, Findings& findings) {
  if (!HasSeveralNetworks(mesh)) return;
  EachAuthorization(mesh, [&](const MeshCluster& cluster, const kube::Object& policy, const auto& pods) {
    if (!IsAllow(policy)) return;
    const bool gateway = std::any_of(pods.begin(), pods.end(), [](const auto* pod) {
      return pod->router() && pod->pod()->meta.labels.contains("topology.istio.io/network");
    });
    if (!gateway) return;
    for (const json& rule : Items(At(policy.body, {"spec", "rules"}))) {
      bool identity = !HttpField(rule).empty();
      for (const json& from : Items(At(rule, "from"))) {
        for (const char* field : {"principals", "namespaces"})
          identity = identity || !Items(At(from, {"source", field})).empty();
      }
      if (!identity) return;  // it may let them in by port or address
    }
    findings.Add(
        cluster, policy,
        "holds for a gateway between networks, which opens no TLS and so knows no caller: nothing fulfils it, and "
        "all that comes from other networks is refused");
  });
}

// Its only condition is that a method or path be any, as all are.
bool AsksNothing(const json& rule) {
  if (rule.contains("from") || rule.contains("when")) return false;
  for (const json& to : Items(At(rule, "to"))) {
    const json& operation = At(to, "operation");
    if (!operation.is_object() || operation.size() != 1) continue;
    for (const char* field : {"methods", "paths"}) {
      for (const json& each : Items(At(operation, field))) {
        if (TextOf(each) == "*" || (TextOf(each) == "/*" && std::string_view(field) == "paths")) return true;
      }
    }
  }
  return false;
}

void NobodyAllowed(const Mesh& mesh, Findings& findings) {
  std::map<std::string, std::set<const sim::PodProcess*>> admitting;  // by cluster: pods that some rule admits to
  EachAuthorization(mesh, [&](const MeshCluster& cluster, const kube::Object& policy, const auto& pods) {
    if (IsAllow(policy) && !Items(At(policy.body, {"spec", "rules"})).empty())
      admitting[cluster.name].insert(pods.begin(), pods.end());
  });
  EachAuthorization(mesh, [&](const MeshCluster& cluster, const kube::Object& policy, const auto& pods) {
    const json& rules = Items(At(policy.body, {"spec", "rules"}));
    const std::string action = Text(At(policy.body, "spec"), "action");
    const bool all_denied = action == "DENY" && std::any_of(rules.begin(), rules.end(), [](const json& rule) {
                              return rule.is_object() && (rule.empty() || AsksNothing(rule));
                            });
    if (!all_denied && !(IsAllow(policy) && rules.empty())) return;
    std::set<std::string> apps;
    for (const sim::PodProcess* pod : pods) {
      if (!IsApplication(*pod) || pod->router()) continue;
      if (!all_denied && admitting[cluster.name].contains(pod)) continue;
      if (!ServicesBefore(mesh, *pod).empty()) apps.insert(pod->pod()->meta.ns + "/" + pod->app());
    }
    if (apps.empty()) return;
    findings.Add(cluster, policy,
                 fmt::format("{} admits nobody{}: requests from every cluster are answered 403", *apps.begin(),
                             apps.size() > 1 ? fmt::format(" (nor do {} more)", apps.size() - 1) : ""));
  });
}

// A gateway between networks opens no TLS: applications see the client's own identity, from whatever network.
void GatewayAsCaller(const Mesh& mesh, Findings& findings) {
  if (!HasSeveralNetworks(mesh)) return;
  // By their Services: injection gives pods of all gateways the network's label.
  std::set<const sim::PodProcess*> between;
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& service : NetworkGatewayServices(mesh, *cluster)) {
      const auto pods = Behind(mesh, *cluster, *service);
      between.insert(pods.begin(), pods.end());
    }
  }
  std::set<std::string> of_gateways, of_others;
  for (const sim::PodProcess* pod : mesh.world().Pods()) {
    if (!pod->bootstrap()) continue;
    const std::string account = kube::ParsePod(*pod->pod()).service_account;
    (between.contains(pod) && pod->router() ? of_gateways : of_others)
        .insert(fmt::format("/ns/{}/sa/{}", pod->pod()->meta.ns, account.empty() ? "default" : account));
  }
  EachAuthorization(mesh, [&](const MeshCluster& cluster, const kube::Object& policy, const auto& pods) {
    const bool application = std::any_of(pods.begin(), pods.end(), [](const auto* pod) { return !pod->router(); });
    if (!application) return;
    EachSource(policy, [&](const json& source) {
      for (const json& principal : Items(At(source, "principals"))) {
        const std::string text = TextOf(principal);
        const size_t ns = text.find("/ns/");
        if (ns == std::string::npos || !of_gateways.contains(text.substr(ns)) || of_others.contains(text.substr(ns)))
          continue;
        findings.Add(
            cluster, policy,
            fmt::format("principal {} is the gateway's between networks, as which no request comes: clients of "
                        "other networks keep their own",
                        text));
      }
    });
  });
}

// operation.ports are those that the pod listens on (istiod: pilot/pkg/security/authz/model, destination.port).
void PortsOfServices(const Mesh& mesh, Findings& findings) {
  EachAuthorization(mesh, [&](const MeshCluster& cluster, const kube::Object& policy, const auto& pods) {
    std::map<int, std::pair<int, std::string>> ports;  // of Services before them: target port, Service
    std::set<int> targets;
    for (const sim::PodProcess* pod : pods) {
      for (const kube::ObjectRef& object : ServicesBefore(mesh, *pod)) {
        const kube::Service& service = kube::ParseService(*object);
        for (const kube::ServicePort& port : service.ports) {
          const int target = kube::TargetPortOf(port, kube::ParsePod(*pod->pod()));
          if (target == 0) continue;
          targets.insert(target);
          ports.emplace(port.port, std::pair(target, object->meta.ns + "/" + object->meta.name));
        }
      }
    }
    for (const json& rule : Items(At(policy.body, {"spec", "rules"}))) {
      for (const json& to : Items(At(rule, "to"))) {
        for (const char* field : {"ports", "notPorts"}) {
          for (const json& each : Items(At(At(to, "operation"), field))) {
            const std::string text = TextOf(each);
            const int port = std::atoi(text.c_str());
            const auto service = ports.find(port);
            if (service == ports.end() || targets.contains(port)) continue;
            findings.Add(cluster, policy,
                         fmt::format("operation.{} has {}, the port of Service {}: its pods listen on {}, and that is "
                                     "what the policy is asked with",
                                     field, port, service->second.second, service->second.first));
            findings.Explain({}, fmt::format("write {}", service->second.first));
          }
        }
      }
    }
  });
}

// What every request of one kind between applications shows: nothing of tokens, headers, paths or methods is asked.
bool AsksPeersAlone(const kube::Object& policy) {
  for (const json& rule : Items(At(policy.body, {"spec", "rules"}))) {
    for (const json& from : Items(At(rule, "from"))) {
      for (const char* field : {"requestPrincipals", "notRequestPrincipals"})
        if (!Items(At(from, {"source", field})).empty()) return false;
    }
    for (const json& to : Items(At(rule, "to"))) {
      for (const auto& [field, values] : At(to, "operation").items())
        if (field != "ports" && field != "notPorts") return false;
    }
    for (const json& when : Items(At(rule, "when"))) {
      if (Text(when, "key").starts_with("request.")) return false;
    }
  }
  return true;
}

// Some rule lets callers in, or keeps them out, that are a gateway's: whom only those from outside may call is well.
bool SpeaksOfGateways(const Mesh& mesh, const kube::Object& policy) {
  std::set<std::string> namespaces;
  for (const sim::PodProcess* pod : mesh.world().Pods()) {
    if (pod->router()) namespaces.insert(pod->pod()->meta.ns);
  }
  bool any = false;
  EachSource(policy, [&](const json& source) {
    for (const char* field : {"principals", "namespaces"}) {
      for (const json& each : Items(At(source, field))) {
        const std::string text = TextOf(each);
        any = any || text == "*" || std::any_of(namespaces.begin(), namespaces.end(), [&](const std::string& ns) {
                return text == ns || text.find("/ns/" + ns + "/") != std::string::npos;
              });
      }
    }
  });
  return any;
}

// Requests were sent from every application, and a policy by who calls refused them all.
void RefusesEverybody(const Mesh& mesh, Findings& findings) {
  std::map<std::pair<std::string, std::string>, std::pair<int64_t, int64_t>> by_service;  // sent, refused
  std::map<std::pair<std::string, std::string>, std::set<std::string>> clients;
  for (const RequestOutcome& r : findings.requests()) {
    auto& [sent, refused] = by_service[{r.ns, r.service}];
    sent += r.sent;
    refused += r.refused;
    clients[{r.ns, r.service}].insert(r.client);
  }
  // Where another policy asks for more, other requests may pass.
  std::set<const sim::PodProcess*> unjudged;
  EachAuthorization(mesh, [&](const MeshCluster&, const kube::Object& policy, const auto& pods) {
    if (!AsksPeersAlone(policy) || SpeaksOfGateways(mesh, policy)) unjudged.insert(pods.begin(), pods.end());
  });
  std::set<std::string> told;
  EachAuthorization(mesh, [&](const MeshCluster& cluster, const kube::Object& policy, const auto& pods) {
    if (!AsksPeersAlone(policy) || SpeaksOfGateways(mesh, policy)) return;
    for (const char* code : {"WT561", "WT562", "WT563", "WT565", "WT566", "WT570", "WT576", "WT577"})
      if (findings.Has(code, cluster.name, NameOf(policy))) return;
    for (const sim::PodProcess* pod : pods) {
      if (unjudged.contains(pod)) continue;
      for (const kube::ObjectRef& service : ServicesBefore(mesh, *pod)) {
        const auto of = by_service.find({service->meta.ns, service->meta.name});
        if (of == by_service.end() || of->second.first == 0 || of->second.second < of->second.first) continue;
        if (!told.insert(cluster.name + NameOf(policy)).second) return;
        findings.Add(
            cluster, policy,
            fmt::format(
                "all {} requests that {} of the mesh sent to Service {}/{} are refused (RBAC: answered 403, or closed)",
                of->second.second,
                clients[of->first].size() == 1 ? *clients[of->first].begin()
                                               : fmt::format("{} applications", clients[of->first].size()),
                service->meta.ns, service->meta.name));
      }
    }
  });
}

// istio.io, AuthorizationPolicy: AUDIT marks requests for a plugin, and 1.18.2 brings none but Stackdriver's.
void AuditOfNobody(const Mesh& mesh, Findings& findings) {
  EachAuthorization(mesh, [&](const MeshCluster& cluster, const kube::Object& policy, const auto&) {
    if (Text(At(policy.body, "spec"), "action") != "AUDIT") return;
    const std::string providers =
        JsonText(At(cluster.istiod == nullptr ? json() : cluster.istiod->mesh_config().raw, "extensionProviders"));
    if (providers.find("stackdriver") != std::string::npos) return;
    findings.Add(cluster, policy,
                 "action AUDIT, and no provider of the mesh config audits: it lets in and keeps out nobody");
  });
}

}  // namespace

const std::vector<Rule>& AuthorizationRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT561", "AuthorizationSourceUnknown", Level::kWarning, "a caller that does not exist is never let in",
       "mend the trust domain, namespace or service account", "KanishJebaMathewM/Truxify#7681", SourcesNobodyIs},
      {"WT562", "AuthorizationHttpOnTcp", Level::kWarning, "TCP has no methods, paths, hosts, headers or tokens",
       "name the Service's port http, or ask for ports and principals alone", "istio/istio#25832", HttpRulesOnTcp},
      {"WT563", "AuthorizationByAddress", Level::kWarning, "a gateway's connections come from the gateway",
       "ask for principals or namespaces: mesh TLS carries them through gateways", "istio/istio#30895",
       AddressesBehindGateways},
      {"WT577", "AuthorizationByGateway", Level::kWarning,
       "mesh TLS runs from sidecar to sidecar, through such gateways", "name the clients' own principals or namespaces",
       "", GatewayAsCaller},
      {"WT564", "AuthorizationOnNetworkGateway", Level::kError, "an AUTO_PASSTHROUGH gateway sees TLS from outside",
       "select the applications, and let the gateway pass", "istio/istio#26626", OnNetworkGateway},
      {"WT565", "AuthorizationAdmitsNobody", Level::kWarning,
       "ALLOW policies without a rule that fits refuse everything", "add an ALLOW policy for those who may call",
       "istio/istio#35626", NobodyAllowed},
      {"WT592", "AuthorizationRefusesEverybody", Level::kWarning,
       "what no ALLOW policy's rule fits, or some DENY policy's does, is refused",
       "`wavetank why MESH --from CLIENT --to HOST:PORT` tells the rule; silence this if nobody shall call it",
       "KanishJebaMathewM/Truxify#7681", RefusesEverybody, false},
      {"WT593", "AuditOfNobody", Level::kInfo, "AUDIT marks requests for a plugin",
       "use ALLOW or DENY, or bring a plugin", "deckhouse/deckhouse#10204", AuditOfNobody, false},
      {"WT566", "AuthorizationByServicePort", Level::kError, "a sidecar knows the port that its pod is called at",
       "name the pods' port", "istio/api#3075", PortsOfServices},
  };
  return *rules;
}

}  // namespace wavetank::check
