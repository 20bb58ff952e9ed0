// Endpoint generation: the workloads of istiod's own benchmarks (docs/istiod-benchmarks.md describes them and gives
// istiod's figures). Uncached unless the name says otherwise; one resource is encoded per service, as it goes to the
// wire.
#include <memory>
#include <string>
#include <vector>

#define WAVETANK_BENCH_BYTES
#include "bench/allocations.h"
#include "bench/five_networks.h"
#include "benchmark/benchmark.h"
#include "core/gen/eds/eds.h"
#include "core/xds/cache.h"
#include "tests/core/gen/gen_world.h"

namespace wavetank::pilot {
namespace {

using bench::ClusterNames;
using bench::Ip;

void Measure(benchmark::State& state, const PushContextRef& push, const Proxy& proxy, int services, int64_t endpoints) {
  WatchedResource watched;
  watched.resource_names = ClusterNames(services);
  const PushRequest request = GenWorld::Request(push);
  const auto generator = MakeEdsGenerator({});
  int64_t bytes = 0;
  const size_t before = bench::allocations;
  for (auto _ : state) {
    const GeneratedResources out = generator->Generate(proxy, watched, request);
    for (const Resource& r : out.resources) bytes += static_cast<int64_t>(r.bytes->size());
  }
  const auto runs = static_cast<double>(state.iterations());
  state.SetItemsProcessed(state.iterations() * endpoints);
  state.SetBytesProcessed(bytes);
  state.counters["allocs/endpoint"] =
      static_cast<double>(bench::allocations - before) / runs / static_cast<double>(endpoints);
}

// BenchmarkEndpointGeneration E/S: endpoints on four networks, each with a gateway; the proxy has no network.
void EndpointGeneration(benchmark::State& state) {
  const int endpoints = static_cast<int>(state.range(0)), services = static_cast<int>(state.range(1));
  GenWorld world;
  for (int n = 0; n < 4; ++n)
    world.gateways.push_back({NetworkId("network-" + std::to_string(n)), ClusterId(), Ip("35.0", n), 15443});
  std::vector<std::shared_ptr<const EndpointProfile>> profiles;
  for (int n = 0; n < 4; ++n) {
    EndpointProfile p = GenWorld::Workload(std::to_string(n));
    p.labels.clear();
    p.tls_mode = kDisabledTlsMode;
    p.network = NetworkId("network-" + std::to_string(n));
    profiles.push_back(std::make_shared<const EndpointProfile>(p));
  }
  for (int s = 0; s < services; ++s) {
    const std::string name = "svc-" + std::to_string(s);
    world.AddService(name);
    EndpointList list;
    for (int e = 0; e < endpoints; ++e) {
      list.push_back({Ip("111", e), 80, 0, HealthStatus::kUnknown, profiles[static_cast<size_t>(e % 4)]});
    }
    world.SetEndpoints("c1", name, std::move(list));
  }
  const PushContextRef push = world.Push();
  Proxy proxy = GenWorld::Connect(*push, "c1");
  proxy.metadata.network = NetworkId();
  Measure(state, push, proxy, services, int64_t{endpoints} * services);
}
BENCHMARK(EndpointGeneration)->Args({1, 100})->Args({10, 10})->Args({100, 10})->Args({1000, 1});

void FillFiveNetworks(GenWorld& world, int services, int endpoints_per_service) {
  bench::AddFiveNetworks(world, services);
  bench::ForEachOfFiveNetworks(services, endpoints_per_service,
                               [&](const std::string& cluster, const std::string& service, EndpointList list) {
                                 world.SetEndpoints(cluster, service, std::move(list));
                               });
}

Proxy ConnectFrom(const PushContext& push, int c) {
  Proxy proxy = GenWorld::Connect(push, "cluster-" + std::to_string(c));
  proxy.locality = {"region-" + std::to_string(c), "zone-" + std::to_string(c), ""};
  return proxy;
}

// BenchmarkSplitHorizonEDS: one assignment of N endpoints.
void SplitHorizonEds(benchmark::State& state) {
  const int endpoints = static_cast<int>(state.range(0));
  GenWorld world;
  FillFiveNetworks(world, 1, endpoints);
  const PushContextRef push = world.Push();
  Measure(state, push, ConnectFrom(*push, 0), 1, endpoints);
}
BENCHMARK(SplitHorizonEds)->Arg(1000)->Arg(10000)->Arg(100000)->Unit(benchmark::kMillisecond);

// The generators' part of BenchmarkFullPush: 100 proxies, 100 services of 100 endpoints; the cache is cleared by the
// push, so that the first proxy of each cluster fills it.
void FullPush(benchmark::State& state) {
  constexpr int kProxies = 100, kServices = 100, kEndpoints = 100;
  GenWorld world;
  FillFiveNetworks(world, kServices, kEndpoints);
  const PushContextRef push = world.Push();
  std::vector<Proxy> proxies;
  for (int p = 0; p < kProxies; ++p) proxies.push_back(ConnectFrom(*push, p % 5));
  WatchedResource watched;
  watched.resource_names = ClusterNames(kServices);
  const PushRequest request = GenWorld::Request(push);
  for (auto _ : state) {
    XdsCache cache(state.range(0) != 0);
    const auto generator = MakeEdsGenerator({&cache});
    for (const Proxy& proxy : proxies) benchmark::DoNotOptimize(generator->Generate(proxy, watched, request));
  }
}
BENCHMARK(FullPush)->ArgName("cache")->Arg(1)->Arg(0)->Unit(benchmark::kMillisecond);

// What the index itself takes per endpoint, its text apart: addresses here fit into the string itself.
void EndpointIndexMemory(benchmark::State& state) {
  constexpr int kServices = 100, kEndpoints = 1000;
  for (auto _ : state) {
    GenWorld world;
    const size_t before = bench::live_bytes;
    FillFiveNetworks(world, kServices, kEndpoints);
    state.counters["bytes/endpoint"] =
        static_cast<double>(bench::live_bytes - before) / static_cast<double>(kServices * kEndpoints);
  }
}
BENCHMARK(EndpointIndexMemory)->Iterations(1);

// An update of one service's endpoints, and the incremental push of it to one proxy that watches every service.
void EdsUpdate(benchmark::State& state) {
  const int services = static_cast<int>(state.range(0));
  GenWorld world;
  FillFiveNetworks(world, services, 10);
  const PushContextRef push = world.Push();
  const Proxy proxy = ConnectFrom(*push, 0);
  WatchedResource watched;
  watched.resource_names = ClusterNames(services);
  XdsCache cache;
  const auto generator = MakeEdsGenerator({&cache});
  PushRequest request = GenWorld::Request(push);
  generator->Generate(proxy, watched, request);
  request.full = false;
  request.configs_updated = {{ConfigKind::kServiceEntry, GenWorld::Host("svc-7"), "shop"}};
  const EndpointProfile profile = GenWorld::Workload("cluster-0");
  int n = 0;
  for (auto _ : state) {
    world.SetEndpoints("cluster-0", "svc-7", {GenWorld::Endpoint(Ip("10", ++n % 60000), profile)});
    cache.Clear(request.configs_updated, Time(1s));
    benchmark::DoNotOptimize(generator->Generate(proxy, watched, request));
  }
}
BENCHMARK(EdsUpdate)->ArgName("services")->Arg(100)->Arg(10000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace wavetank::pilot
