// What policies name and stands elsewhere: extension providers of the mesh config, and key sets that istiods fetch;
// tags of metrics that Telemetry overrides.
#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <variant>

#include "absl/strings/numbers.h"
#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/cel/cel_expression.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/config/mesh/extension_provider.h"
#include "core/config/mesh/mesh_config.h"
#include "fakes/envoy/access_log/istio_stats.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "re2/re2.h"
#include "scenarios/language/yaml_reader.h"

namespace wavetank::check {
namespace {

using nlohmann::json;

using config::ExtensionProvider;
using Providers = std::vector<ExtensionProvider>;

// What a provider is named for.
enum class Purpose : uint8_t { kTracing, kMetrics, kAccessLogging, kAuthorization };

constexpr const char* Wanting(Purpose purpose) {
  switch (purpose) {
    case Purpose::kTracing:
      return "tracing";
    case Purpose::kMetrics:
      return "metrics";
    case Purpose::kAccessLogging:
      return "accessLogging";
    case Purpose::kAuthorization:
      break;
  }
  return "action CUSTOM";
}

// istio.io/api mesh/v1alpha1: Stackdriver takes all three, of the others each is for one thing.
bool ServesFor(const ExtensionProvider& provider, Purpose purpose) {
  const auto& kind = provider.telemetry;
  const bool stackdriver = std::holds_alternative<ExtensionProvider::Stackdriver>(kind);
  switch (purpose) {
    case Purpose::kTracing:
      return stackdriver || std::holds_alternative<ExtensionProvider::Tracer>(kind);
    case Purpose::kMetrics:
      return stackdriver || std::holds_alternative<ExtensionProvider::Prometheus>(kind);
    case Purpose::kAccessLogging:
      return stackdriver || std::holds_alternative<ExtensionProvider::FileAccessLog>(kind) ||
             std::holds_alternative<ExtensionProvider::GrpcAccessLog>(kind) ||
             std::holds_alternative<ExtensionProvider::OtelAccessLog>(kind);
    case Purpose::kAuthorization:
      break;
  }
  return provider.ext_authz_http || provider.ext_authz_grpc;
}

// "host" or "namespace/host", and its port; no host: the provider needs none.
std::pair<std::string, uint32_t> ServerOf(const ExtensionProvider& provider) {
  if (provider.ext_authz_http) return {provider.ext_authz_http->service, provider.ext_authz_http->port};
  if (provider.ext_authz_grpc) return {provider.ext_authz_grpc->service, provider.ext_authz_grpc->port};
  if (const auto* t = std::get_if<ExtensionProvider::Tracer>(&provider.telemetry)) return {t->service, t->port};
  if (const auto* l = std::get_if<ExtensionProvider::GrpcAccessLog>(&provider.telemetry)) return {l->service, l->port};
  if (const auto* l = std::get_if<ExtensionProvider::OtelAccessLog>(&provider.telemetry)) return {l->service, l->port};
  return {};
}

// Fn(cluster, what names it, provider's name, for what) for every provider that configuration or the mesh's defaults
// name.
template <class Fn>
void EachUse(const Mesh& mesh, Fn fn) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->push == nullptr) continue;
    const auto all = [&](const kube::Object& object, const std::vector<std::string>& names, Purpose purpose) {
      for (const std::string& name : names) fn(*cluster, object, name, purpose);
    };
    if (const kube::ObjectRef map = MeshConfigMap(mesh, *cluster); map != nullptr) {
      const config::MeshConfig::DefaultProviders& defaults = cluster->push->mesh().default_providers;
      all(*map, defaults.tracing, Purpose::kTracing);
      all(*map, defaults.metrics, Purpose::kMetrics);
      all(*map, defaults.access_logging, Purpose::kAccessLogging);
    }
    for (const config::TelemetryRef& telemetry : cluster->configs.Telemetries()) {
      const kube::ObjectRef object =
          mesh.Get(*cluster, "Telemetry.telemetry.istio.io", telemetry->meta.ns, telemetry->meta.name);
      if (object == nullptr) continue;
      for (const auto& entry : telemetry->spec.tracing) all(*object, entry.providers, Purpose::kTracing);
      for (const auto& entry : telemetry->spec.metrics) all(*object, entry.providers, Purpose::kMetrics);
      for (const auto& entry : telemetry->spec.access_logging) all(*object, entry.providers, Purpose::kAccessLogging);
    }
    for (const auto& policy : cluster->configs.AuthorizationPolicies()) {
      const kube::ObjectRef object =
          mesh.Get(*cluster, "AuthorizationPolicy.security.istio.io", policy->meta.ns, policy->meta.name);
      if (object != nullptr && !policy->spec.provider.empty())
        fn(*cluster, *object, policy->spec.provider, Purpose::kAuthorization);
    }
  }
}

// istiod: pkg/config/analysis/analyzers/telemetry/providers.go
void LogsOfNoProvider(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->push == nullptr) continue;
    if (!cluster->push->mesh().default_providers.access_logging.empty()) continue;
    for (const config::TelemetryRef& telemetry : cluster->configs.Telemetries()) {
      const auto& logs = telemetry->spec.access_logging;
      if (std::none_of(logs.begin(), logs.end(), [](const auto& entry) { return entry.providers.empty(); })) continue;
      findings.Add(*cluster, telemetry->meta,
                   "accessLogging names no provider, and meshConfig.defaultProviders.accessLogging has none either");
    }
  }
}

// What is said of a use, by whether a policy depends on it or what is measured; empty: all is well.
std::string ProviderTrouble(const MeshCluster& cluster, const std::string& name, Purpose purpose) {
  const Providers& providers = cluster.push->mesh().extension_providers;
  const ExtensionProvider* provider = config::FindTelemetryProvider(providers, name);
  if (provider == nullptr || !ServesFor(*provider, purpose)) {
    std::vector<std::string> names;
    for (const ExtensionProvider& each : providers) {
      if (ServesFor(each, purpose)) names.push_back(each.name);
    }
    return fmt::format(
        "{}: provider {} {}; of its kind there {}", Wanting(purpose), name,
        provider == nullptr ? "is none of meshConfig.extensionProviders" : "is of another kind",
        names.empty() ? "is none" : fmt::format("{} {}", names.size() == 1 ? "is" : "are", fmt::join(names, ", ")));
  }
  if (purpose == Purpose::kTracing && Has(cluster, pilot::Change::kTracersGone)) {
    const auto* const tracer = std::get_if<ExtensionProvider::Tracer>(&provider->telemetry);
    const bool stackdriver = std::holds_alternative<ExtensionProvider::Stackdriver>(provider->telemetry);
    if (stackdriver || (tracer != nullptr && tracer->kind == ExtensionProvider::Tracer::Kind::kOpenCensus)) {
      return fmt::format("{}: provider {} is of kind {}, of which istiod makes nothing since 1.23", Wanting(purpose),
                         name, stackdriver ? "stackdriver" : "opencensus");
    }
  }
  if (purpose != Purpose::kTracing && Has(cluster, pilot::Change::kStackdriverGone) &&
      std::holds_alternative<ExtensionProvider::Stackdriver>(provider->telemetry))
    return fmt::format("{}: provider {} is of kind stackdriver, of which istiod makes nothing since 1.23",
                       Wanting(purpose), name);
  const auto [service, port] = ServerOf(*provider);
  if (service.empty()) return {};
  const std::string host = service.substr(service.find('/') == std::string::npos ? 0 : service.find('/') + 1);
  const pilot::ServiceRef known = ServiceOf(cluster, host);
  if (known == nullptr)
    return fmt::format("{}: provider {} sends to {}, which is no host that istiod knows", Wanting(purpose), name, host);
  if (known->FindPort(static_cast<int>(port)) == nullptr)
    return fmt::format("{}: provider {} sends to port {} of {}, which has none such", Wanting(purpose), name, port,
                       host);
  return {};
}

void Tell(const Mesh& mesh, Findings& findings, bool authorizers) {
  EachUse(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const std::string& name, Purpose purpose) {
    if ((purpose == Purpose::kAuthorization) != authorizers) return;
    if (std::string trouble = ProviderTrouble(cluster, name, purpose); !trouble.empty())
      findings.Add(cluster, object, std::move(trouble));
  });
}

void ProviderUnknown(const Mesh& mesh, Findings& findings) { Tell(mesh, findings, false); }
void AuthorizerUnknown(const Mesh& mesh, Findings& findings) { Tell(mesh, findings, true); }

// A rule that says nothing of who asks for what fits what the authorizer is asked, too.
bool FitsAnything(const config::AuthorizationPolicy& policy) {
  return std::any_of(policy.rules.begin(), policy.rules.end(), [](const config::AuthorizationPolicy::Rule& rule) {
    return rule.from.empty() && rule.to.empty() && rule.when.empty();
  });
}

// Its sidecar asks the authorizer before it lets a question through to the authorizer, and so on.
void AuthorizerAsksItself(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->push == nullptr) continue;
    for (const auto& policy : cluster->configs.AuthorizationPolicies()) {
      if (policy->spec.provider.empty() || !FitsAnything(policy->spec)) continue;
      const auto* provider =
          config::FindTelemetryProvider(cluster->push->mesh().extension_providers, policy->spec.provider);
      if (provider == nullptr || !ServesFor(*provider, Purpose::kAuthorization)) continue;  // WT567
      const std::string server = ServerOf(*provider).first;
      const pilot::ServiceRef known = ServiceOf(*cluster, server.substr(server.find('/') + 1));
      if (known == nullptr) continue;
      const kube::ObjectRef service = mesh.Get(*cluster, "Service", known->attributes.ns, known->attributes.name);
      if (service == nullptr) continue;
      for (const sim::PodProcess* pod : Behind(mesh, *cluster, *service)) {
        if (pod->envoy() == nullptr || !AttachesTo(*cluster, *policy, *pod)) continue;
        findings.Add(*cluster, policy->meta,
                     fmt::format("provider {} is served by {}, whose own sidecar the policy has ask it before each "
                                 "question: none is ever answered",
                                 policy->spec.provider, pod->pod()->meta.name));
        break;
      }
    }
  }
}

// Asked or told by gRPC. istiod: pilot/pkg/networking/core/v1alpha3/tracing.go, pilot/pkg/model/telemetry_logging.go
bool IsOfGrpc(const ExtensionProvider& provider) {
  using Tracer = ExtensionProvider::Tracer;
  if (const auto* tracer = std::get_if<Tracer>(&provider.telemetry)) {
    return tracer->kind == Tracer::Kind::kSkyWalking ||
           (tracer->kind == Tracer::Kind::kOpenTelemetry && !tracer->over_http);
  }
  return provider.ext_authz_grpc || std::holds_alternative<ExtensionProvider::GrpcAccessLog>(provider.telemetry) ||
         std::holds_alternative<ExtensionProvider::OtelAccessLog>(provider.telemetry);
}

// istiod: pilot/pkg/networking/core/v1alpha3/cluster_builder.go: clusters are of HTTP/2 where the Service's port is.
void GrpcByHttp1(const Mesh& mesh, Findings& findings, bool authorizers) {
  EachUse(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const std::string& name, Purpose purpose) {
    if ((purpose == Purpose::kAuthorization) != authorizers) return;
    const auto* provider = config::FindTelemetryProvider(cluster.push->mesh().extension_providers, name);
    if (provider == nullptr || !ServesFor(*provider, purpose) || !IsOfGrpc(*provider)) return;  // WT567, WT571
    const auto [server, number] = ServerOf(*provider);
    const pilot::ServiceRef known = ServiceOf(cluster, server.substr(server.find('/') + 1));
    const pilot::Port* port = known == nullptr ? nullptr : known->FindPort(static_cast<int>(number));
    if (port == nullptr) return;
    const std::string by = pilot::BuildSubsetKey(pilot::TrafficDirection::kOutbound, "", known->hostname, port->port);
    const kube::Labels selector = LabelsIn(WorkloadSelectorOf(object));
    const bool of_all = object.kind == "ConfigMap";  // the mesh config's defaults
    for (const sim::PodProcess* pod : mesh.ServedPods(cluster)) {
      if (pod->envoy() == nullptr || (!of_all && !HoldsFor(cluster, object.meta.ns, selector, *pod)) ||
          !AsksByHttp1(*pod, by))
        continue;
      findings.Add(
          cluster, object,
          fmt::format("{}: provider {} is of gRPC, and port {} of {} {}: {} asks it by HTTP/1.1", Wanting(purpose),
                      name, port->port, known->hostname,
                      pilot::IsUnsupported(port->protocol) ? std::string("says no protocol")
                                                           : fmt::format("is {}", pilot::ProtocolName(port->protocol)),
                      pod->name()));
      if (provider->ext_authz_grpc && provider->ext_authz_grpc->fail_open)
        findings.Explain("gRPC is HTTP/2: no question is answered, and failOpen lets every request through unjudged",
                         {});
      break;
    }
  });
}

void AuthorizerByHttp1(const Mesh& mesh, Findings& findings) { GrpcByHttp1(mesh, findings, true); }
void CollectorByHttp1(const Mesh& mesh, Findings& findings) { GrpcByHttp1(mesh, findings, false); }

// Of a jwksUri: where istiod connects to.
struct KeyServer {
  std::string host;
  int port = 0;
};

KeyServer ServerOfUri(std::string_view uri) {
  KeyServer out;
  const size_t scheme = uri.find("://");
  if (scheme == std::string_view::npos) return out;
  out.port = uri.substr(0, scheme) == "https" ? 443 : 80;
  std::string_view rest = uri.substr(scheme + 3);
  rest = rest.substr(0, rest.find_first_of("/?#"));
  if (const size_t at = rest.rfind('@'); at != std::string_view::npos) rest.remove_prefix(at + 1);
  const size_t colon = rest.rfind(':');
  if (colon != std::string_view::npos && rest.find(']', colon) == std::string_view::npos) {
    if (!absl::SimpleAtoi(std::string(rest.substr(colon + 1)), &out.port)) out.port = 0;
    rest = rest.substr(0, colon);
  }
  out.host = std::string(rest);
  return out;
}

// A name that the cluster's DNS gives to Services, as a pod of `ns` says it: "keys", "keys.auth", "keys.auth.svc",
// ".cluster.local". Empty: some other host.
std::string ServiceNameOf(const Mesh& mesh, const MeshCluster& cluster, std::string host, std::string_view ns) {
  for (const std::string_view end : {".cluster.local", ".svc"}) {
    if (host.ends_with(end))
      host.resize(host.size() - end.size());
    else if (end == ".svc" && host.find('.') != std::string::npos &&
             mesh.Get(cluster, "Namespace", "", host.substr(host.find('.') + 1)) == nullptr)
      return {};
  }
  const size_t dot = host.find('.');
  if (dot == std::string::npos) return fmt::format("{}/{}", ns, host);
  if (host.find('.', dot + 1) != std::string::npos) return {};
  return fmt::format("{}/{}", host.substr(dot + 1), host.substr(0, dot));
}

// What keeps istiod from a Service of its own cluster; empty: nothing that manifests show.
std::string KeepsIstiodFrom(const Mesh& mesh, const MeshCluster& cluster, const std::string& service, int port) {
  const size_t slash = service.find('/');
  const kube::ObjectRef object = mesh.Get(cluster, "Service", service.substr(0, slash), service.substr(slash + 1));
  if (object == nullptr)
    return fmt::format("{} has no Service {}, and istiod asks its own cluster's DNS", cluster.name, service);
  const kube::Service& typed = kube::ParseService(*object);
  const auto at = std::find_if(typed.ports.begin(), typed.ports.end(), [&](const auto& p) { return p.port == port; });
  if (at == typed.ports.end()) return fmt::format("Service {} has no port {}", service, port);
  const auto pods = Behind(mesh, cluster, *object);
  if (typed.has_selector && pods.empty()) return fmt::format("Service {} selects no pod in {}", service, cluster.name);
  for (const sim::PodProcess* pod : pods) {
    if (pod->envoy() == nullptr) continue;
    const auto modes = cluster.push->authn().ComposeForWorkload(pod->pod()->meta.ns, pod->pod()->meta.labels);
    // istiod asks as a client without a sidecar: its own pod has none.
    if (modes.ForPort(static_cast<uint32_t>(at->Target())) == pilot::MutualTlsMode::kStrict)
      return fmt::format("mTLS is STRICT at the pods of Service {}, and istiod asks without a sidecar", service);
  }
  return {};
}

// Fn(cluster, policy, URI as istiod asks for it, server) for key sets that no part of the simulated world answers for.
template <class Fn>
void EachUnansweredKeySet(const Mesh& mesh, Fn fn) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->push == nullptr) continue;
    for (const config::RequestAuthenticationRef& policy : cluster->configs.RequestAuthentications()) {
      for (const auto& rule : policy->spec.jwt_rules) {
        if (!rule.jwks.empty()) continue;
        // istiod: pilot/pkg/model/jwks_resolver.go, resolveJwksURIUsingOpenID
        const std::string uri =
            rule.jwks_uri.empty() ? rule.issuer + "/.well-known/openid-configuration" : rule.jwks_uri;
        if (!mesh.world().commons().web.contains(uri)) fn(*cluster, *policy, uri, ServerOfUri(uri));
      }
    }
  }
}

std::string KeySetTrouble(const Mesh& mesh, const MeshCluster& cluster, const KeyServer& server) {
  if (server.host.empty()) return "it is no URL that istiod can fetch";
  const std::string service = ServiceNameOf(mesh, cluster, server.host, cluster.system_namespace);
  return service.empty() ? std::string() : KeepsIstiodFrom(mesh, cluster, service, server.port);
}

void KeySetOutOfReach(const Mesh& mesh, Findings& findings) {
  EachUnansweredKeySet(
      mesh, [&](const MeshCluster& cluster, const auto& policy, const std::string& uri, const KeyServer& server) {
        if (const std::string trouble = KeySetTrouble(mesh, cluster, server); !trouble.empty())
          findings.Add(cluster, policy.meta, fmt::format("istiod cannot fetch the keys at {}: {}", uri, trouble));
      });
}

void KeySetNotJudged(const Mesh& mesh, Findings& findings) {
  EachUnansweredKeySet(
      mesh, [&](const MeshCluster& cluster, const auto& policy, const std::string& uri, const KeyServer& server) {
        if (KeySetTrouble(mesh, cluster, server).empty())
          findings.Add(cluster, policy.meta,
                       fmt::format("nothing of this mesh answers at {}, where istiod fetches keys", uri));
      });
}

// istio/proxy: source/extensions/filters/http/istio_stats/istio_stats.cc: each value is an expression of CEL; of one
// that it cannot parse it logs a line, and drops a tag of its own, or does not add another.
void TagOverridesUnread(const Mesh& mesh, Findings& findings) {
  static constexpr std::string_view kAttributes[] = {"request",  "response",      "connection",
                                                     "source",   "destination",   "upstream",
                                                     "metadata", "filter_state",  "upstream_filter_state",
                                                     "xds",      "upstream_peer", "downstream_peer",
                                                     "node",     "true",          "false",
                                                     "null"};
  const std::span<const std::string_view> standard = envoysim::StandardTags();
  const std::vector<std::string_view> tags_of_metrics(standard.begin(), standard.end());
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& object : mesh.List(*cluster, "Telemetry.telemetry.istio.io")) {
      std::set<std::string> told;
      for (const json& metrics : Items(At(object->body, {"spec", "metrics"}))) {
        for (const json& each : Items(At(metrics, "overrides"))) {
          const json& tags = At(each, "tagOverrides");
          if (!tags.is_object()) continue;
          for (const auto& [tag, override] : tags.items()) {
            const std::string value = Text(override, "value");
            if (!told.insert(tag + "=" + value).second) continue;
            if (Text(override, "operation") == "REMOVE") {
              if (std::find(standard.begin(), standard.end(), tag) != standard.end()) continue;
              findings.Add(*cluster, *object,
                           fmt::format("tagOverrides {}: no metric has such a tag: nothing is removed", tag));
              const std::string_view near = scenario::Nearest(tag, tags_of_metrics);
              findings.Explain("proxies pass it over", near.empty() ? "mend the name" : fmt::format("write {}", near));
              continue;
            }
            if (value.empty()) continue;
            const auto made = cel::CelExpression::Make(value, cel::kIstioMetricsCel);
            if (!made.ok()) {
              findings.Add(
                  *cluster, *object,
                  fmt::format("tagOverrides {}: '{}' is no expression of CEL: {}", tag, value, Message(made.status())));
              continue;
            }
            static const re2::RE2* const name = new re2::RE2("[A-Za-z_][A-Za-z0-9_]*");
            if (!re2::RE2::FullMatch(value, *name) ||
                std::find(std::begin(kAttributes), std::end(kAttributes), value) != std::end(kAttributes))
              continue;
            findings.Add(*cluster, *object,
                         fmt::format("tagOverrides {}: {} is the name of an attribute that no request has: the tag "
                                     "reads \"unknown\"",
                                     tag, value));
            findings.Explain("a text is quoted within CEL", fmt::format("write value: \"'{}'\"", value));
          }
        }
      }
    }
  }
}

}  // namespace

const std::vector<Rule>& ProviderRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"IST0157", "InvalidTelemetryProvider", Level::kWarning, "logs that are meant for nobody are not written",
       "name a provider of meshConfig.extensionProviders (envoy is one), or a default one in the mesh config",
       "istio/istio#36625", LogsOfNoProvider, false},
      {"WT571", "ProviderNotFound", Level::kWarning, "nothing is traced, measured or logged for those it is meant for",
       "mend the provider's name or service in meshConfig.extensionProviders; a Service is named in full",
       "istio/istio#52149, #37829", ProviderUnknown},
      {"WT742", "TagOverrideUnread", Level::kWarning, "proxies measure without the tag, or with a value that is none",
       "write an expression of CEL: request.host, 'a text', has(request.headers['x']) ? ... : 'none'",
       "istio/istio#57577", TagOverridesUnread, false},
      // istiod: pilot/pkg/security/authz/builder, "default-deny-all-due-to-bad-CUSTOM-action"
      {"WT567", "AuthorizerNotFound", Level::kError, "istiod denies every request of the policy's workloads",
       "mend the provider's name or service in meshConfig.extensionProviders; a Service is named in full",
       "istio/istio#40944", AuthorizerUnknown},
      {"WT574", "AuthorizerAsksItself", Level::kError,
       "every request of the policy's workloads waits until the provider's timeout (10 minutes unless it says another)",
       "select the workloads that are to ask (spec.selector), or leave the authorizer's pods without a sidecar", "",
       AuthorizerAsksItself},
      {"WT754", "AuthorizerByHttp1", Level::kError,
       "gRPC is HTTP/2: no question is answered, and every request that the policy is for is refused (403)",
       "name the Service's port grpc, or give it appProtocol: grpc", "envoyproxy/envoy#11439", AuthorizerByHttp1},
      {"WT755", "CollectorByHttp1", Level::kWarning, "gRPC is HTTP/2: what proxies tell there never arrives",
       "name the Service's port grpc, or give it appProtocol: grpc",
       "odigos-io/odigos#5390, open-telemetry/opentelemetry-helm-charts#576", CollectorByHttp1, false},
      {"WT572", "KeySetOutOfReach", Level::kError,
       "istiod sends a key that verifies nothing: every request with such a token is answered 401",
       "mend jwksUri, or let istiod reach it (its own pod fetches, without a sidecar)", "istio/istio#40553",
       KeySetOutOfReach},
      {"WT573", "KeySetNotJudged", Level::kInfo,
       "whether a server outside of the mesh answers istiod is told by none of its objects",
       "try it from istiod's pod; keySets of a scenario stand for such a server (scenarios/README.md)",
       "istio/istio#53260", KeySetNotJudged},
  };
  return *rules;
}

}  // namespace wavetank::check
