#include "scenarios/results/statistics.h"

#include <gtest/gtest.h>

namespace wavetank::scenario {
namespace {

TEST(ChiSquaredTest, MatchesTextbookValues) {
  // 44 of 100 against a half: chi-squared 1.44, p 0.2301.
  const GoodnessOfFit fit = ChiSquaredTest({44, 56}, {0.5, 0.5});
  EXPECT_NEAR(fit.statistic, 1.44, 1e-9);
  EXPECT_NEAR(fit.p_value, 0.2301, 1e-4);
}

TEST(ChiSquaredTest, ForbidsWhatHasNoShare) {
  EXPECT_TRUE(ChiSquaredTest({999, 1}, {1, 0}).impossible);
  EXPECT_EQ(ChiSquaredTest({1000, 0}, {1, 0}).p_value, 1);
}

TEST(ChiSquaredTest, HoldsNothingWithoutCounts) { EXPECT_EQ(ChiSquaredTest({0, 0}, {0.5, 0.5}).p_value, 0); }

TEST(ChiSquaredTest, RefusesALopsidedSplit) { EXPECT_LT(ChiSquaredTest({600, 400}, {0.5, 0.5}).p_value, 1e-9); }

}  // namespace
}  // namespace wavetank::scenario
