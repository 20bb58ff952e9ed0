// What the discovery server itself costs per connected proxy: debounce, queue, need-push, responses, ACKs. Resources
// are ready-made, so that generators do not count.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/five_networks.h"
#include "core/config/mesh/mesh_config.h"
#include "core/config/store/store.h"
#include "core/gen/eds/eds.h"
#include "core/profile/profile.h"
#include "core/registry/network_manager.h"
#include "core/xds/discovery_server.h"
#include "sim/kernel/kernel.h"

namespace wavetank::pilot {
namespace {

const ShardKey kShard{ClusterId("cluster1"), Provider::kKubernetes};

class ReadyMade final : public Generator {
 public:
  GeneratedResources Generate(const Proxy&, const WatchedResource& watched, const PushRequest& request) override {
    GeneratedResources out;
    out.send = request.full || watched.type == XdsType::kEds;
    if (out.send) out.resources.push_back(resource_);
    return out;
  }

 private:
  Resource resource_{"r", std::string(500, 'x')};
};

class Client final : public AdsStream {
 public:
  void Send(std::shared_ptr<const DiscoveryResponse> response) override {
    ++responses;
    DiscoveryRequest ack;
    ack.type = response->type;
    ack.response_nonce = response->nonce;
    if (response->type == XdsType::kEds || response->type == XdsType::kRds)
      ack.resource_names = std::vector<std::string>{"r"};
    connection->OnRequest(std::move(ack));
  }
  void SendDelta(std::shared_ptr<const DeltaDiscoveryResponse>) override {}
  void Close(const absl::Status&) override {}
  std::unique_ptr<AdsConnection> connection;
  int64_t responses = 0;
};

struct World {
  explicit World(int64_t proxies) {
    for (int i = 0; i < 200; ++i) {
      auto service = std::make_shared<Service>();
      service->hostname = "svc" + std::to_string(i) + ".shop.svc.cluster.local";
      service->ports = {{"http", 80, Protocol::kHttp}};
      service->attributes.name = "svc" + std::to_string(i);
      service->attributes.ns = "shop";
      services.services.push_back(std::move(service));
    }
    DiscoveryServer::Options options;
    options.requests_per_second = 0;
    server = std::make_unique<DiscoveryServer>(
        host,
        [this] {
          Environment environment;
          environment.discovery = &services;
          environment.configs = &configs;
          environment.mesh = config::DefaultMeshConfig();
          environment.gateways = MakeNetworkGateways({}, false);
          environment.profile = &profile;
          return environment;
        },
        std::move(options));
    for (XdsType type : {XdsType::kCds, XdsType::kEds, XdsType::kLds, XdsType::kRds}) {
      server->SetGenerator(type, &generator);
    }
    server->SetReady();
    for (int64_t i = 0; i < proxies; ++i) {
      auto client = std::make_unique<Client>();
      const std::string ip =
          "10." + std::to_string(i / 65536) + "." + std::to_string(i / 256 % 256) + "." + std::to_string(i % 256);
      auto node =
          std::make_shared<Node>(Node{"sidecar~" + ip + "~p" + std::to_string(i) + ".shop~shop.svc.cluster.local",
                                      "",
                                      {},
                                      {{"CLUSTER_ID", "cluster1"}, {"NAMESPACE", "shop"}}});
      client->connection = server->Connect({}, *client);
      for (XdsType type : {XdsType::kCds, XdsType::kEds, XdsType::kLds, XdsType::kRds}) {
        DiscoveryRequest request;
        request.type = type;
        if (type == XdsType::kEds || type == XdsType::kRds) request.resource_names = std::vector<std::string>{"r"};
        request.node = node;
        client->connection->OnRequest(std::move(request));
      }
      clients.push_back(std::move(client));
    }
    Update(1);
    Update(2);
  }
  ~World() { clients.clear(); }

  void Update(int endpoints) {
    auto profile_of_all = std::make_shared<EndpointProfile>();
    profile_of_all->service_account = "spiffe://cluster.local/ns/shop/sa/web";
    EndpointList list;
    for (int i = 0; i < endpoints; ++i) {
      list.push_back({"10.9.0." + std::to_string(i), 8080, 0, HealthStatus::kHealthy, profile_of_all});
    }
    server->EdsUpdate(kShard, "svc7.shop.svc.cluster.local", "shop", std::move(list));
    kernel.RunUntil(kernel.Now() + 1s);
  }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  Profile profile;
  config::ConfigStore configs;
  FakeDiscovery services;
  ReadyMade generator;
  std::unique_ptr<DiscoveryServer> server;
  std::vector<std::unique_ptr<Client>> clients;
};

void Connect(benchmark::State& state) {
  for (auto _ : state) World world(state.range(0));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(Connect)->Arg(1000)->Arg(8000)->Unit(benchmark::kMillisecond);

void PushEndpoints(benchmark::State& state) {
  World world(state.range(0));
  int endpoints = 1;
  for (auto _ : state) world.Update(endpoints = 3 - endpoints);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(PushEndpoints)->Arg(1000)->Arg(8000)->Unit(benchmark::kMillisecond);

void PushEverything(benchmark::State& state) {
  World world(state.range(0));
  for (auto _ : state) {
    world.server->ConfigUpdate({.full = true});
    world.kernel.RunUntil(world.kernel.Now() + 1s);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(PushEverything)->Arg(1000)->Arg(8000)->Unit(benchmark::kMillisecond);

// BenchmarkFullPush: connected proxies, 20 in 100 per network, that watch 100 services of 100 endpoints; from the
// change to the last response. Push context, proxy state, generation and responses; no protobuf, no transport.
class EdsClient final : public AdsStream {
 public:
  void Send(std::shared_ptr<const DiscoveryResponse> response) override {
    ++responses;
    DiscoveryRequest ack;
    ack.type = response->type;
    ack.response_nonce = response->nonce;
    ack.resource_names = *names;
    connection->OnRequest(std::move(ack));
  }
  void SendDelta(std::shared_ptr<const DeltaDiscoveryResponse>) override {}
  void Close(const absl::Status&) override {}
  const std::vector<std::string>* names = nullptr;
  std::unique_ptr<AdsConnection> connection;
  int64_t responses = 0;
};

void FullPushToConnected(benchmark::State& state) {
  constexpr int kServices = 100, kEndpoints = 100;
  GenWorld world;
  bench::AddFiveNetworks(world, kServices);
  const std::vector<std::string> names = bench::ClusterNames(kServices);
  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  DiscoveryServer::Options options;
  options.requests_per_second = 0;
  options.cache = state.range(1) != 0;
  DiscoveryServer server(
      host, [&] { return world.Env(); }, std::move(options));
  const auto eds = MakeEdsGenerator({&server.cache()});
  server.SetGenerator(XdsType::kEds, eds.get());
  server.SetReady();
  bench::ForEachOfFiveNetworks(
      kServices, kEndpoints, [&](const std::string& cluster, const std::string& service, EndpointList list) {
        server.EdsUpdate({ClusterId(cluster), Provider::kKubernetes}, GenWorld::Host(service), "shop", std::move(list));
      });
  kernel.RunUntil(kernel.Now() + 1s);
  std::vector<std::unique_ptr<EdsClient>> clients;
  for (int i = 0; i < state.range(0); ++i) {
    auto client = std::make_unique<EdsClient>();
    client->names = &names;
    const std::string c = std::to_string(i % 5);
    DiscoveryRequest request;
    request.type = XdsType::kEds;
    request.resource_names = names;
    request.node = std::make_shared<Node>(
        Node{"sidecar~" + bench::Ip("10", i) + "~p" + std::to_string(i) + ".shop~shop.svc.cluster.local",
             "",
             {"region-" + c, "zone-" + c, ""},
             {{"CLUSTER_ID", "cluster-" + c}, {"NAMESPACE", "shop"}, {"NETWORK", "network-cluster-" + c}}});
    client->connection = server.Connect({}, *client);
    client->connection->OnRequest(std::move(request));
    clients.push_back(std::move(client));
  }
  kernel.RunUntil(kernel.Now() + 1s);
  const auto responses = [&] {
    int64_t sum = 0;
    for (const auto& client : clients) sum += client->responses;
    return sum;
  };
  for (auto _ : state) {
    const int64_t before = responses();
    server.ConfigUpdate({.full = true});
    kernel.RunUntil(kernel.Now() + 1s);
    if (responses() - before != state.range(0)) state.SkipWithError("not every proxy was answered once");
  }
  for (auto& client : clients) client->connection.reset();
}
BENCHMARK(FullPushToConnected)
    ->ArgNames({"proxies", "cache"})
    ->Args({100, 1})
    ->Args({100, 0})
    ->Args({1000, 1})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace wavetank::pilot
