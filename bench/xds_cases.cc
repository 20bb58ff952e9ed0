// Clusters, listeners, routes and push contexts of the meshes that istiod's own benchmarks have
// (tests/core/gen/bench_cases.h; docs/istiod-benchmarks.md gives istiod's figures). Uncached, but for SharedListeners,
// which is the second replica's question; every resource is encoded, as it goes to the wire.
#include <string>

#include "bench/allocations.h"
#include "benchmark/benchmark.h"
#include "core/gen/nds/name_table.h"
#include "tests/core/gen/bench_cases.h"

namespace wavetank::pilot::bench_cases {
namespace {

void Report(benchmark::State& state, size_t allocations, int64_t bytes, size_t resources) {
  const auto runs = static_cast<double>(state.iterations());
  state.counters["allocations"] = static_cast<double>(allocations) / runs;
  state.counters["kB"] = static_cast<double>(bytes) / runs / 1000;
  state.counters["resources"] = static_cast<double>(resources);
}

// `generator` is called for each run: it gives the generator that is asked.
template <typename GeneratorOf>
void Measure(benchmark::State& state, const GeneratorOf& generator, const Mesh& mesh, const WatchedResource& watched) {
  const PushRequest request = GenWorld::Request(mesh.push);
  int64_t bytes = 0;
  size_t resources = 0;
  const size_t before = bench::allocations;
  for (auto _ : state) {
    const GeneratedResources out = generator()->Generate(mesh.proxy, watched, request);
    for (const Resource& r : out.resources) bytes += static_cast<int64_t>(r.bytes->size());
    resources = out.resources.size();
  }
  Report(state, bench::allocations - before, bytes, resources);
}

void Fill(const Case& c, Mesh& mesh) {
  c.fill(mesh);
  mesh.Connect();
}

void InitPushContext(benchmark::State& state, const Case& c) {
  Mesh mesh;
  Fill(c, mesh);
  const size_t before = bench::allocations;
  for (auto _ : state) {
    mesh.push = mesh.world.Push();
    Proxy proxy = mesh.proxy;
    SetSidecarScope(proxy, *mesh.push);
    SetGatewaysForProxy(proxy, *mesh.push);
    benchmark::DoNotOptimize(proxy);
  }
  state.counters["allocations"] =
      static_cast<double>(bench::allocations - before) / static_cast<double>(state.iterations());
}

void ClusterGeneration(benchmark::State& state, const Case& c) {
  Mesh mesh;
  Fill(c, mesh);
  const auto generator = MakeCdsGenerator({});
  Measure(state, [&] { return generator.get(); }, mesh, {});
}

// By a generator that has answered no sidecar yet: otherwise it would give again what it keeps for replicas.
void ListenerGeneration(benchmark::State& state, const Case& c) {
  Mesh mesh;
  Fill(c, mesh);
  Measure(state, MakeLdsGenerator, mesh, {});
}

// The listeners of a sidecar's replica: found, where they are shared (core/gen/lds/shared_listeners.h), not generated.
void SharedListeners(benchmark::State& state, const Case& c) {
  Mesh mesh;
  Fill(c, mesh);
  const auto generator = MakeLdsGenerator();
  Measure(state, [&] { return generator.get(); }, mesh, {});
}

void RouteGeneration(benchmark::State& state, const Case& c) {
  Mesh mesh;
  Fill(c, mesh);
  const auto generator = MakeRdsGenerator({});
  Measure(
      state, [&] { return generator.get(); }, mesh, RoutesOf(Listeners(mesh)));
}

void NameTableGeneration(benchmark::State& state, const Case& c) {
  Mesh mesh;
  Fill(c, mesh);
  const auto generator = MakeNdsGenerator();
  Measure(state, [&] { return generator.get(); }, mesh, {});
}

const bool registered = [] {
  using Run = void (*)(benchmark::State&, const Case&);
  const auto add = [](const std::string& what, Run run, const Case& c) {
    benchmark::RegisterBenchmark((what + "/" + c.name).c_str(), run, c)->Unit(benchmark::kMicrosecond);
  };
  for (const auto& [what, run] : {std::pair<const char*, Run>{"InitPushContext", InitPushContext},
                                  std::pair<const char*, Run>{"ClusterGeneration", ClusterGeneration},
                                  std::pair<const char*, Run>{"ListenerGeneration", ListenerGeneration},
                                  std::pair<const char*, Run>{"SharedListeners", bench_cases::SharedListeners},
                                  std::pair<const char*, Run>{"RouteGeneration", RouteGeneration}}) {
    for (const Case& c : kCases) add(what, run, c);
  }
  add("NameTableGeneration", NameTableGeneration, kCases[2]);
  return true;
}();

}  // namespace
}  // namespace wavetank::pilot::bench_cases
