// Cluster generation: a sidecar with 100 services of four ports, as in istiod's ClusterGeneration/empty
// (docs/istiod-benchmarks.md), and the same with a DestinationRule of two subsets for each service.
#include <memory>
#include <string>

#include "bench/allocations.h"
#include "benchmark/benchmark.h"
#include "core/gen/cds/cds.h"
#include "core/xds/cache.h"
#include "tests/core/gen/gen_world.h"

namespace wavetank::pilot {
namespace {

constexpr int kServices = 100;

void Fill(GenWorld& world, bool rules) {
  for (int s = 0; s < kServices; ++s) {
    const std::string name = "svc-" + std::to_string(s);
    auto service = world.AddService(name);
    service->ports = {{"http", 80, Protocol::kHttp},
                      {"auto", 81, Protocol::kUnsupported},
                      {"tcp", 82, Protocol::kTcp},
                      {"grpc", 83, Protocol::kGrpc}};
    world.SetEndpoints("c1", name, {GenWorld::Endpoint("10.0.0.1", GenWorld::Workload("c1"))});
    if (!rules) continue;
    config::DestinationRule rule;
    rule.host = service->hostname;
    rule.traffic_policy.emplace().outlier_detection.emplace().consecutive_5xx_errors = 5;
    for (const char* version : {"v1", "v2"}) {
      config::Subset subset;
      subset.name = version;
      subset.labels = {{"version", version}};
      rule.subsets.push_back(subset);
    }
    world.AddRule(name, rule);
  }
}

void ClusterGeneration(benchmark::State& state) {
  GenWorld world;
  Fill(world, state.range(0) != 0);
  const PushContextRef push = world.Push();
  const Proxy proxy = GenWorld::Connect(*push, "c1");
  const PushRequest request = GenWorld::Request(push);
  XdsCache cache(state.range(1) != 0);
  const auto generator = MakeCdsGenerator({&cache});
  size_t resources = 0;
  const size_t before = bench::allocations;
  for (auto _ : state) resources = generator->Generate(proxy, WatchedResource{}, request).resources.size();
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(resources));
  state.counters["clusters"] = static_cast<double>(resources);
  state.counters["allocs/cluster"] = static_cast<double>(bench::allocations - before) /
                                     static_cast<double>(state.iterations()) / static_cast<double>(resources);
}
BENCHMARK(ClusterGeneration)
    ->ArgNames({"rules", "cache"})
    ->Args({0, 0})
    ->Args({1, 0})
    ->Args({0, 1})
    ->Args({1, 1})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace wavetank::pilot
