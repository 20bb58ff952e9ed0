#include "fakes/envoy/apps/rate_limiter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/envoy/tcp/rate_limit_names.h"

namespace wavetank::envoysim {
namespace {

LimitedDescriptor User(std::string name) { return {{"user", std::move(name)}}; }

TEST(RateLimiterTest, EachValueOfADescriptorHasAWindowOfItsOwn) {
  RateLimiter limiter({{{{"user", ""}}, 1, 60, "users"}});
  EXPECT_FALSE(limiter.Ask({User("a")}, Time{}).over);
  EXPECT_TRUE(limiter.Ask({User("a")}, Time{}).over);
  EXPECT_FALSE(limiter.Ask({User("b")}, Time{}).over);
}

TEST(RateLimiterTest, AWindowBeginsWithItsFirstRequestAndIsForgottenWhenItEnds) {
  RateLimiter limiter({{{{"user", "a"}}, 1, 60, ""}});
  EXPECT_FALSE(limiter.Ask({User("a")}, Time{} + 10s).over);
  EXPECT_TRUE(limiter.Ask({User("a")}, Time{} + 69s).over);
  EXPECT_FALSE(limiter.Ask({User("a")}, Time{} + 70s).over);
}

TEST(RateLimiterTest, WhatNoLimitNamesIsNeverOver) {
  RateLimiter limiter({{{{"user", "a"}}, 0, 60, ""}});
  const LimitVerdict verdict = limiter.Ask({{{"user", "a"}, {"path", "/"}}}, Time{});
  EXPECT_FALSE(verdict.over);
  EXPECT_EQ(verdict.statuses.at(0).limit, nullptr);
}

TEST(RateLimiterTest, ValuesThatClientsChooseAreNoOtherEntries) {
  RateLimiter limiter({{{{"path", ""}}, 0, 60, ""}});
  RequestSpec question;
  question.protocol = HttpProtocol::kHttp2;
  question.path = kRateLimitMethod;
  question.headers.emplace_back(kRateLimitDescriptor, "path=" + EscapedForLimiter("/a|user=admin%7C"));
  std::string kept;
  EXPECT_EQ(UnescapedByLimiter(EscapedForLimiter("/a|user=admin%7C")), "/a|user=admin%7C");
  RateLimiterReply(question, limiter, Time{}, "", &kept);
  EXPECT_NE(kept.find(kRateLimitStatus), std::string::npos) << kept;  // one entry, which the limit knows
}

TEST(RateLimiterTest, OneDescriptorOverItsLimitIsEnough) {
  RateLimiter limiter({{{{"user", "a"}}, 0, 60, ""}, {{{"user", "b"}}, 5, 60, ""}});
  const LimitVerdict verdict = limiter.Ask({User("b"), User("a")}, Time{});
  EXPECT_TRUE(verdict.over);
  EXPECT_FALSE(verdict.statuses.at(0).over);
  EXPECT_EQ(verdict.statuses.at(0).remaining, 4u);
}

}  // namespace
}  // namespace wavetank::envoysim
