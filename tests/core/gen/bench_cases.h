// The meshes that istiod's own benchmarks generate from (docs/istiod-benchmarks.md; istiod:
// pilot/pkg/xds/bench_test.go, testdata/benchmarks), and what one proxy gets in each: the benchmarks measure this
// table, a test checks it.
//
// Not among them: secrets. The workloads of
// serviceentry-workloadentry are in the index already, as they are in istiod's.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/gen/cds/cds.h"
#include "core/gen/lds/lds.h"
#include "core/gen/rds/rds.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "tests/core/gen/gen_world.h"

namespace wavetank::pilot::bench_cases {

struct Mesh {
  GenWorld world;
  NodeType type = NodeType::kSidecarProxy;
  std::vector<ServiceInstance> instances;  // of the proxy
  PushContextRef push;
  Proxy proxy;

  // Endpoints are of the mesh, or external and without mTLS.
  std::shared_ptr<Service> AddServiceEntry(const std::string& host, std::vector<Port> ports, bool external,
                                           int endpoints = 1) {
    auto service = world.AddService(host, "default");
    service->hostname = host;
    service->ports = std::move(ports);
    service->default_address = kUnspecifiedIp;
    service->mesh_external = external;
    service->attributes.registry = Provider::kExternal;
    service->attributes.name = host;
    EndpointList list;
    for (const Port& port : service->ports) {
      EndpointProfile profile;
      profile.service_port_name = port.name;
      profile.ns = "default";
      profile.tls_mode = external ? kDisabledTlsMode : kMutualTlsMode;
      const auto shared = std::make_shared<const EndpointProfile>(std::move(profile));
      for (int e = 0; e < endpoints; ++e) {
        list.push_back({"1.2.3.4", static_cast<uint32_t>(port.port), 0, HealthStatus::kUnknown, shared});
      }
    }
    world.endpoints.UpdateServiceEndpoints({ClusterId("Kubernetes"), Provider::kExternal}, host, "default",
                                           std::move(list));
    return service;
  }

  // The service that the proxy itself is of.
  void ServeExample(std::vector<Port> ports, bool external) {
    const auto service = AddServiceEntry("example.com", std::move(ports), external);
    for (const Port& port : service->ports) {
      IstioEndpoint endpoint = GenWorld::Endpoint("1.1.1.1", GenWorld::Workload("Kubernetes"));
      endpoint.endpoint_port = static_cast<uint32_t>(port.port);
      instances.push_back({service, port, endpoint});
    }
  }

  void AddVirtualService(const std::string& name, config::VirtualService spec, const std::string& ns) {
    auto rule = std::make_shared<config::TypedConfig<config::VirtualService>>();
    rule->meta.kind = config::Kind::kVirtualService;
    rule->meta.name = name;
    rule->meta.ns = ns;
    rule->spec = std::move(spec);
    world.configs.Put(config::VirtualServiceRef(std::move(rule)));
  }

  void AddGateway(const std::string& name, std::vector<config::Server> servers, const std::string& ns = "gateway") {
    auto gateway = std::make_shared<config::TypedConfig<config::Gateway>>();
    gateway->meta.kind = config::Kind::kGateway;
    gateway->meta.name = name;
    gateway->meta.ns = ns;
    gateway->spec.selector = {{"istio.io/benchmark", "true"}};
    gateway->spec.servers = std::move(servers);
    world.configs.Put(config::GatewayRef(std::move(gateway)));
  }

  void Connect() {
    push = world.Push();
    proxy.type = type;
    proxy.id = "v0.default";
    proxy.dns_domain = "default.example.org";
    proxy.ip_addresses = {"1.1.1.1"};
    proxy.config_namespace = proxy.metadata.ns = "default";
    proxy.metadata.cluster_id = ClusterId("Kubernetes");
    proxy.metadata.istio_version = "1.18.0";
    proxy.labels = proxy.metadata.labels = {{"istio.io/benchmark", "true"}};
    proxy.service_instances = instances;
    SetSidecarScope(proxy, *push);
    SetGatewaysForProxy(proxy, *push);
  }
};

// One port per kind of listener.
inline std::vector<Port> FourPorts() {
  return {{"http", 80, Protocol::kHttp},
          {"tcp", 7070, Protocol::kTcp},
          {"https", 443, Protocol::kHttps},
          {"auto", 9090, Protocol::kUnsupported}};
}

inline config::Server Server(const std::string& name, uint32_t port, const std::string& protocol,
                             std::vector<std::string> hosts) {
  config::Server out;
  out.port = {port, protocol, name, 0};
  out.has_port = true;
  out.hosts = std::move(hosts);
  if (protocol == "HTTPS") out.tls.emplace().mode = config::ServerTlsSettings::Mode::kIstioMutual;
  return out;
}

inline std::string RandomHost(int i) { return "random-" + std::to_string(i) + ".host.example"; }

inline config::StringMatch Match(config::StringMatch::Kind kind, std::string value) { return {kind, std::move(value)}; }

inline config::HttpRoute RouteTo(const std::string& host, const std::vector<std::string>& prefixes) {
  config::HttpRoute out;
  for (const std::string& prefix : prefixes) {
    out.match.emplace_back().uri = Match(config::StringMatch::Kind::kPrefix, prefix);
  }
  out.route.push_back({{host, "", 0}, true, 0, std::nullopt});
  return out;
}

inline void FillServices(Mesh& mesh, bool external, int endpoints = 1) {
  mesh.ServeExample(FourPorts(), external);
  for (int i = 0; i < 100; ++i) mesh.AddServiceEntry(RandomHost(i), FourPorts(), external, endpoints);
}
inline void FillEmpty(Mesh& mesh) { FillServices(mesh, false); }
inline void FillTelemetry(Mesh& mesh) { FillServices(mesh, true); }
inline void FillTelemetryApi(Mesh& mesh) {
  FillServices(mesh, true);
  config::ExtensionProvider json;
  json.name = "envoy-json";
  json.telemetry =
      config::ExtensionProvider::FileAccessLog{.path = "/dev/stdout",
                                               .format = config::ExtensionProvider::FileAccessLog::Format{
                                                   .text = std::nullopt, .labels = nlohmann::json::object()}};
  mesh.world.mesh.extension_providers.push_back(std::move(json));
  config::Telemetry telemetry;
  telemetry.metrics.emplace_back().providers = {"prometheus"};
  telemetry.access_logging.emplace_back().providers = {"envoy-json"};
  mesh.world.AddTelemetry(telemetry, "istio-system");
}
inline void FillWorkloadEntries(Mesh& mesh) { FillServices(mesh, false, 10); }

inline void AddStrict(Mesh& mesh, const std::string& name = "default") {
  config::PeerAuthentication strict;
  strict.mtls = config::PeerAuthentication::Mode::kStrict;
  mesh.world.AddPeerAuthentication(strict, "default", name);
}

inline void FillTls(Mesh& mesh) {
  FillServices(mesh, true);
  AddStrict(mesh);
  config::DestinationRule rule;
  rule.host = "*.host.example";
  rule.traffic_policy.emplace().tls.emplace().mode = config::ClientTlsSettings::Mode::kIstioMutual;
  mesh.world.AddRule("use-mtls", rule, "default");
}

inline void FillVirtualServices(Mesh& mesh) {
  const std::vector<Port> http = {{"http", 80, Protocol::kHttp}};
  mesh.ServeExample(http, true);
  for (int i = 0; i < 100; ++i) {
    mesh.AddServiceEntry(RandomHost(i), http, true);
    config::VirtualService rule;
    rule.hosts = {RandomHost(i)};
    config::HttpRoute route = RouteTo(RandomHost(i), {"/foo"});
    route.name = "match-route";
    route.match.emplace_back().uri = Match(config::StringMatch::Kind::kRegex, "/bar");
    route.rewrite.emplace().uri = "/new-url";
    rule.http = {route};
    mesh.AddVirtualService("vs-" + std::to_string(i), rule, "default");
  }
}

inline void FillPeerAuthentications(Mesh& mesh) {
  mesh.ServeExample({{"http", 80, Protocol::kHttp}, {"https", 443, Protocol::kHttps}}, true);
  for (int i = 0; i < 100; ++i) AddStrict(mesh, "authz-" + std::to_string(i));
}

inline void FillAuthorizationPolicies(Mesh& mesh) {
  mesh.ServeExample({{"http", 80, Protocol::kHttp}, {"https", 443, Protocol::kHttps}}, true);
  config::AuthorizationPolicy deny;
  deny.action = config::AuthorizationPolicy::Action::kDeny;
  deny.rules.emplace_back();
  deny.rules[0].from.emplace_back().namespaces.values = {"default"};
  deny.rules[0].to.emplace_back().methods.values = {"POST"};
  for (int i = 0; i < 100; ++i) mesh.world.AddAuthorizationPolicy(deny, "default", "authn-" + std::to_string(i));
}

inline void FillGateways(Mesh& mesh) {
  mesh.type = NodeType::kRouter;
  mesh.ServeExample({{"http", 80, Protocol::kHttp}, {"https", 443, Protocol::kHttps}}, true);
  for (int i = 0; i < 1000; ++i) {
    const std::string number = std::to_string(i), end = "-" + number + ".host.example";
    const std::vector<std::string> hosts = {"random-a" + end, "random-b" + end, "random-c" + end};
    mesh.AddServiceEntry(RandomHost(i), {{"http", 80, Protocol::kHttp}}, true);
    mesh.AddGateway("gateway-" + number, {Server("http", 80, "HTTP", hosts), Server("https", 443, "HTTPS", hosts)});
    config::VirtualService rule;
    rule.hosts = hosts;
    rule.gateways = {"gateway/gateway-" + number};
    rule.http = {RouteTo(RandomHost(i), {"/route-" + number})};
    mesh.AddVirtualService("vs-" + number, rule, "gateway");
  }
}

inline void FillSharedGateway(Mesh& mesh) {
  mesh.type = NodeType::kRouter;
  mesh.ServeExample({{"http", 80, Protocol::kHttp}, {"https", 443, Protocol::kHttps}}, true);
  const std::vector<std::string> hosts = {RandomHost(1), RandomHost(2), RandomHost(3)};
  mesh.AddGateway("gateway", {Server("http", 80, "HTTP", hosts), Server("https", 443, "HTTPS", hosts)});
  for (int i = 0; i < 1000; ++i) {
    const std::string number = std::to_string(i);
    mesh.AddServiceEntry("service-" + number + ".example", {{"http", 80, Protocol::kHttp}}, true);
    config::VirtualService rule;
    rule.hosts = hosts;
    rule.gateways = {"gateway/gateway"};
    std::vector<std::string> prefixes;
    for (const char letter : {'a', 'b', 'c', 'd', 'e', 'f'}) {
      prefixes.push_back(std::string("/route-") + letter + "-" + number);
    }
    rule.http = {RouteTo("service-" + number + ".example", prefixes)};
    mesh.AddVirtualService("vs-" + number, rule, "gateway");
  }
}

// Two Gateways for everything, and per service one VirtualService at both, all of the same few hosts; one at the second
// Gateway alone: istiod's template has one per service too, but YAML keeps the last, as nothing parts the documents.
inline void FillKnative(Mesh& mesh) {
  mesh.type = NodeType::kRouter;
  for (const auto& [host, target_port] : {std::pair<const char*, uint32_t>{"istio-ingressgateway", 8080},
                                          std::pair<const char*, uint32_t>{"knative-local-gateway", 8081}}) {
    const auto service = mesh.AddServiceEntry(std::string(host) + ".istio-system.svc.cluster.local",
                                              {{"http", 80, Protocol::kHttp}}, true);
    IstioEndpoint endpoint = GenWorld::Endpoint("1.1.1.1", GenWorld::Workload("Kubernetes"));
    endpoint.endpoint_port = target_port;
    mesh.instances.push_back({service, service->ports[0], endpoint});
  }
  const std::string all = "knative-serving/knative-ingress-gateway", local = "knative-serving/knative-local-gateway";
  mesh.AddGateway("knative-ingress-gateway", {Server("http", 80, "HTTP", {"*"})}, "knative-serving");
  mesh.AddGateway("knative-local-gateway", {Server("http", 8081, "HTTP", {"*"})}, "knative-serving");
  const auto route = [](const std::string& gateway, const std::string& authority, const std::string& service,
                        const std::string& hash) {
    config::HttpRoute out;
    config::HttpMatchRequest& match = out.match.emplace_back();
    match.authority = Match(config::StringMatch::Kind::kPrefix, authority);
    match.gateways = {gateway};
    out.route.push_back({{service + ".default.svc.cluster.local", "", 80}, true, 100, std::nullopt});
    out.route[0].headers.emplace().request.emplace().set = {{"Knative-Serving-Namespace", "default"},
                                                            {"Knative-Serving-Revision", service}};
    if (!hash.empty()) {
      match.headers["K-Network-Hash"] = Match(config::StringMatch::Kind::kExact, "override");
      out.headers.emplace().request.emplace().set = {{"K-Network-Hash", hash}};
    }
    return out;
  };
  const std::string hash(64, 'a');
  for (int i = 0; i < 100; ++i) {
    const std::string number = std::to_string(i);
    config::VirtualService rule;
    rule.gateways = {all, local};
    rule.hosts = {"hello.default", "hello.default.external.domain", "hello.default.svc",
                  "hello.default.svc.cluster.local"};
    const std::string service = "hello-" + number;
    rule.http = {route(local, "hello.default", service, hash), route(local, "hello.default", service, ""),
                 route(all, "hello.default.external.domain", service, hash),
                 route(all, "hello.default.external.domain", service, "")};
    mesh.AddVirtualService("hello-ingress-" + number, rule, "default");
    if (i != 99) continue;
    config::VirtualService inside;
    inside.gateways = {local};
    inside.hosts = {"hello-private.default", "hello-private.default.svc", "hello-private.default.svc.cluster.local"};
    const std::string hidden = "hello-private-" + number;
    inside.http = {route(local, "hello-private.default", hidden, hash),
                   route(local, "hello-private.default", hidden, "")};
    mesh.AddVirtualService("hello-private-ingress-" + number, inside, "default");
  }
}

struct Case {
  const char* name;
  void (*fill)(Mesh&);
  size_t clusters, listeners, routes;  // as many as istiod generates
};
inline constexpr Case kCases[] = {
    {"gateways", FillGateways, 1003, 2, 1001},
    {"gateways_shared", FillSharedGateway, 1003, 2, 2},
    {"empty", FillEmpty, 411, 6, 2},
    {"tls", FillTls, 411, 6, 2},
    {"telemetry", FillTelemetry, 411, 6, 2},
    {"telemetry_api", FillTelemetryApi, 411, 6, 2},
    {"virtualservice", FillVirtualServices, 105, 3, 1},
    {"authorizationpolicy", FillAuthorizationPolicies, 7, 4, 1},
    {"peerauthentication", FillPeerAuthentications, 7, 4, 1},
    {"knative_gateway", FillKnative, 3, 2, 2},
    {"serviceentry_workloadentry", FillWorkloadEntries, 411, 6, 2},
};

inline std::vector<Resource> Listeners(const Mesh& mesh) {
  return MakeLdsGenerator()->Generate(mesh.proxy, {}, GenWorld::Request(mesh.push)).resources;
}

// The route configurations that listeners name.
inline WatchedResource RoutesOf(const std::vector<Resource>& listeners) {
  namespace hcm = ::envoy::extensions::filters::network::http_connection_manager::v3;
  std::set<std::string> names;
  for (const Resource& r : listeners) {
    ::envoy::config::listener::v3::Listener listener;
    listener.ParseFromString(std::string(*r.bytes));
    for (const auto& chain : listener.filter_chains()) {
      for (const auto& filter : chain.filters()) {
        hcm::HttpConnectionManager manager;
        if (filter.typed_config().UnpackTo(&manager) && manager.has_rds()) {
          names.insert(manager.rds().route_config_name());
        }
      }
    }
  }
  WatchedResource out;
  out.resource_names = {names.begin(), names.end()};
  return out;
}

}  // namespace wavetank::pilot::bench_cases
