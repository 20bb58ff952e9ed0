// Listeners and routes: the workloads of istiod's own benchmarks (golden/BENCH.md describes them and gives istiod's
// figures). Uncached; every resource is encoded, as it goes to the wire.
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "bench/allocations.h"
#include "benchmark/benchmark.h"
#include "core/gen/lds.h"
#include "core/gen/name_table.h"
#include "core/gen/rds.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "tests/core/gen/gen_world.h"

namespace wavetank::pilot {
namespace {

using config::StringMatch;

// Ports of most workloads: one per kind of listener.
const std::vector<Port>& FourPorts() {
  static const auto& ports = *new std::vector<Port>{{"http", 80, Protocol::kHttp},
                                                    {"tcp", 7070, Protocol::kTcp},
                                                    {"https", 443, Protocol::kHttps},
                                                    {"auto", 9090, Protocol::kUnsupported}};
  return ports;
}

struct Mesh {
  GenWorld world;
  NodeType type = NodeType::kSidecarProxy;
  std::vector<ServiceInstance> instances;  // of the proxy
  PushContextRef push;
  Proxy proxy;

  std::shared_ptr<Service> AddServiceEntry(const std::string& host, std::vector<Port> ports) {
    auto service = world.AddService(host, "default");
    service->hostname = host;
    service->ports = std::move(ports);
    service->default_address = "0.0.0.0";
    service->attributes.registry = Provider::kExternal;
    return service;
  }

  // The service that the proxy itself is of.
  void ServeExample(std::vector<Port> ports) {
    auto service = AddServiceEntry("example.com", std::move(ports));
    for (const Port& port : service->ports) {
      IstioEndpoint endpoint = GenWorld::Endpoint("10.0.0.9", GenWorld::Workload("c1"));
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

  void AddGateway(const std::string& name, std::vector<config::Server> servers) {
    auto gateway = std::make_shared<config::TypedConfig<config::Gateway>>();
    gateway->meta.kind = config::Kind::kGateway;
    gateway->meta.name = name;
    gateway->meta.ns = "gateway";
    gateway->spec.selector = {{"istio.io/benchmark", "true"}};
    gateway->spec.servers = std::move(servers);
    world.configs.Put(config::GatewayRef(std::move(gateway)));
  }

  void Connect() {
    push = world.Push();
    proxy = GenWorld::Connect(*push, "c1", type, {{"istio.io/benchmark", "true"}});
    proxy.service_instances = instances;
  }
};

config::Server Server(const std::string& name, uint32_t port, const std::string& protocol,
                      std::vector<std::string> hosts) {
  config::Server out;
  out.port = {port, protocol, name, 0};
  out.has_port = true;
  out.hosts = std::move(hosts);
  if (protocol == "HTTPS") out.tls.emplace().mode = config::ServerTlsSettings::Mode::kIstioMutual;
  return out;
}

std::string RandomHost(int i) { return "random-" + std::to_string(i) + ".host.example"; }

config::HttpRoute RouteTo(const std::string& host, std::vector<std::string> prefixes) {
  config::HttpRoute out;
  for (std::string& prefix : prefixes) {
    out.match.emplace_back().uri = StringMatch{StringMatch::Kind::kPrefix, std::move(prefix)};
  }
  out.route.push_back({{host, "", 0}, true, 0, std::nullopt});
  return out;
}

void FillServices(Mesh& mesh) {
  mesh.ServeExample(FourPorts());
  for (int i = 0; i < 100; ++i) mesh.AddServiceEntry(RandomHost(i), FourPorts());
}

void FillTls(Mesh& mesh) {
  FillServices(mesh);
  config::PeerAuthentication strict;
  strict.mtls = config::PeerAuthentication::Mode::kStrict;
  mesh.world.AddPeerAuthentication(strict);
  config::DestinationRule rule;
  rule.host = "*.host.example";
  rule.traffic_policy.emplace().tls.emplace().mode = config::ClientTlsSettings::Mode::kIstioMutual;
  mesh.world.AddRule("use-mtls", rule);
}

void FillVirtualServices(Mesh& mesh) {
  const std::vector<Port> http = {{"http", 80, Protocol::kHttp}};
  mesh.ServeExample(http);
  for (int i = 0; i < 100; ++i) {
    mesh.AddServiceEntry(RandomHost(i), http);
    config::VirtualService rule;
    rule.hosts = {RandomHost(i)};
    config::HttpRoute route = RouteTo(RandomHost(i), {"/foo"});
    route.name = "match-route";
    route.match.emplace_back().uri = StringMatch{StringMatch::Kind::kRegex, "/bar"};
    route.rewrite.emplace().uri = "/new-url";
    rule.http = {route};
    mesh.AddVirtualService("vs-" + std::to_string(i), rule, "shop");
  }
}

void FillPeerAuthentications(Mesh& mesh) {
  mesh.ServeExample({{"http", 80, Protocol::kHttp}, {"https", 443, Protocol::kHttps}});
  config::PeerAuthentication strict;
  strict.mtls = config::PeerAuthentication::Mode::kStrict;
  mesh.world.AddPeerAuthentication(strict);
}

void FillGateways(Mesh& mesh) {
  mesh.type = NodeType::kRouter;
  for (int i = 0; i < 1000; ++i) {
    const std::string number = std::to_string(i), end = "-" + number + ".host.example";
    const std::vector<std::string> hosts = {"random-a" + end, "random-b" + end, "random-c" + end};
    mesh.AddServiceEntry(RandomHost(i), {{"http", 80, Protocol::kHttp}});
    mesh.AddGateway("gateway-" + number, {Server("http", 80, "HTTP", hosts), Server("https", 443, "HTTPS", hosts)});
    config::VirtualService rule;
    rule.hosts = hosts;
    rule.gateways = {"gateway/gateway-" + number};
    rule.http = {RouteTo(RandomHost(i), {"/route-" + number})};
    mesh.AddVirtualService("vs-" + number, rule, "gateway");
  }
}

void FillSharedGateway(Mesh& mesh) {
  mesh.type = NodeType::kRouter;
  const std::vector<std::string> hosts = {RandomHost(1), RandomHost(2), RandomHost(3)};
  mesh.AddGateway("gateway", {Server("http", 80, "HTTP", hosts), Server("https", 443, "HTTPS", hosts)});
  for (int i = 0; i < 1000; ++i) {
    const std::string number = std::to_string(i);
    mesh.AddServiceEntry("service-" + number + ".example", {{"http", 80, Protocol::kHttp}});
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

using Fill = void (*)(Mesh&);

void Report(benchmark::State& state, size_t allocations, int64_t bytes, size_t resources) {
  const auto runs = static_cast<double>(state.iterations());
  state.counters["allocations"] = static_cast<double>(allocations) / runs;
  state.counters["kB"] = static_cast<double>(bytes) / runs / 1000;
  state.counters["resources"] = static_cast<double>(resources);
}

void Measure(benchmark::State& state, Generator& generator, const Mesh& mesh, const WatchedResource& watched) {
  const PushRequest request = GenWorld::Request(mesh.push);
  int64_t bytes = 0;
  size_t resources = 0;
  const size_t before = bench::allocations;
  for (auto _ : state) {
    const GeneratedResources out = generator.Generate(mesh.proxy, watched, request);
    for (const Resource& r : out.resources) bytes += static_cast<int64_t>(r.bytes->size());
    resources = out.resources.size();
  }
  Report(state, bench::allocations - before, bytes, resources);
}

void ListenerGeneration(benchmark::State& state, Fill fill) {
  Mesh mesh;
  fill(mesh);
  mesh.Connect();
  Measure(state, *MakeLdsGenerator(), mesh, {});
}

// The route configurations that the proxy's listeners name.
std::vector<std::string> RouteNames(const Mesh& mesh) {
  namespace hcm = ::envoy::extensions::filters::network::http_connection_manager::v3;
  std::set<std::string> names;
  for (const Resource& r : MakeLdsGenerator()->Generate(mesh.proxy, {}, GenWorld::Request(mesh.push)).resources) {
    ::envoy::config::listener::v3::Listener listener;
    listener.ParseFromString(*r.bytes);
    for (const auto& chain : listener.filter_chains()) {
      for (const auto& filter : chain.filters()) {
        hcm::HttpConnectionManager manager;
        if (filter.typed_config().UnpackTo(&manager) && manager.has_rds()) {
          names.insert(manager.rds().route_config_name());
        }
      }
    }
  }
  return {names.begin(), names.end()};
}

void RouteGeneration(benchmark::State& state, Fill fill) {
  Mesh mesh;
  fill(mesh);
  mesh.Connect();
  WatchedResource watched;
  watched.resource_names = RouteNames(mesh);
  Measure(state, *MakeRdsGenerator({}), mesh, watched);
}

void NameTableGeneration(benchmark::State& state, Fill fill) {
  Mesh mesh;
  fill(mesh);
  mesh.Connect();
  Measure(state, *MakeNdsGenerator(), mesh, {});
}

BENCHMARK_CAPTURE(ListenerGeneration, gateways, FillGateways)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(ListenerGeneration, gateways_shared, FillSharedGateway)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(ListenerGeneration, empty, FillServices)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(ListenerGeneration, tls, FillTls)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(ListenerGeneration, virtualservice, FillVirtualServices)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(ListenerGeneration, peerauthentication, FillPeerAuthentications)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(RouteGeneration, gateways, FillGateways)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(RouteGeneration, gateways_shared, FillSharedGateway)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(RouteGeneration, empty, FillServices)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(RouteGeneration, tls, FillTls)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(RouteGeneration, virtualservice, FillVirtualServices)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(RouteGeneration, peerauthentication, FillPeerAuthentications)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(NameTableGeneration, empty, FillServices)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace wavetank::pilot
