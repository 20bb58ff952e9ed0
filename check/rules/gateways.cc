// Istio's Gateways among each other, and their certificates; Ingresses and routes of the Gateway API.
#include <algorithm>
#include <set>

#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/config/schema/protocol.h"
#include "core/gateway_api/classes.h"
#include "core/model/gateway.h"
#include "core/model/host_name.h"
#include "core/model/proxy.h"
#include "core/push/push_context.h"
#include "core/registry/ingress_conversion.h"
#include "core/security/credentials.h"
#include "core/x509/x509.h"
#include "core/xds/connection.h"
#include "core/xds/discovery_server.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

using nlohmann::json;

void Conflicting(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    const auto& gateways = cluster->configs.Gateways();
    for (size_t i = 0; i < gateways.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (gateways[i]->spec.selector != gateways[j]->spec.selector) continue;
        for (const config::Server& a : gateways[i]->spec.servers) {
          for (const config::Server& b : gateways[j]->spec.servers) {
            const bool host = std::any_of(a.hosts.begin(), a.hosts.end(), [&](const auto& h) {
              return std::find(b.hosts.begin(), b.hosts.end(), h) != b.hosts.end();
            });
            if (a.port.number != b.port.number || !host) continue;
            findings.Add(*cluster, gateways[i]->meta,
                         fmt::format("port {}: Gateway {}/{} has the same selector, port and host", a.port.number,
                                     gateways[j]->meta.ns, gateways[j]->meta.name));
          }
        }
      }
    }
  }
}

// istiod: pilot/pkg/model/gateway.go, mergeGateways: beside a first server in plain text there are others of plain HTTP
// alone, if it is of HTTP itself.
void ServersOfOnePort(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->istiod == nullptr) continue;
    std::set<std::pair<std::string, std::string>> told;
    for (const pilot::Connection* connection : cluster->istiod->discovery().Clients()) {
      const auto& merged = connection->proxy().merged_gateway;
      if (merged == nullptr) continue;
      for (const auto& [server, first] : merged->unserved) {
        const auto gateway = std::find_if(
            merged->gateways.begin(), merged->gateways.end(),
            [&, of = server](const auto& each) { return of->gateway_name == each->meta.ns + "/" + each->meta.name; });
        if (gateway == merged->gateways.end()) continue;
        const auto& port = server->server.port;
        std::string message = fmt::format(
            "port {}: {} here and {} in Gateway {} for the same pods: istiod serves the first of the two alone",
            port.number, port.protocol, first->server.port.protocol, first->gateway_name);
        if (told.emplace(server->gateway_name, message).second)
          findings.Add(*cluster, (*gateway)->meta, std::move(message));
      }
    }
  }
}

// A client that follows the redirect asks port 443 of the same host by TLS.
void RedirectsToNoServer(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    const auto& gateways = cluster->configs.Gateways();
    for (const config::GatewayRef& gateway : gateways) {
      for (const config::Server& server : gateway->spec.servers) {
        if (!server.tls || !server.tls->https_redirect) continue;
        for (const std::string& host : server.hosts) {
          const std::string name = host.substr(host.find('/') == host.npos ? 0 : host.find('/') + 1);
          const bool served = std::any_of(gateways.begin(), gateways.end(), [&](const config::GatewayRef& other) {
            if (other->spec.selector != gateway->spec.selector) return false;
            return std::any_of(other->spec.servers.begin(), other->spec.servers.end(), [&](const config::Server& s) {
              const pilot::Protocol protocol = pilot::ParseProtocol(s.port.protocol);
              return pilot::IsTls(protocol) && std::any_of(s.hosts.begin(), s.hosts.end(), [&](const std::string& h) {
                       const std::string of = h.substr(h.find('/') == h.npos ? 0 : h.find('/') + 1);
                       return pilot::HostMatches(of, name) || pilot::HostMatches(name, of);
                     });
            });
          });
          if (served) continue;
          findings.Add(
              *cluster, gateway->meta,
              fmt::format("port {} redirects {} to https, and no Gateway of the same selector serves it by TLS",
                          server.port.number, host));
        }
      }
    }
  }
}

bool SameCertificate(const config::ServerTlsSettings& a, const config::ServerTlsSettings& b) {
  if (!a.credential_name.empty() || !b.credential_name.empty()) return a.credential_name == b.credential_name;
  return !a.server_certificate.empty() && !a.private_key.empty() && a.server_certificate == b.server_certificate &&
         a.private_key == b.private_key;
}

// Clients of HTTP/2 use a connection for every host that its certificate is for, and a gateway knows the hosts of the
// Gateway alone that the connection's SNI led to. istiod: pkg/config/analysis/analyzers/gateway/certificate.go
void CertificateOfSeveral(const Mesh& mesh, Findings& findings) {
  const auto within = [](const kube::Labels& some, const kube::Labels& all) {
    return std::all_of(some.begin(), some.end(), [&](const auto& label) {
      const auto it = all.find(label.first);
      return it != all.end() && it->second == label.second;
    });
  };
  for (const auto& cluster : mesh.clusters()) {
    const auto& gateways = cluster->configs.Gateways();
    for (size_t i = 0; i < gateways.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const config::Gateway &a = gateways[i]->spec, &b = gateways[j]->spec;
        if (!within(a.selector, b.selector) && !within(b.selector, a.selector)) continue;
        const auto shared = std::find_if(a.servers.begin(), a.servers.end(), [&](const config::Server& server) {
          return server.tls && std::any_of(b.servers.begin(), b.servers.end(), [&](const config::Server& other) {
                   return other.tls && SameCertificate(*server.tls, *other.tls);
                 });
        });
        if (shared == a.servers.end()) continue;
        findings.Add(*cluster, gateways[i]->meta,
                     fmt::format("{} is the certificate of Gateway {}/{}, too, for the same pods",
                                 shared->tls->credential_name.empty() ? shared->tls->server_certificate
                                                                      : shared->tls->credential_name,
                                 gateways[j]->meta.ns, gateways[j]->meta.name));
      }
    }
  }
}

// istiod: pilot/pkg/credentials/kube/secrets.go, ExtractCertInfo: cert and key, or tls.crt and tls.key. Empty: both are
// there, or the Secret's data was cut out of what is known of it.
std::string LacksKeys(const MeshCluster& cluster, const kube::Object& secret) {
  const auto data = kube::ReadSecretData(secret);
  if (cluster.recorded || !data.ok() || data->empty()) return {};
  const auto has = [&](const char* key) {
    const auto it = data->find(key);
    return it != data->end() && !it->second.empty();
  };
  if ((has("cert") && has("key")) || (has("tls.crt") && has("tls.key"))) return {};
  std::string keys;
  for (const auto& [key, value] : *data) keys += fmt::format("{}{}", keys.empty() ? "" : ", ", key);
  return fmt::format("has {}, and neither tls.crt and tls.key nor cert and key", keys);
}

// What keeps a listener without its certificate although the Secret has the keys; empty: nothing, or its data is not
// known. What has expired WT303 tells. istiod: pilot/pkg/xds/sds.go, ValidateCertificate(); envoy:
// source/extensions/transport_sockets/tls/context_impl.cc refuses a key that is another certificate's.
std::string WrongInPair(const MeshCluster& cluster, const kube::Object& secret) {
  const absl::StatusOr<security::CertInfo> pair = security::ExtractCertInfo(secret);
  if (cluster.recorded || !pair.ok()) return {};
  const absl::StatusOr<x509::CertificateRef> certificate = x509::Certificate::FromPem(pair->cert, "tls.crt or cert");
  if (!certificate.ok()) return fmt::format("holds no certificate: {}", Message(certificate.status()));
  const absl::StatusOr<x509::KeyPairRef> key = x509::KeyPair::FromPem(pair->key, "tls.key or key");
  if (!key.ok()) return fmt::format("holds no private key: {}", Message(key.status()));
  if (!(*certificate)->Matches(**key)) return "holds a private key that is not its certificate's";
  return {};
}

void CredentialMissing(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    for (const config::GatewayRef& gateway : cluster->configs.Gateways()) {
      for (const config::Server& server : gateway->spec.servers) {
        if (!server.tls || server.tls->credential_name.empty() ||
            server.tls->credential_name.find("://") != std::string::npos)
          continue;
        for (const sim::PodProcess* pod : mesh.ServedPods(*cluster)) {
          if (!pod->router() || !Selects(gateway->spec.selector, pod->pod()->meta.labels)) continue;
          const MeshCluster* at = mesh.Find(pod->site().name);
          if (const kube::ObjectRef secret = mesh.Get(*at, "Secret", pod->pod()->meta.ns, server.tls->credential_name);
              secret != nullptr) {
            std::string lacks = LacksKeys(*at, *secret);
            if (lacks.empty()) lacks = WrongInPair(*at, *secret);
            if (!lacks.empty()) {
              findings.Add(*cluster, gateway->meta,
                           fmt::format("credentialName {}: Secret {}/{} of {} {}", server.tls->credential_name,
                                       secret->meta.ns, secret->meta.name, at->name, lacks));
              findings.Explain({}, "make it with `kubectl create secret tls NAME --cert FILE --key FILE`");
              break;
            }
            continue;
          }
          findings.Add(
              *cluster, gateway->meta,
              fmt::format("credentialName {}: there is no such Secret in namespace {} of {}, where pod {} looks for it",
                          server.tls->credential_name, pod->pod()->meta.ns, at->name, pod->name()));
          break;
        }
      }
    }
  }
}

// istiod: pkg/config/analysis/analyzers/gateway/gateway.go
void GatewayPortsNobodyOffers(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->push == nullptr) continue;
    for (const config::GatewayRef& gateway : cluster->configs.Gateways()) {
      std::set<int> offered;
      bool any = false;
      const auto is_its = [&](const sim::PodProcess* pod) {
        return pod->router() && Selects(gateway->spec.selector, pod->pod()->meta.labels);
      };
      // Pods of remote clusters are meant where there is none at home.
      const auto own = mesh.Pods(*cluster);
      const bool at_home = std::any_of(own.begin(), own.end(), is_its);
      for (const sim::PodProcess* pod : at_home ? own : mesh.ServedPods(*cluster)) {
        if (!is_its(pod)) continue;
        for (const kube::ObjectRef& service : ServicesBefore(mesh, *pod)) {
          any = true;
          for (const kube::ServicePort& port : kube::ParseService(*service).ports) {
            offered.insert(port.port);
            offered.insert(kube::TargetPortOf(port, kube::ParsePod(*pod->pod())));
          }
        }
      }
      if (!any) continue;
      for (const config::Server& server : gateway->spec.servers) {
        const int port = static_cast<int>(server.port.number);
        // The port between networks is WT111's.
        if (offered.contains(port) || port == 15443) continue;
        findings.Add(
            *cluster, gateway->meta,
            fmt::format("port {} is of no Service before the pods that it selects: nothing comes there", port));
      }
    }
  }
}

// Ingresses and routes of the Gateway API name what is there.
void RoutesToNobody(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (cluster->recorded) continue;
    // `port`: a number, or the name of the Service's port; null: it says none.
    const auto look = [&](const kube::Object& object, const std::string& ns, const std::string& name,
                          const json& port) {
      if (name.empty()) return;
      const kube::ObjectRef service = mesh.Get(*cluster, "Service", ns, name);
      if (service == nullptr)
        return findings.Add(*cluster, object, fmt::format("leads to Service {}/{}, which is not there", ns, name));
      const auto& ports = kube::ParseService(*service).ports;
      const bool has = std::any_of(ports.begin(), ports.end(), [&](const kube::ServicePort& each) {
        return port.is_string() ? each.name == TextOf(port) : each.port == NumberOf(port);
      });
      if (port.is_null() || has || ports.empty()) return;
      std::string known;
      for (const kube::ServicePort& each : ports) known += fmt::format("{}{}", known.empty() ? "" : ", ", each.port);
      findings.Add(*cluster, object,
                   fmt::format("leads to port {} of Service {}/{}, which has {}",
                               port.is_string() ? TextOf(port) : std::to_string(NumberOf(port)), ns, name, known));
    };
    for (const kube::ObjectRef& ingress : mesh.List(*cluster, "Ingress.networking.k8s.io")) {
      for (const auto& rule : Items(At(ingress->body, {"spec", "rules"}))) {
        for (const auto& path : Items(At(rule, {"http", "paths"}))) {
          const json& service = At(path, {"backend", "service"});
          const json &number = At(service, {"port", "number"}), &called = At(service, {"port", "name"});
          look(*ingress, ingress->meta.ns, Text(service, "name"), number.is_null() ? called : number);
        }
      }
    }
    for (const char* kind : {"HTTPRoute.gateway.networking.k8s.io", "TCPRoute.gateway.networking.k8s.io",
                             "TLSRoute.gateway.networking.k8s.io", "GRPCRoute.gateway.networking.k8s.io"}) {
      for (const kube::ObjectRef& route : mesh.List(*cluster, kind)) {
        int number = 0;
        for (const auto& rule : Items(At(route->body, {"spec", "rules"}))) {
          ++number;
          // gateway-api: apis/v1, HTTPBackendRef: what has weight 0 gets nothing, and if all have, there is nobody.
          const json& backends = Items(At(rule, "backendRefs"));
          if (!backends.empty() && std::all_of(backends.begin(), backends.end(), [](const json& backend) {
                return NumberOf(At(backend, "weight"), 1) == 0;
              }))
            findings.Add(
                *cluster, *route,
                fmt::format("each backendRef of its rule {} has weight 0: what the rule matches is answered by "
                            "nobody",
                            number));
          for (const auto& backend : backends) {
            if (Text(backend, "kind", "Service") == "Service" && Text(backend, "group").empty())
              look(*route, Text(backend, "namespace", route->meta.ns), Text(backend, "name"), At(backend, "port"));
          }
        }
        for (const auto& parent : Items(At(route->body, {"spec", "parentRefs"}))) {
          const std::string name = Text(parent, "name"), ns = Text(parent, "namespace", route->meta.ns);
          if (Text(parent, "kind", "Gateway") != "Gateway" ||
              mesh.Get(*cluster, "Gateway.gateway.networking.k8s.io", ns, name) != nullptr)
            continue;
          findings.Add(*cluster, *route, fmt::format("is for Gateway {}/{}, which is not there", ns, name));
        }
      }
    }
  }
}

// istiod makes Gateways of the Ingresses of its class for the pods of certain labels, wherever they are.
void IngressOfNobody(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->push == nullptr) continue;
    const config::MeshConfig& settings = cluster->push->mesh();
    const kube::Labels labels = config::IngressGatewaySelector(settings);
    const auto pods = mesh.ServedPods(*cluster);
    const bool any = std::any_of(pods.begin(), pods.end(), [&](const sim::PodProcess* pod) {
      return pod->router() && Selects(labels, pod->pod()->meta.labels);
    });
    if (any) continue;
    for (const kube::ObjectRef& ingress : mesh.List(*cluster, "Ingress.networking.k8s.io")) {
      const std::string named = Text(At(ingress->body, "spec"), "ingressClassName");
      const kube::ObjectRef of_class =
          named.empty() ? nullptr : mesh.Get(*cluster, "IngressClass.networking.k8s.io", "", named);
      if (!config::IsOwnIngress(settings, *ingress, of_class.get())) continue;
      findings.Add(*cluster, *ingress,
                   fmt::format("is for gateways with the labels {}, and none is there", LabelText(labels)));
    }
  }
}

// What a controller wrote into an object of the Gateway API: that it is not accepted, or refers to what is not there.
void RefusedByController(const Mesh& mesh, Findings& findings) {
  constexpr const char* kGroup = ".gateway.networking.k8s.io";
  for (const auto& cluster : mesh.clusters()) {
    for (const char* kind : {"Gateway", "HTTPRoute", "TCPRoute", "TLSRoute", "GRPCRoute"}) {
      for (const kube::ObjectRef& object : mesh.List(*cluster, std::string(kind) + kGroup)) {
        const json& status = At(object->body, "status");
        std::set<std::string> told;
        const auto look = [&](const json& conditions, const std::string& of) {
          for (const json& condition : Items(conditions)) {
            const std::string type = Text(condition, "type"), message = Text(condition, "message");
            const bool asks = type == "Accepted" || type == "ResolvedRefs" || type == "Programmed";
            if (!asks || Text(condition, "status") != "False" || !told.insert(message).second) continue;
            // That WT584 says of what was brought.
            if (Text(condition, "reason") == "BackendNotFound" && findings.Has("WT584", cluster->name, NameOf(*object)))
              continue;
            findings.Add(*cluster, *object,
                         fmt::format("{}{} is False ({}): {}", of, type, Text(condition, "reason"), message));
          }
        };
        for (const json& listener : Items(At(status, "listeners")))
          look(At(listener, "conditions"), fmt::format("listener {}: ", Text(listener, "name")));
        for (const json& parent : Items(At(status, "parents"))) {
          // That its Gateway is not there WT584 says.
          const json& ref = At(parent, "parentRef");
          if (Text(ref, "kind", "Gateway") == "Gateway" &&
              mesh.Get(*cluster, std::string("Gateway") + kGroup, Text(ref, "namespace", object->meta.ns),
                       Text(ref, "name")) == nullptr)
            continue;
          look(At(parent, "conditions"), fmt::format("for {}: ", Text(ref, "name")));
        }
        look(At(status, "conditions"), "");
        const std::string of_class = Text(At(object->body, "spec"), "gatewayClassName");
        // Of ambient mode, which a note names.
        if (gatewayapi::IsRefusedClass(of_class)) continue;
        if (of_class.empty() || mesh.Get(*cluster, std::string("GatewayClass") + kGroup, "", of_class) != nullptr)
          continue;
        findings.Add(*cluster, *object,
                     fmt::format("gatewayClassName {} is no GatewayClass of {}: no controller takes the Gateway",
                                 of_class, cluster->name));
        findings.Explain("a Gateway waits for the controller of its class", "write the class istio");
      }
    }
  }
}

}  // namespace

const std::vector<Rule>& GatewayRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT745", "ServersOfOnePort", Level::kError, "the other is not served at all, and nobody says so",
       "give one of them another port, or both TLS", "istio/istio#27481", ServersOfOnePort},
      {"WT598", "RedirectToNoServer", Level::kWarning,
       "a client that follows it meets a closed port; where a load balancer ends TLS and sends plain HTTP, it is "
       "redirected for ever",
       "add a server of protocol HTTPS for the host, or take httpsRedirect away where TLS ends before the gateway",
       "istio/istio#16778, #23674", RedirectsToNoServer, false},
      {"WT584", "RouteToNobody", Level::kError, "a route whose ends are not there leads nobody anywhere",
       "name what is there", "istio/istio#54946", RoutesToNobody},
      {"WT591", "GatewayApiRefused", Level::kError, "a controller tells in an object's status what it makes of it",
       "mend what the message names", "vdupain/gitops-k8s#53", RefusedByController},
      {"IST0145", "ConflictingGateways", Level::kError, "one of the servers is not heard",
       "join them, or give them hosts of their own", "istio/istio#23235, #27481", Conflicting},
      {"IST0138", "GatewayDuplicateCertificate", Level::kWarning,
       "a client of HTTP/2 goes on with the connection that it has, and is answered 404 for the other's hosts",
       "put the servers of one certificate into one Gateway, with one server for all its hosts", "istio/istio#32592",
       CertificateOfSeveral, false},
      {"IST0161", "InvalidGatewayCredential", Level::kError, "the listener has no certificate and resets connections",
       "create the Secret in the gateway's own namespace", "istio/istio#27740", CredentialMissing},
      {"WT753", "IngressOfNobody", Level::kWarning, "nobody serves the Ingress",
       "install an ingress gateway with these labels, or name another by the mesh config's ingressSelector",
       "istio/istio#8231", IngressOfNobody},
      {"IST0104", "GatewayPortNotOnWorkload", Level::kWarning, "a listener without a way to it",
       "add the port to the gateway's Service, or name one that it has", "istio/istio#7242", GatewayPortsNobodyOffers,
       true, "", "1.20"},
      {"IST0162", "GatewayPortNotDefinedOnService", Level::kWarning, "a listener without a way to it",
       "add the port to the gateway's Service, or name one that it has", "istio/istio#7242", GatewayPortsNobodyOffers,
       true, "1.20"},
  };
  return *rules;
}

}  // namespace wavetank::check
