// Merged push requests, as istiod's own benchmark has them (docs/istiod-benchmarks.md; istiod's figure stands beside
// ours in docs/performance.md).
#include "bench/allocations.h"
#include "benchmark/benchmark.h"
#include "sim/kernel/kernel.h"
#include "tests/core/xds/push_request_bench_case.h"

namespace wavetank::pilot {
namespace {

// Merged, then told for 500 proxies: istiod counts the reasons in its metrics, ours names them.
void PushRequests(benchmark::State& state) {
  constexpr int kProxies = 500;
  sim::Kernel kernel(1);
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  const size_t before = bench::allocations;
  for (auto _ : state) {
    const PushRequest merged = MergedPushRequest(host);
    for (int i = 0; i < kProxies; ++i) benchmark::DoNotOptimize(ReasonNames(merged.reasons));
  }
  state.counters["allocations"] =
      static_cast<double>(bench::allocations - before) / static_cast<double>(state.iterations());
}
BENCHMARK(PushRequests)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace wavetank::pilot
