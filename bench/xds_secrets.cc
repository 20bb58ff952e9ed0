// Secrets for a router, as istiod's own benchmark asks for them (docs/istiod-benchmarks.md): N TLS Secrets, each
// certificate checked, uncached.
#include "bench/allocations.h"
#include "benchmark/benchmark.h"
#include "tests/core/security/secret_bench_case.h"

namespace wavetank::security {
namespace {

void SecretGeneration(benchmark::State& state) {
  SecretBenchCase mesh(static_cast<int>(state.range(0)));
  int64_t bytes = 0;
  size_t resources = 0;
  const size_t before = bench::allocations;
  for (auto _ : state) {
    const pilot::GeneratedResources out = mesh.Generate();
    bytes += out.resources.Bytes();
    resources = out.resources.size();
  }
  const auto runs = static_cast<double>(state.iterations());
  state.counters["allocations"] = static_cast<double>(bench::allocations - before) / runs;
  state.counters["kB"] = static_cast<double>(bytes) / runs / 1000;
  state.counters["resources"] = static_cast<double>(resources);
}
BENCHMARK(SecretGeneration)->Arg(10)->Arg(1000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace wavetank::security
