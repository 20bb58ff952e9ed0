#include "sim/apps/retry.h"

#include <gtest/gtest.h>

namespace wavetank::sim {
namespace {

envoysim::RequestRecord Answered(uint16_t code) {
  envoysim::RequestRecord record;
  record.code = code;
  return record;
}

TEST(RetryRule, TriesAgainWhatItSaysAndNoMoreThanItSays) {
  RetryRule rule;
  rule.attempts = 3;
  EXPECT_TRUE(rule.Again(1, Answered(503)));
  EXPECT_TRUE(rule.Again(2, Answered(0)));
  EXPECT_FALSE(rule.Again(3, Answered(503)));
  EXPECT_FALSE(rule.Again(1, Answered(200)));
  EXPECT_FALSE(rule.Again(1, Answered(429)));
  rule.on = {"429", "gateway-error"};
  EXPECT_TRUE(rule.Again(1, Answered(429)));
  EXPECT_TRUE(rule.Again(1, Answered(504)));
  EXPECT_FALSE(rule.Again(1, Answered(500)));
  EXPECT_FALSE(rule.Again(1, Answered(0)));
}

TEST(RetryRule, WaitsTwiceAsLongEachTimeUpToItsMost) {
  RetryRule rule;
  rule.back_off = 10ms;
  rule.most = 35ms;
  EXPECT_EQ(rule.Wait(1), 10ms);
  EXPECT_EQ(rule.Wait(2), 20ms);
  EXPECT_EQ(rule.Wait(3), 35ms);
  EXPECT_EQ(rule.Wait(60), 35ms);
}

TEST(RetryRule, KnowsItsReasons) {
  for (const char* good : {"5xx", "4xx", "no-answer", "gateway-error", "429"}) EXPECT_TRUE(IsRetryReason(good)) << good;
  for (const char* bad : {"", "6xx", "99", "600", "connect"}) EXPECT_FALSE(IsRetryReason(bad)) << bad;
}

}  // namespace
}  // namespace wavetank::sim
