#include "tests/core/xds/push_request_bench_case.h"

#include "gtest/gtest.h"
#include "sim/kernel/kernel.h"

namespace wavetank::pilot {
namespace {

TEST(PushRequestBenchCase, TenMergedRequestsAreOneOfTenReasons) {
  sim::Kernel kernel(1);
  const PushRequest merged = MergedPushRequest(kernel.NewHost("istiod", 0, nullptr));
  EXPECT_EQ(merged.events, 10);
  EXPECT_EQ(merged.configs_updated.size(), 1u);
  EXPECT_EQ(ReasonNames(merged.reasons).size(), 10u);
}

}  // namespace
}  // namespace wavetank::pilot
