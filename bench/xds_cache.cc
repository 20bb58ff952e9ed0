// The xDS cache, as istiod's own benchmarks have it (docs/istiod-benchmarks.md; istiod's figures stand beside ours in
// docs/performance.md): what a cached answer costs instead of a generated one.
#include "bench/allocations.h"
#include "benchmark/benchmark.h"
#include "core/xds/cache.h"
#include "tests/core/xds/cache_bench_case.h"

namespace wavetank::pilot {
namespace {

constexpr int kEntries = 1000;  // as many as istiod's cache is made to hold

void ReportAllocations(benchmark::State& state, size_t before) {
  state.counters["allocations"] =
      static_cast<double>(bench::allocations - before) / static_cast<double>(state.iterations());
}

// Inserts one at a time, each for a later push. As in istiod's benchmarks an insertion begins with the services and
// rules that the entry is of.
class Inserter {
 public:
  void Insert(int n) {
    const RouteCacheCase made(n);
    const RouteCacheEntry entry = made.Entry();
    cache.Add(XdsCache::Type::kRds, entry.Key(), Time(Duration(++now_)), entry.Dependencies(), resource_);
  }
  // istiod drops the oldest of 1,000 entries; ours are cleared by pushes instead.
  void InsertNext() {
    if (next_ == kEntries) {
      cache.ClearAll(Time(Duration(++now_)));
      next_ = 0;
    }
    Insert(next_++);
  }
  void Fill() {
    for (int i = 0; i < kEntries; ++i) InsertNext();
  }
  XdsCache cache;

 private:
  int next_ = 0;
  int64_t now_ = 0;
  Resource resource_{"test", ""};
};

void CacheKey(benchmark::State& state) {
  const RouteCacheCase made(1);
  const RouteCacheEntry entry = made.Entry();
  const size_t before = bench::allocations;
  for (auto _ : state) benchmark::DoNotOptimize(entry.Key());
  ReportAllocations(state, before);
}
BENCHMARK(CacheKey)->Unit(benchmark::kMicrosecond);

void CacheInsert(benchmark::State& state) {
  Inserter inserter;
  const size_t before = bench::allocations;
  for (auto _ : state) inserter.InsertNext();
  ReportAllocations(state, before);
}
BENCHMARK(CacheInsert)->Unit(benchmark::kMicrosecond);

void CacheInsertSameKey(benchmark::State& state) {
  Inserter inserter;
  inserter.Fill();
  const size_t before = bench::allocations;
  for (auto _ : state) inserter.Insert(1);
  ReportAllocations(state, before);
}
BENCHMARK(CacheInsertSameKey)->Unit(benchmark::kMicrosecond);

// The key is part of it, as in istiod's.
void CacheGet(benchmark::State& state) {
  Inserter inserter;
  inserter.Insert(1);
  const RouteCacheCase made(1);
  const RouteCacheEntry entry = made.Entry();
  const size_t before = bench::allocations;
  for (auto _ : state) benchmark::DoNotOptimize(inserter.cache.Get(XdsCache::Type::kRds, entry.Key()));
  ReportAllocations(state, before);
}
BENCHMARK(CacheGet)->Unit(benchmark::kMicrosecond);

void CacheInsertAndGet(benchmark::State& state) {
  Inserter inserter;
  inserter.Fill();
  const RouteCacheCase made(1);
  const RouteCacheEntry entry = made.Entry();
  const size_t before = bench::allocations;
  for (auto _ : state) {
    inserter.InsertNext();
    benchmark::DoNotOptimize(inserter.cache.Get(XdsCache::Type::kRds, entry.Key()));
  }
  ReportAllocations(state, before);
}
BENCHMARK(CacheInsertAndGet)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace wavetank::pilot
