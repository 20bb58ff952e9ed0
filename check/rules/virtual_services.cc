// VirtualServices: what they name must be there, and be reached.
#include <algorithm>
#include <map>
#include <set>

#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/json_access.h"
#include "core/model/host_name.h"
#include "core/push/delegates.h"
#include "core/push/push_context.h"
#include "core/push/virtual_service_index.h"
#include "core/validation/istio_object.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "re2/re2.h"

namespace wavetank::check {
namespace {

using config::VirtualService;

template <class Fn>
void EachVirtualService(const Mesh& mesh, Fn fn) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->push == nullptr) continue;
    for (const config::VirtualServiceRef& vs : cluster->configs.VirtualServices()) fn(*cluster, *vs);
  }
}

// Fn(destination, where) for every one that a rule names.
template <class Fn>
void EachDestination(const VirtualService& spec, Fn fn) {
  for (const auto& http : spec.http) {
    for (const auto& route : http.route) fn(route.destination, "http");
    if (http.mirror) fn(*http.mirror, "http mirror");
  }
  for (const auto& tls : spec.tls) {
    for (const auto& route : tls.route) fn(route.destination, "tls");
  }
  for (const auto& tcp : spec.tcp) {
    for (const auto& route : tcp.route) fn(route.destination, "tcp");
  }
}

bool HasSubset(const MeshCluster& cluster, const std::string& host, const std::string& subset) {
  for (const config::DestinationRuleRef& rule : cluster.configs.DestinationRules()) {
    const std::string of = FullHost(rule->spec.host, rule->meta.ns);
    if (of != host && !pilot::HostSubsetOf(host, of)) continue;
    for (const config::Subset& s : rule->spec.subsets) {
      if (s.name == subset) return true;
    }
  }
  return false;
}

// istiod: pkg/config/model ResolveShortnameToFQDN: a name without a dot alone is completed.
void ExplainDots(const MeshCluster& cluster, const std::string& host, Findings& findings) {
  for (const char* rest : {".svc.cluster.local", ".cluster.local"}) {
    if (!KnowsHost(cluster, host + rest)) continue;
    return findings.Explain("istiod completes names without a dot alone", fmt::format("write {}{}", host, rest));
  }
}

void Destinations(const Mesh& mesh, Findings& findings) {
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    std::set<std::string> told;
    EachDestination(vs.spec, [&](const config::Destination& d, const char* where) {
      const std::string host = FullHost(d.host, vs.meta.ns);
      if (d.host.empty()) return;
      if (!KnowsHost(cluster, host)) {
        if (told.insert(host).second) {
          findings.Add(cluster, vs.meta,
                       fmt::format("{} route: host {} is of no service that istiod knows", where, host));
          ExplainDots(cluster, host, findings);
        }
      } else if (!d.subset.empty() && !HasSubset(cluster, host, d.subset) && told.insert(host + d.subset).second) {
        findings.Add(cluster, vs.meta,
                     fmt::format("{} route: subset {} of {} is defined by no DestinationRule", where, d.subset, host));
      }
    });
  });
}

void Gateways(const Mesh& mesh, Findings& findings) {
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    for (const std::string& gateway : vs.spec.gateways) {
      if (gateway == pilot::kMeshGateway) continue;
      const std::string full = pilot::ResolveGatewayName(gateway, vs.meta.ns);
      const auto& all = cluster.configs.Gateways();
      const bool there =
          std::any_of(all.begin(), all.end(), [&](const auto& g) { return g->meta.ns + "/" + g->meta.name == full; });
      if (!there) findings.Add(cluster, vs.meta, fmt::format("gateway {} does not exist", full));
    }
  });
}

bool OfMesh(const VirtualService& spec) {
  return spec.gateways.empty() ||
         std::find(spec.gateways.begin(), spec.gateways.end(), pilot::kMeshGateway) != spec.gateways.end();
}

bool IsPublic(const VirtualService& spec) {
  return spec.export_to.empty() || std::find(spec.export_to.begin(), spec.export_to.end(), "*") != spec.export_to.end();
}

void ConflictingHosts(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    std::map<std::string, const config::TypedConfig<VirtualService>*> first;
    if (!cluster->primary) continue;
    for (const config::VirtualServiceRef& vs : cluster->configs.VirtualServices()) {
      if (!OfMesh(vs->spec) || vs->spec.hosts.empty()) continue;
      for (const std::string& host : vs->spec.hosts) {
        const std::string full = FullHost(host, vs->meta.ns);
        const std::string scope = IsPublic(vs->spec) ? full : vs->meta.ns + "/" + full;
        const auto [it, added] = first.emplace(scope, vs.get());
        if (added) continue;
        findings.Add(*cluster, vs->meta,
                     fmt::format("host {} has rules in {}/{} already: only the older one's count for the mesh", full,
                                 it->second->meta.ns, it->second->meta.name));
      }
    }
  }
}

void PortRequired(const Mesh& mesh, Findings& findings) {
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    EachDestination(vs.spec, [&](const config::Destination& d, const char* where) {
      if (d.port != 0) return;
      const std::string host = FullHost(d.host, vs.meta.ns);
      const pilot::ServiceRef service = ServiceOf(cluster, host);
      if (service == nullptr || service->ports.size() < 2) return;
      findings.Add(cluster, vs.meta,
                   fmt::format("{} route to {}, which has {} ports, names none", where, host, service->ports.size()));
    });
  });
}

void UnknownPort(const Mesh& mesh, Findings& findings) {
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    EachDestination(vs.spec, [&](const config::Destination& d, const char* where) {
      const std::string host = FullHost(d.host, vs.meta.ns);
      const pilot::ServiceRef service = ServiceOf(cluster, host);
      if (d.port == 0 && service != nullptr && service->ports.size() == 1 && OfMesh(vs.spec)) {
        // istiod: pilot/pkg/networking/core/v1alpha3/httproute.go looks destinations up among the services of the port
        // that is asked for: one that lacks it gets that port's number all the same.
        for (const std::string& name : vs.spec.hosts) {
          const pilot::ServiceRef asked = ServiceOf(cluster, FullHost(name, vs.meta.ns));
          if (asked == nullptr || asked->ports.size() != 1 || service->FindPort(asked->ports[0].port) != nullptr)
            continue;
          findings.Add(
              cluster, vs.meta,
              fmt::format("{} route: {} is asked for at port {}, {} has port {} alone, and the route names none", where,
                          name, asked->ports[0].port, host, service->ports[0].port));
          return findings.Explain("istiod takes the port that the client asked for",
                                  fmt::format("name it: port: {{number: {}}}", service->ports[0].port));
        }
      }
      if (d.port == 0 || service == nullptr || service->FindPort(static_cast<int>(d.port)) != nullptr) return;
      findings.Add(cluster, vs.meta, fmt::format("{} route: {} has no port {}", where, host, d.port));
    });
  });
}

void Regexes(const Mesh& mesh, Findings& findings) {
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    const auto look = [&](const config::StringMatch& match, const std::string& field) {
      if (match.kind != config::StringMatch::Kind::kRegex) return;
      const re2::RE2 regex(match.value, re2::RE2::Quiet);
      if (!regex.ok())
        findings.Add(cluster, vs.meta,
                     fmt::format("{}: regular expression '{}': {}", field, match.value, regex.error()));
    };
    for (const auto& http : vs.spec.http) {
      for (const auto& match : http.match) {
        if (match.uri) look(*match.uri, "uri");
        if (match.authority) look(*match.authority, "authority");
        if (match.method) look(*match.method, "method");
        for (const auto& [name, value] : match.headers) look(value, "header " + name);
        for (const auto& [name, value] : match.query_params) look(value, "query parameter " + name);
      }
    }
  });
}

void UnreachableRules(const Mesh& mesh, Findings& findings) {
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    const auto& http = vs.spec.http;
    for (size_t i = 0; i < http.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const bool all = http[j].match.empty();
        if (!all && (http[i].match.empty() || http[i].match != http[j].match)) continue;
        findings.Add(cluster, vs.meta,
                     fmt::format("http rule {} is never used: rule {} {}", i + 1, j + 1,
                                 all ? "before it takes every request" : "before it has the same match"));
        break;
      }
    }
  });
}

// What istiod's webhook says of a VirtualService's rules and matches that come too late. istiod:
// pkg/config/analysis/analyzers/schema/validation.go makes findings of these warnings, too.
void TellWarnings(const Mesh& mesh, std::string_view sign, std::string_view code, Findings& findings) {
  for (const BroughtObject& b : mesh.brought()) {
    if (Text(b.object, "kind") != "VirtualService") continue;
    const validation::Verdict verdict = validation::Judge(b.object, mesh.world().profile());
    if (!verdict.denied.empty() || findings.Has(code, b.cluster, NameOf(b))) continue;
    for (const std::string& warning : verdict.warnings) {
      if (warning.find(sign) != warning.npos) findings.Add(b.cluster, NameOf(b), {b.file, b.line}, warning);
    }
  }
}

void RulesNeverUsed(const Mesh& mesh, Findings& findings) {
  UnreachableRules(mesh, findings);
  TellWarnings(mesh, " not used (", "IST0130", findings);
}

void MatchesNeverUsed(const Mesh& mesh, Findings& findings) {
  TellWarnings(mesh, " is not used (duplicate", "IST0131", findings);
}

// A gateway's pods read no tokens. istiod: pkg/config/analysis/analyzers/virtualservice/jwtclaimroute.go
void ClaimsNobodyReads(const Mesh& mesh, Findings& findings) {
  constexpr std::string_view kClaims = "@request.auth.claims";
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    if (cluster.push == nullptr) return;
    std::string asked;
    for (const auto& http : vs.spec.http) {
      for (const auto& match : http.match) {
        for (const auto* headers : {&match.headers, &match.without_headers}) {
          for (const auto& [name, value] : *headers) {
            if (name.starts_with(kClaims)) asked = name;
          }
        }
      }
    }
    if (asked.empty()) return;
    for (const std::string& name : vs.spec.gateways) {
      const std::string full = pilot::ResolveGatewayName(name, vs.meta.ns);
      for (const config::GatewayRef& gateway : cluster.configs.Gateways()) {
        if (gateway->meta.ns + "/" + gateway->meta.name != full) continue;
        for (const sim::PodProcess* pod : mesh.ServedPods(cluster)) {
          const kube::Object& object = *pod->pod();
          if (!pod->router() || !Selects(gateway->spec.selector, object.meta.labels)) continue;
          if (!cluster.push->authn().GetJwtPoliciesForWorkload(object.meta.ns, object.meta.labels).empty()) continue;
          return findings.Add(
              cluster, vs.meta,
              fmt::format("matches {}, and no RequestAuthentication reads tokens for {}.{} of Gateway {}", asked,
                          pod->app(), object.meta.ns, full));
        }
      }
    }
  });
}

// Rules of the mesh's clients hold for them alone. istiod:
// pkg/config/analysis/analyzers/virtualservice/destinationhosts.go, analyzeSubset
void SubsetsOfMeshAlone(const Mesh& mesh, Findings& findings) {
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    const auto& gateways = vs.spec.gateways;
    if (std::all_of(gateways.begin(), gateways.end(), [](const auto& name) { return name == pilot::kMeshGateway; }))
      return;
    for (const auto& http : vs.spec.http) {
      for (const auto& route : http.route) {
        if (!route.destination.subset.empty()) continue;
        const std::string host = FullHost(route.destination.host, vs.meta.ns);
        for (const config::VirtualServiceRef& other : cluster.configs.VirtualServices()) {
          if (!OfMesh(other->spec)) continue;
          const auto& hosts = other->spec.hosts;
          const bool its = std::any_of(hosts.begin(), hosts.end(),
                                       [&](const std::string& each) { return FullHost(each, other->meta.ns) == host; });
          const bool subset = std::any_of(other->spec.http.begin(), other->spec.http.end(), [&](const auto& rule) {
            return std::any_of(rule.route.begin(), rule.route.end(), [&](const auto& to) {
              return !to.destination.subset.empty() && FullHost(to.destination.host, other->meta.ns) == host;
            });
          });
          if (!its || !subset) continue;
          return findings.Add(
              cluster, vs.meta,
              fmt::format("routes to {} as a whole: the subsets of VirtualService {}/{} are for clients "
                          "in the mesh",
                          host, other->meta.ns, other->meta.name));
        }
      }
    }
  });
}

void StarsAreLiteral(const Mesh& mesh, Findings& findings) {
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    for (const auto& http : vs.spec.http) {
      for (const auto& match : http.match) {
        const auto look = [&](const config::StringMatch& m, const std::string& field) {
          if (m.kind == config::StringMatch::Kind::kRegex || m.value.find('*') == std::string::npos) return;
          findings.Add(cluster, vs.meta,
                       fmt::format("{} {} '{}': the star is a letter like others, which no request has there", field,
                                   m.kind == config::StringMatch::Kind::kPrefix ? "prefix" : "exact", m.value));
        };
        if (match.uri) look(*match.uri, "uri");
        if (match.authority) look(*match.authority, "authority");
        for (const auto& [name, value] : match.headers) look(value, "header " + name);
      }
    }
  });
}

bool IsFor(const std::vector<std::string>& gateways, std::string_view gateway) {
  return std::find(gateways.begin(), gateways.end(), gateway) != gateways.end();
}

// What no request has there. envoy: source/common/router/config_impl.cc: a path begins with a slash and is compared
// without its query; methods are as RFC 9110 writes them. istiod: pilot/pkg/networking/core/v1alpha3/route/route.go,
// sourceMatchHTTP and matches by port: of rules for another gateway or port there is no route.
void MatchesNeverHappen(const Mesh& mesh, Findings& findings) {
  using Kind = config::StringMatch::Kind;
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    std::vector<std::string> bound;
    for (const std::string& gateway : vs.spec.gateways)
      bound.push_back(gateway == pilot::kMeshGateway ? gateway : pilot::ResolveGatewayName(gateway, vs.meta.ns));
    if (bound.empty()) bound.emplace_back(pilot::kMeshGateway);
    std::set<int> ports;  // of its hosts; none: not all are known
    for (const std::string& host : vs.spec.hosts) {
      const pilot::ServiceRef service = ServiceOf(cluster, FullHost(host, vs.meta.ns));
      if (service == nullptr) {
        ports.clear();
        break;
      }
      for (const pilot::Port& port : service->ports) ports.insert(port.port);
    }
    const auto look_at_port = [&](uint32_t port, const char* kind) {
      if (port == 0 || ports.empty() || bound.size() != 1 || bound[0] != pilot::kMeshGateway ||
          ports.contains(static_cast<int>(port)))
        return;
      findings.Add(cluster, vs.meta,
                   fmt::format("{} match of port {}: its hosts have {}", kind, port, fmt::join(ports, ", ")));
      findings.Explain("a match's port is the Service's, which the client asks for",
                       fmt::format("write {}", *ports.begin()));
    };
    for (const auto& tls : vs.spec.tls) {
      for (const auto& match : tls.match) look_at_port(match.port, "tls");
    }
    for (const auto& tcp : vs.spec.tcp) {
      for (const auto& match : tcp.match) look_at_port(match.port, "tcp");
    }
    const bool of_80 = ports.empty() || ports.contains(80) || ports.contains(443);
    for (const auto& http : vs.spec.http) {
      for (const config::StringMatch& origin :
           http.cors_policy ? http.cors_policy->allow_origins : std::vector<config::StringMatch>()) {
        // fetch.spec.whatwg.org: an origin is a scheme, a host and a port that is not the scheme's own; or null.
        const size_t scheme = origin.value.find("://");
        const bool bare = scheme == std::string::npos && origin.kind != Kind::kRegex && origin.value != "null" &&
                          origin.value != "*" && !origin.value.empty();
        const bool path = scheme != std::string::npos && origin.kind == Kind::kExact &&
                          origin.value.find('/', scheme + 3) != std::string::npos;
        if (!bare && !path) continue;
        findings.Add(cluster, vs.meta,
                     fmt::format("corsPolicy.allowOrigins '{}': an origin is a scheme and a host, {}", origin.value,
                                 bare ? "and this has no scheme" : "without a path"));
        findings.Explain("what never matches allows no origin, and browsers refuse the answer",
                         fmt::format("write exact: {}{}", bare ? "https://" : "",
                                     bare ? origin.value : origin.value.substr(0, origin.value.find('/', scheme + 3))));
      }
      for (const auto& match : http.match) {
        look_at_port(match.port, "http");
        // envoy: :authority is the Host header, which names every port but its scheme's own (RFC 9110, 7.2).
        if (bound.size() == 1 && bound[0] == pilot::kMeshGateway && !of_80 && match.authority &&
            match.authority->kind == Kind::kExact && match.authority->value.find(':') == std::string::npos) {
          findings.Add(cluster, vs.meta,
                       fmt::format("authority exact '{}': clients of port {} send {}:{}", match.authority->value,
                                   *ports.begin(), match.authority->value, *ports.begin()));
          findings.Explain("the Host header has the port, unless it is its scheme's own",
                           fmt::format("write exact: {}:{}, or a prefix", match.authority->value, *ports.begin()));
        }
        const auto& uri = match.uri;
        const char* how = uri && uri->kind == Kind::kPrefix ? "prefix" : "exact";
        if (uri && uri->kind != Kind::kRegex && !uri->value.empty() && !uri->value.starts_with('/')) {
          findings.Add(cluster, vs.meta,
                       fmt::format("uri {} '{}': a path begins with a slash, so no request matches", how, uri->value));
        } else if (uri && uri->kind != Kind::kRegex && uri->value.find('?') != std::string::npos) {
          findings.Add(
              cluster, vs.meta,
              fmt::format("uri {} '{}': a path is compared without what follows its question mark", how, uri->value));
          findings.Explain({}, "match the path as uri, and what follows by queryParams");
        }
        const auto& method = match.method;
        const bool small = method && method->kind != Kind::kRegex &&
                           std::any_of(method->value.begin(), method->value.end(),
                                       [](char letter) { return letter >= 'a' && letter <= 'z'; });
        if (small)
          findings.Add(cluster, vs.meta, fmt::format("method '{}': methods have capital letters", method->value));
        const auto& scheme = match.scheme;
        const bool capital = scheme && scheme->kind != Kind::kRegex &&
                             std::any_of(scheme->value.begin(), scheme->value.end(),
                                         [](char letter) { return letter >= 'A' && letter <= 'Z'; });
        if (capital)
          findings.Add(cluster, vs.meta, fmt::format("scheme '{}': schemes have small letters", scheme->value));
        const bool mesh_alone = bound.size() == 1 && bound[0] == pilot::kMeshGateway;
        if (mesh_alone && match.scheme && match.scheme->kind == Kind::kExact && match.scheme->value == "https") {
          findings.Add(cluster, vs.meta,
                       "scheme 'https': a sidecar reads requests in clear text alone, whose scheme is http");
          findings.Explain("what an application sends as TLS has no routes of HTTP", "leave scheme out");
        }
        std::vector<std::string> of;
        for (const std::string& gateway : match.gateways)
          of.push_back(gateway == pilot::kMeshGateway ? gateway : pilot::ResolveGatewayName(gateway, vs.meta.ns));
        const bool held =
            of.empty() || std::any_of(of.begin(), of.end(), [&](const auto& g) { return IsFor(bound, g); });
        if (held) continue;
        findings.Add(cluster, vs.meta,
                     fmt::format("a match is for gateways {}, and the VirtualService is bound to {}",
                                 fmt::join(of, ", "), fmt::join(bound, ", ")));
        findings.Explain("a match's gateways choose among those of spec.gateways",
                         "name the gateway in spec.gateways, too (mesh: sidecars)");
      }
    }
  });
}

// envoy: api/envoy/type/matcher/v3/regex.proto: a regular expression has to match the whole text. Who begins it with ^
// and ends it with a letter mostly means a beginning.
void RegexesMatchWholes(const Mesh& mesh, Findings& findings) {
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    const auto look = [&](const std::optional<config::StringMatch>& match, const std::string& field) {
      if (!match || match->kind != config::StringMatch::Kind::kRegex) return;
      const std::string& text = match->value;
      const std::string rest = text.starts_with('^') ? text.substr(1) : text;
      const bool plain = rest.find_first_of("\\^$*+?.()|[]{}") == std::string::npos && !rest.empty();
      if (!plain) return;
      findings.Add(cluster, vs.meta, fmt::format("{} regex '{}' matches '{}' alone", field, text, rest));
      findings.Explain("a regular expression has to match the whole text",
                       fmt::format("write prefix: {0}, or regex: {0}.*; exact: {0} where that is meant", rest));
    };
    for (const auto& http : vs.spec.http) {
      for (const auto& match : http.match) {
        look(match.uri, "uri");
        look(match.authority, "authority");
        for (const auto& [name, value] : match.headers) look(value, "header " + name);
      }
    }
  });
}

// envoy: source/common/router/config_impl.cc, finalizePathHeader: what a prefix matched is replaced, and no more.
// istiod 1.18.2: pilot/pkg/networking/core/v1alpha3/route/route.go: the rewrite is passed on as it is.
void RewritesLeaveSlashes(const Mesh& mesh, Findings& findings) {
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    for (const auto& http : vs.spec.http) {
      if (!http.rewrite || http.rewrite->uri.empty() || http.rewrite->uri_regex) continue;
      const std::string& to = http.rewrite->uri;
      for (const auto& match : http.match) {
        if (!match.uri || match.uri->kind != config::StringMatch::Kind::kPrefix || match.uri->value.size() < 2)
          continue;
        const std::string& from = match.uri->value;
        if (from.ends_with('/') == to.ends_with('/')) continue;
        const bool doubles = to.ends_with('/');
        findings.Add(cluster, vs.meta,
                     fmt::format("prefix '{}' is rewritten to '{}': {}{}x becomes {}x", from, to, from,
                                 doubles ? "/" : "", doubles ? to + "/" : to));
        findings.Explain("the prefix alone is replaced, and what follows it stays",
                         doubles ? fmt::format("match prefix {0}/ for that rewrite, and {0} by a rule of its own", from)
                                 : fmt::format("rewrite to {}/", to));
      }
    }
  });
}

// A name that only clients within the mesh could resolve, and nobody has; the client is told of it all the same.
void RedirectsToNobody(const Mesh& mesh, Findings& findings) {
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    for (const auto& http : vs.spec.http) {
      if (!http.redirect || http.redirect->authority.empty()) continue;
      const std::string& authority = http.redirect->authority;
      const std::string host = authority.substr(0, authority.rfind(':'));
      const auto known = [&](const std::string& full) { return KnowsHost(cluster, full); };
      const size_t dot = host.find('.');
      const std::string ns =
          dot == std::string::npos ? vs.meta.ns : host.substr(dot + 1, host.find('.', dot + 1) - dot - 1);
      const bool inside =
          dot == std::string::npos || host.ends_with(".svc") || host.ends_with(".cluster.local") ||
          (host.find('.', dot + 1) == std::string::npos && mesh.Get(cluster, "Namespace", "", ns) != nullptr);
      const std::string full = FullHost(host.substr(0, dot), ns);
      if (!inside || known(host) || known(full)) continue;
      findings.Add(cluster, vs.meta, fmt::format("redirects to {}, which is no host that istiod knows", authority));
    }
  });
}

// A client that follows the answer asks the same again. An authority without a port is port 80's.
void RedirectsToItself(const Mesh& mesh, Findings& findings) {
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    for (const auto& http : vs.spec.http) {
      if (!http.redirect || http.redirect->port || http.redirect->derive_port) continue;
      const config::HttpRedirect& to = *http.redirect;
      const size_t colon = to.authority.rfind(':');
      const std::string host = to.authority.substr(0, colon);
      int port = 80;
      if (colon != std::string::npos && !absl::SimpleAtoi(to.authority.substr(colon + 1), &port)) continue;
      const bool same_host =
          to.authority.empty() || std::any_of(vs.spec.hosts.begin(), vs.spec.hosts.end(), [&](const auto& own) {
            const std::string full = FullHost(own, vs.meta.ns);
            const pilot::ServiceRef service = ServiceOf(cluster, full);
            return (full == host || full.starts_with(host + ".")) && service != nullptr &&
                   service->FindPort(port) != nullptr;
          });
      const bool same_path =
          to.uri.empty() || std::any_of(http.match.begin(), http.match.end(), [&](const auto& match) {
            return match.uri && match.uri->kind != config::StringMatch::Kind::kRegex && match.uri->value == to.uri;
          });
      if (!same_host || !same_path || (!to.scheme.empty() && to.scheme != "http")) continue;
      findings.Add(cluster, vs.meta,
                   fmt::format("redirects to '{}{}', where the request came from", to.authority, to.uri));
    }
  });
}

// A gateway between networks takes TLS with an SNI of its own making, which no route of a client's makes.
void RoutesToNetworkGateway(const Mesh& mesh, Findings& findings) {
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    std::set<std::string> told;
    EachDestination(vs.spec, [&](const config::Destination& d, const char* where) {
      const std::string host = FullHost(d.host, vs.meta.ns);
      for (const kube::ObjectRef& service : NetworkGatewayServices(mesh, cluster)) {
        if (FullHost(service->meta.name, service->meta.ns) != host || !told.insert(host).second) continue;
        findings.Add(cluster, vs.meta,
                     fmt::format("{} route: {} is a gateway between networks, which resets what comes without the SNI "
                                 "that istiod gives endpoints behind it",
                                 where, host));
      }
    });
  });
}

void MirrorsToItself(const Mesh& mesh, Findings& findings) {
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    for (const auto& http : vs.spec.http) {
      if (!http.mirror || http.route.size() != 1) continue;
      const config::Destination& to = http.route.front().destination;
      if (FullHost(to.host, vs.meta.ns) != FullHost(http.mirror->host, vs.meta.ns) ||
          to.subset != http.mirror->subset || to.port != http.mirror->port)
        continue;
      findings.Add(cluster, vs.meta,
                   fmt::format("mirrors to {}, where the requests go already: it is called twice for each", to.host));
    }
  });
}

void HostsOfGateways(const Mesh& mesh, Findings& findings) {
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    for (const std::string& name : vs.spec.gateways) {
      const std::string full = pilot::ResolveGatewayName(name, vs.meta.ns);
      for (const config::GatewayRef& gateway : cluster.configs.Gateways()) {
        if (gateway->meta.ns + "/" + gateway->meta.name != full) continue;
        for (const std::string& host : vs.spec.hosts) {
          const bool served =
              std::any_of(gateway->spec.servers.begin(), gateway->spec.servers.end(), [&](const auto& server) {
                const pilot::HostList hosts = pilot::HostsForNamespace(server.hosts, vs.meta.ns);
                return std::any_of(hosts.begin(), hosts.end(),
                                   [&](std::string_view h) { return pilot::HostMatches(h, host); });
              });
          if (!served) findings.Add(cluster, vs.meta, fmt::format("host {} is of no server of Gateway {}", host, full));
        }
      }
    }
  });
}

void UnknownHosts(const Mesh& mesh, Findings& findings) {
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    if (!OfMesh(vs.spec)) return;
    for (const std::string& host : vs.spec.hosts) {
      const std::string full = FullHost(host, vs.meta.ns);
      if (KnowsHost(cluster, full)) continue;
      findings.Add(cluster, vs.meta,
                   fmt::format("host {} is of no service that istiod knows: no request of the mesh has it", full));
      ExplainDots(cluster, full, findings);
    }
  });
}

// envoy: source/extensions/filters/http/cors/cors_filter.cc, isOriginAllowed: a matcher that takes "*" takes every
// origin, and the answer names the one that asked, which browsers believe.
void AnyOriginWithCredentials(const Mesh& mesh, Findings& findings) {
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    for (size_t i = 0; i < vs.spec.http.size(); ++i) {
      const auto& cors = vs.spec.http[i].cors_policy;
      if (!cors || !cors->allow_credentials.value_or(false)) continue;
      const auto any = [](const auto& origin) {
        return (origin.kind == config::StringMatch::Kind::kExact && origin.value == "*") ||
               (origin.kind == config::StringMatch::Kind::kRegex && (origin.value == ".*" || origin.value == "*"));
      };
      const bool old = std::find(cors->allow_origin.begin(), cors->allow_origin.end(), "*") != cors->allow_origin.end();
      if (!old && !std::any_of(cors->allow_origins.begin(), cors->allow_origins.end(), any)) continue;
      findings.Add(
          cluster, vs.meta,
          fmt::format("http rule {}: corsPolicy lets every origin in, with credentials: any page may ask in the "
                      "name of who looks at it",
                      i + 1));
    }
  });
}

void FaultsLeft(const Mesh& mesh, Findings& findings) {
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    for (const auto& http : vs.spec.http) {
      if (!http.fault) continue;
      if (http.fault->abort)
        findings.Add(cluster, vs.meta,
                     fmt::format("fault.abort: {} % of requests are refused on purpose",
                                 http.fault->abort->percentage.value_or(100)));
      if (http.fault->delay)
        findings.Add(cluster, vs.meta,
                     fmt::format("fault.delay: {} % of requests are kept waiting on purpose",
                                 http.fault->delay->percentage.value_or(
                                     http.fault->delay->percent == 0 ? 100 : http.fault->delay->percent)));
    }
    for (size_t i = 0; i < vs.spec.http.size(); ++i) {
      const auto& http = vs.spec.http[i];
      if (!http.direct_response || !OfMesh(vs.spec) || http.direct_response->status < 400) continue;
      findings.Add(
          cluster, vs.meta,
          fmt::format("directResponse: {} is answered {} by the client's own proxy, and no application is asked",
                      http.match.empty() ? "every request that comes to rule " + std::to_string(i + 1)
                                         : "what rule " + std::to_string(i + 1) + " matches",
                      http.direct_response->status));
      findings.Explain({}, "remove directResponse, and route to the Service; silence this if it is meant");
    }
  });
}

void Delegates(const Mesh& mesh, Findings& findings) {
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    for (const auto& http : vs.spec.http) {
      if (!http.delegate) continue;
      const std::string ns = http.delegate->ns.empty() ? vs.meta.ns : http.delegate->ns;
      const auto& all = cluster.configs.VirtualServices();
      const bool there = std::any_of(all.begin(), all.end(), [&](const auto& other) {
        return other->meta.ns == ns && other->meta.name == http.delegate->name && other->spec.hosts.empty();
      });
      if (!there)
        findings.Add(cluster, vs.meta,
                     fmt::format("delegates to {}/{}, which is no VirtualService without hosts: the route is left out",
                                 ns, http.delegate->name));
      // istiod: pilot/pkg/model/virtualservice.go, mergeHTTPRoute: it says so in its debug log alone.
      for (const auto& other : all) {
        if (other->meta.ns != ns || other->meta.name != http.delegate->name || !other->spec.hosts.empty()) continue;
        const size_t kept = pilot::MergeHttpRoutes(http, other->spec.http).size();
        if (kept == other->spec.http.size()) continue;
        findings.Add(cluster, vs.meta,
                     fmt::format("of {} {} of delegate {}/{} {} left out: {} matches lie outside of what is delegated",
                                 other->spec.http.size(), other->spec.http.size() == 1 ? "route" : "routes", ns,
                                 http.delegate->name,
                                 fmt::format("{} {}", other->spec.http.size() - kept,
                                             other->spec.http.size() - kept == 1 ? "is" : "are"),
                                 other->spec.http.size() - kept == 1 ? "its" : "their"));
        findings.Explain("a delegate's match has to lie within one of its root's, and istiod drops it in silence",
                         "widen the root's match, or narrow the delegate's");
      }
    }
  });
}

void SourcesUnknown(const Mesh& mesh, Findings& findings) {
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    const auto pods = mesh.ServedPods(cluster);
    const auto look = [&](const auto& match) {
      if (match.source_labels.empty() && match.source_namespace.empty()) return;
      const bool any = std::any_of(pods.begin(), pods.end(), [&](const auto* pod) {
        return (match.source_namespace.empty() || pod->pod()->meta.ns == match.source_namespace) &&
               Selects(match.source_labels, pod->pod()->meta.labels);
      });
      if (any) return;
      findings.Add(cluster, vs.meta,
                   fmt::format("a match is for clients with {}{}, and no pod that its istiod serves is one",
                               match.source_labels.empty() ? "" : "labels " + LabelText(match.source_labels),
                               match.source_namespace.empty()
                                   ? ""
                                   : fmt::format("{}namespace {}", match.source_labels.empty() ? "" : " in ",
                                                 match.source_namespace)));
    };
    for (const auto& http : vs.spec.http) std::for_each(http.match.begin(), http.match.end(), look);
    for (const auto& tls : vs.spec.tls) std::for_each(tls.match.begin(), tls.match.end(), look);
    for (const auto& tcp : vs.spec.tcp) std::for_each(tcp.match.begin(), tcp.match.end(), look);
  });
}

void TriesBeyondTimeout(const Mesh& mesh, Findings& findings) {
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    for (const auto& http : vs.spec.http) {
      if (!http.timeout || *http.timeout == Duration::zero() || !http.retries || !http.retries->per_try_timeout)
        continue;
      if (http.retries->attempts == 0 || *http.retries->per_try_timeout < *http.timeout) continue;
      findings.Add(cluster, vs.meta,
                   "retries.perTryTimeout is no shorter than timeout: the first attempt takes all the time, and none "
                   "follows");
    }
  });
}

// istiod: pilot/pkg/networking/core/v1alpha3: http rules make routes of HTTP ports, tls and tcp rules filter chains of
// the others; ports without a known protocol have both.
void RulesOfAnotherProtocol(const Mesh& mesh, Findings& findings) {
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    if (!OfMesh(vs.spec)) return;
    for (const std::string& host : vs.spec.hosts) {
      const pilot::ServiceRef service = ServiceOf(cluster, FullHost(host, vs.meta.ns));
      if (service == nullptr || service->ports.empty()) continue;
      bool http = false, tls = false, tcp = false;
      std::string ports;
      for (const pilot::Port& port : service->ports) {
        const bool any = pilot::IsUnsupported(port.protocol);
        http = http || any || pilot::IsHttp(port.protocol);
        tls = tls || any || pilot::IsTls(port.protocol);
        tcp = tcp || any || pilot::IsTcp(port.protocol);
        ports += fmt::format("{}{} {}", ports.empty() ? "" : ", ", port.port, pilot::ProtocolName(port.protocol));
      }
      const auto tell = [&](const char* kind, size_t rules, bool fits) {
        if (rules == 0 || fits) return;
        findings.Add(cluster, vs.meta,
                     fmt::format("its {} {} rule{} for {} hold{} for no port of it ({})", rules, kind,
                                 rules == 1 ? "" : "s", service->hostname, rules == 1 ? "s" : "", ports));
      };
      tell("http", vs.spec.http.size(), http);
      tell("tls", vs.spec.tls.size(), tls);
      tell("tcp", vs.spec.tcp.size(), tcp);
    }
  });
}

// Routes of a Gateway come of rules of its servers' own kind. istiod: pilot/pkg/networking/core/v1alpha3/gateway.go:
// http rules are for what a server reads as HTTP, tls rules for what it passes on by SNI, tcp rules for the rest. One
// of AUTO_PASSTHROUGH makes filter chains of the Services, and asks no VirtualService.
void RulesOfAnotherServer(const Mesh& mesh, Findings& findings) {
  using Mode = config::ServerTlsSettings::Mode;
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    bool http = OfMesh(vs.spec), tls = http, tcp = http, all_known = true;
    std::string servers;
    for (const std::string& name : vs.spec.gateways) {
      if (name == pilot::kMeshGateway) continue;
      const std::string full = pilot::ResolveGatewayName(name, vs.meta.ns);
      const auto& gateways = cluster.configs.Gateways();
      const auto gateway = std::find_if(gateways.begin(), gateways.end(),
                                        [&](const auto& g) { return g->meta.ns + "/" + g->meta.name == full; });
      if (gateway == gateways.end()) {
        all_known = false;  // WT501
        continue;
      }
      for (const config::Server& server : (*gateway)->spec.servers) {
        const bool by_itself = server.tls && server.tls->mode == Mode::kAutoPassthrough;
        const bool passes = config::IsPassThroughServer(server);
        http = http || config::IsHttpServer(server);
        tls = tls || (passes && !by_itself);
        tcp = tcp || (!config::IsHttpServer(server) && !passes);
        servers += fmt::format("{}{} {}{}", servers.empty() ? "" : ", ", server.port.number, server.port.protocol,
                               by_itself ? " AUTO_PASSTHROUGH"
                               : passes  ? " PASSTHROUGH"
                                         : "");
      }
    }
    const auto tell = [&](const char* kind, size_t rules, bool fits) {
      if (rules == 0 || fits || !all_known || servers.empty()) return;
      findings.Add(cluster, vs.meta,
                   fmt::format("its {} {} rule{} hold{} for no server of its gateways ({})", rules, kind,
                               rules == 1 ? "" : "s", rules == 1 ? "s" : "", servers));
      findings.Explain("a gateway's server takes rules of its own kind alone, one of AUTO_PASSTHROUGH none",
                       "name a Gateway with such a server, or add `mesh` to gateways if sidecars are meant");
    };
    tell("http", vs.spec.http.size(), http);
    tell("tls", vs.spec.tls.size(), tls);
    tell("tcp", vs.spec.tcp.size(), tcp);
  });
}

void RulesWithoutEffect(const Mesh& mesh, Findings& findings) {
  RulesOfAnotherProtocol(mesh, findings);
  RulesOfAnotherServer(mesh, findings);
}

bool TakesAll(const config::StringMatch& match) {
  return (match.kind == config::StringMatch::Kind::kPrefix && match.value == "/") ||
         (match.kind == config::StringMatch::Kind::kRegex && match.value == ".*");
}

// Nothing but a port, if that, is asked of a request.
bool TakesAll(const config::HttpMatchRequest& match) {
  return (!match.uri || TakesAll(*match.uri)) && !match.scheme && !match.method && !match.authority &&
         match.headers.empty() && match.without_headers.empty() && match.query_params.empty() &&
         match.source_labels.empty() && match.source_namespace.empty();
}

// Of two matches that ask for nothing else, one wants headers that the other does not want.
bool Complement(const config::HttpMatchRequest& a, const config::HttpMatchRequest& b) {
  config::HttpMatchRequest bare_a = a, bare_b = b;
  bare_a.headers.clear();
  bare_b.without_headers.clear();
  return a.headers.size() == 1 && a.headers == b.without_headers && TakesAll(bare_a) && TakesAll(bare_b);
}

// Of clients in the mesh. At a gateway a host whose other paths are closed is what most people want.
void NoDefaultRoute(const Mesh& mesh, Findings& findings) {
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    if (!OfMesh(vs.spec) || vs.spec.http.empty()) return;
    std::vector<const config::HttpMatchRequest*> matches;
    for (const auto& http : vs.spec.http) {
      if (http.match.empty()) return;
      for (const auto& match : http.match) {
        const auto& of = match.gateways;
        if (of.empty() || std::find(of.begin(), of.end(), pilot::kMeshGateway) != of.end()) matches.push_back(&match);
      }
    }
    for (const auto* a : matches) {
      for (const auto* b : matches) {
        if (Complement(*a, *b)) return;
      }
    }
    for (const std::string& host : vs.spec.hosts) {
      const pilot::ServiceRef service = ServiceOf(cluster, FullHost(host, vs.meta.ns));
      if (service == nullptr) continue;
      for (const pilot::Port& port : service->ports) {
        if (!pilot::IsHttp(port.protocol) && !pilot::IsUnsupported(port.protocol)) continue;
        const bool taken = std::any_of(matches.begin(), matches.end(), [&](const auto* match) {
          return (match->port == 0 || static_cast<int>(match->port) == port.port) && TakesAll(*match);
        });
        if (taken) continue;
        findings.Add(cluster, vs.meta,
                     fmt::format("requests to {}:{} that none of its {} http rules matches have no route",
                                 service->hostname, port.port, vs.spec.http.size()));
        break;
      }
    }
  });
}

void RoutesOutOfSight(const Mesh& mesh, Findings& findings) {
  EachVirtualService(mesh, [&](const MeshCluster& cluster, const auto& vs) {
    if (vs.spec.hosts.empty()) return;  // a delegate
    // istiod: push_context.go, VirtualServicesForGateway: a gateway's pods see what their own namespace sees.
    for (const std::string& name : vs.spec.gateways) {
      const std::string full = pilot::ResolveGatewayName(name, vs.meta.ns);
      for (const config::GatewayRef& gateway : cluster.configs.Gateways()) {
        if (gateway->meta.ns + "/" + gateway->meta.name != full || IsPublic(vs.spec)) continue;
        std::set<std::string> of;  // namespaces of its pods
        for (const sim::PodProcess* pod : mesh.ServedPods(cluster)) {
          if (pod->router() && Selects(gateway->spec.selector, pod->pod()->meta.labels)) of.insert(pod->pod()->meta.ns);
        }
        const bool seen = std::any_of(of.begin(), of.end(), [&](const std::string& ns) {
          return std::any_of(vs.spec.export_to.begin(), vs.spec.export_to.end(),
                             [&](const std::string& to) { return to == ns || (to == "." && ns == vs.meta.ns); });
        });
        if (of.empty() || seen) continue;
        findings.Add(cluster, vs.meta,
                     fmt::format("exportTo {}: the pods of Gateway {} are in {}, and do not see it",
                                 fmt::join(vs.spec.export_to, ", "), full, fmt::join(of, ", ")));
        findings.Explain("a gateway answers 404 for hosts whose rules it is not shown",
                         fmt::format("export it to {}, too", *of.begin()));
      }
    }
    if (SeenBySomeone(mesh, cluster, vs.spec.export_to, vs.meta.ns)) return;
    findings.Add(cluster, vs.meta,
                 fmt::format("exportTo {}: no proxy there that could route by it", fmt::join(vs.spec.export_to, ", ")));
  });
}

}  // namespace

const std::vector<Rule>& VirtualServiceRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT749", "AnyOriginWithCredentials", Level::kWarning,
       "browsers send cookies along to an origin that is named back", "name the origins, or leave allowCredentials out",
       "istio/istio#59026", AnyOriginWithCredentials, false},
      {"WT504", "FaultInjected", Level::kWarning, "what was injected for a test stays until it is taken out",
       "remove fault from the route", "", FaultsLeft},
      {"WT505", "DelegateNotFound", Level::kError, "a delegate that is missing takes its route with it",
       "create the VirtualService, without hosts, or mend the name", "istio/istio#33530", Delegates},
      {"WT506", "RouteForNoClient", Level::kWarning, "the rule never applies", "mend sourceLabels or sourceNamespace",
       "istio/istio#51314", SourcesUnknown},
      {"WT507", "RetriesNeverHappen", Level::kWarning, "the timeout holds for all attempts together",
       "make perTryTimeout shorter than timeout divided by the attempts", "istio/istio#21137", TriesBeyondTimeout},
      {"WT508", "RulesOfAnotherProtocol", Level::kWarning, "rules hold for ports of their own protocol alone",
       "name the Service's port for its protocol, or write the rules as http, tls or tcp", "istio/istio#28993",
       RulesWithoutEffect},
      {"WT509", "NoDefaultRoute", Level::kWarning, "what no rule matches is answered 404",
       "end the rules with a route without match; silence this if the rest is to be refused", "istio/istio#17140",
       NoDefaultRoute},
      {"IST0101", "ReferencedResourceNotFound", Level::kError, "requests of such a route are answered with 503",
       "name a Service that is there, or define the subset in a DestinationRule", "istio/istio#40673", Destinations},
      {"WT501", "GatewayNotFound", Level::kError, "the routes hold nowhere", "name a Gateway that is there",
       "istio/istio#11131, #7018", Gateways},
      {"IST0109", "ConflictingMeshGatewayVirtualServiceHosts", Level::kError,
       "istiod does not merge VirtualServices of the mesh gateway", "put their rules into one",
       "istio/istio#36621, #22997", ConflictingHosts},
      {"IST0112", "VirtualServiceDestinationPortSelectorRequired", Level::kError,
       "istiod cannot tell which port is meant", "name the destination's port", "istio/istio#5514", PortRequired},
      {"WT503", "DestinationPortNotFound", Level::kError,
       "there is no cluster of that port: requests are answered with 503", "name one of the Service's ports",
       "istio/istio#15226", UnknownPort},
      {"IST0122", "InvalidRegexp", Level::kWarning, "Envoy refuses the whole route configuration",
       "write it as RE2 has it", "istio/istio#56807", Regexes},
      {"IST0130", "VirtualServiceUnreachableRule", Level::kWarning, "the first rule that matches is taken",
       "order the rules from the special to the general", "imroc/learning-istio#10", RulesNeverUsed},
      {"IST0131", "VirtualServiceIneffectiveMatch", Level::kInfo, "the first rule that matches is taken",
       "take the match out, or order the rules from the special to the general", "istio/istio#36156", MatchesNeverUsed,
       false},
      {"IST0140", "IngressRouteRulesNotAffected", Level::kWarning,
       "what comes in by a gateway is routed by the rules of that gateway alone",
       "name the subset in the gateway's rules, too, or bind the other VirtualService to the gateway",
       "istio/istio#12868, #10264", SubsetsOfMeshAlone, false},
      {"IST0149", "JwtClaimBasedRoutingWithoutRequestAuthN", Level::kError,
       "claims that nobody has read match nothing: requests have no route",
       "add a RequestAuthentication for the gateway's pods", "istio/istio#35801", ClaimsNobodyReads},
      {"IST0132", "VirtualServiceHostNotFoundInGateway", Level::kWarning, "the gateway answers 404",
       "add the host to the Gateway's server", "istio/istio#28172", HostsOfGateways},
      {"WT502", "VirtualServiceHostUnknown", Level::kWarning, "the rules are never asked", "mend the host's name",
       "istio/istio#42773", UnknownHosts},
      {"WT520", "StarIsLiteral", Level::kWarning, "exact and prefix are compared letter by letter",
       "write a prefix without the star, or a regex", "istio/istio#7018", StarsAreLiteral},
      {"WT582", "RouteToNetworkGateway", Level::kError, "mesh TLS runs from sidecar to sidecar, through such gateways",
       "route to the Service itself: istiod sends what is far through the gateway", "", RoutesToNetworkGateway},
      {"WT583", "MirrorToItself", Level::kWarning, "a mirrored request is a request to whom it comes to",
       "mirror to another host or subset", "", MirrorsToItself, false},
      {"WT585", "MatchNeverHappens", Level::kWarning, "what never matches routes nothing",
       "write it as requests have it", "istio/istio#33114", MatchesNeverHappen},
      {"WT596", "RegexMatchesWhole", Level::kWarning, "a regular expression has to match the whole text",
       "write a prefix", "envoyproxy/envoy#19948", RegexesMatchWholes},
      {"WT597", "RewriteLeavesSlashes", Level::kWarning, "the prefix alone is replaced, and what follows it stays",
       "end both, or neither, with a slash", "istio/istio#26828, #8076", RewritesLeaveSlashes, false},
      {"WT586", "RedirectToItself", Level::kError, "a client that follows it goes round in circles",
       "redirect to another host, path, port or scheme", "", RedirectsToItself},
      {"WT587", "RedirectToNobody", Level::kWarning, "a client that follows it asks for a name that does not resolve",
       "redirect to a host that is there", "", RedirectsToNobody},
      {"WT510", "VirtualServiceOutOfSight", Level::kWarning, "rules that no proxy is shown are asked by none",
       "export it to the clients' namespaces, or leave exportTo out", "", RoutesOutOfSight},
  };
  return *rules;
}

}  // namespace wavetank::check
