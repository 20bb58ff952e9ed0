#include "tests/core/xds/cache_bench_case.h"

#include <set>

#include "core/xds/cache.h"
#include "gtest/gtest.h"

namespace wavetank::pilot {
namespace {

TEST(CacheBenchCase, AKeyIsOfItsServicesAndAnEntryDependsOnThemAndTheRules) {
  const RouteCacheCase one(1), again(1), two(2);
  EXPECT_EQ(one.Entry().Key(), again.Entry().Key());
  EXPECT_NE(one.Entry().Key(), two.Entry().Key());
  const std::vector<uint64_t> dependencies = one.Entry().Dependencies();
  EXPECT_EQ(dependencies.size(), 200u);
  EXPECT_EQ(std::set<uint64_t>(dependencies.begin(), dependencies.end()).size(), 200u);

  XdsCache cache;
  for (const RouteCacheCase* c : {&one, &two}) {
    cache.Add(XdsCache::Type::kRds, c->Entry().Key(), Time(1s), c->Entry().Dependencies(), {"r", "routes"});
  }
  cache.Clear({{ConfigKind::kServiceEntry, "1some7.example.com", "test7"}}, Time(2s));
  EXPECT_EQ(cache.Get(XdsCache::Type::kRds, one.Entry().Key()), nullptr);
  EXPECT_NE(cache.Get(XdsCache::Type::kRds, two.Entry().Key()), nullptr);
  cache.Clear({{ConfigKind::kDestinationRule, "7", "7"}}, Time(3s));
  EXPECT_EQ(cache.size(), 0u);
}

}  // namespace
}  // namespace wavetank::pilot
