// Token buckets in virtual time. How requests fare with them is compared with a real Envoy
// (tests/oracles/envoy/cases/filters.json); the kind before 1.31, no Envoy here has any more.
#include "fakes/envoy/filters/limits/token_bucket.h"

#include <gtest/gtest.h>

namespace wavetank::envoysim {
namespace {

constexpr Time kStart{100s};

int Takes(TokenBucket& bucket, Time now, int asked) {
  int taken = 0;
  for (int i = 0; i < asked; ++i) taken += bucket.Take(now) ? 1 : 0;
  return taken;
}

TEST(TokenBucketTest, TokensFlowBackContinuously) {
  TokenBucket bucket({10, 10, 1s}, kStart, /*by_timer=*/false);
  EXPECT_EQ(Takes(bucket, kStart, 20), 10);
  EXPECT_EQ(Takes(bucket, kStart + 99ms, 5), 0);
  EXPECT_EQ(Takes(bucket, kStart + 100ms, 5), 1);
  EXPECT_EQ(Takes(bucket, kStart + 550ms, 9), 4);
  // Half a token is left from before.
  EXPECT_EQ(Takes(bucket, kStart + 600ms, 9), 1);
  EXPECT_EQ(Takes(bucket, kStart + 1h, 20), 10);
}

TEST(TokenBucketTest, Before131ATimerAddsAPortion) {
  TokenBucket bucket({10, 4, 1s}, kStart, /*by_timer=*/true);
  EXPECT_EQ(Takes(bucket, kStart + 500ms, 20), 10);
  EXPECT_EQ(Takes(bucket, kStart + 999ms, 20), 0);
  EXPECT_EQ(Takes(bucket, kStart + 1s, 20), 4);
  // The timer runs from the configuration on, not from the last request.
  EXPECT_EQ(Takes(bucket, kStart + 1900ms, 20), 0);
  EXPECT_EQ(Takes(bucket, kStart + 2s, 20), 4);
  EXPECT_EQ(Takes(bucket, kStart + 20s, 20), 10);
}

TEST(TokenBucketTest, TheRestIsWholeAndNeverMoreThanTheBucketHolds) {
  TokenBucket bucket({3, 1, 7s}, kStart, /*by_timer=*/false);
  EXPECT_EQ(bucket.Remaining(kStart), 3u);
  EXPECT_EQ(Takes(bucket, kStart, 3), 3);
  EXPECT_EQ(bucket.SecondsToReset(kStart + 5500ms), 2);
  EXPECT_EQ(bucket.Remaining(kStart + 6s), 0u);
  EXPECT_EQ(bucket.Remaining(kStart + 7s), 1u);
  EXPECT_EQ(bucket.Remaining(kStart + 24h), 3u);
}

}  // namespace
}  // namespace wavetank::envoysim
