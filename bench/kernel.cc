// Hold model: with n events pending, the earliest runs and schedules another at a random later time.
#include <benchmark/benchmark.h>

#include "core/base/random.h"
#include "sim/kernel/kernel.h"

namespace wavetank::sim {
namespace {

struct Holder {
  Host& host;
  RandomStream& random;
  void Again() {
    host.RunAfter(Duration(static_cast<int64_t>(random.Below(1'000'000))), [this] { Again(); });
  }
};

void BM_Dispatch(benchmark::State& state) {
  Kernel kernel(1);
  Host& host = kernel.NewHost("bench", 0, nullptr);
  RandomStream random(1, "bench");
  Holder holder{host, random};
  for (int64_t i = 0; i < state.range(0); ++i) holder.Again();
  for (auto _ : state) kernel.Step();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_Dispatch)->Arg(1'000)->Arg(10'000)->Arg(100'000)->Arg(1'000'000);

}  // namespace
}  // namespace wavetank::sim
