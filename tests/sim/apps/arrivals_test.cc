#include "sim/apps/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace wavetank {
namespace {

TEST(ExponentialWait, IsDistributedAsTheTimeUntilTheNextOfIndependentArrivals) {
  RandomStream random(1, "arrivals");
  constexpr int kDraws = 200'000;
  constexpr int64_t kMean = 1'000'000;
  std::vector<double> waits;
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    const auto wait = static_cast<double>(ExponentialWait(random, kMean)) / kMean;
    ASSERT_GE(wait, 0);
    waits.push_back(wait);
    sum += wait;
  }
  EXPECT_NEAR(sum / kDraws, 1, 0.01);
  // Kolmogorov and Smirnov's distance; 1.95 / sqrt(n) is exceeded once in a thousand streams.
  std::sort(waits.begin(), waits.end());
  double distance = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double expected = 1 - std::exp(-waits[static_cast<size_t>(i)]);
    distance = std::max(distance, std::abs(expected - static_cast<double>(i) / kDraws));
  }
  EXPECT_LT(distance, 1.95 / std::sqrt(kDraws));
}

TEST(ExponentialWait, OfAStreamIsTheSameEverywhere) {
  RandomStream random(7, "a");
  std::vector<int64_t> waits;
  waits.reserve(4);
  for (int i = 0; i < 4; ++i) waits.push_back(ExponentialWait(random, 1'000'000'000));
  EXPECT_EQ(waits, (std::vector<int64_t>{1144338017, 1237184361, 2079167103, 764958811}));
}

TEST(ExponentialWait, OfTheLeastMeanIsANumber) {
  RandomStream random(3, "b");
  for (int i = 0; i < 1000; ++i) {
    const int64_t wait = ExponentialWait(random, 1);
    EXPECT_GE(wait, 0);
    EXPECT_LT(wait, 100);
  }
}

}  // namespace
}  // namespace wavetank
