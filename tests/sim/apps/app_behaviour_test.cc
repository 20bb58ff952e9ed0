#include "sim/apps/app_behaviour.h"

#include <gtest/gtest.h>

namespace wavetank::sim {
namespace {

class Behaviour : public testing::Test {
 protected:
  envoysim::AppReply Ask(Duration age = 1h) {
    envoysim::AppReply reply;
    Behave(behaviour_, {spec_, info_}, age, random_, &reply);
    return reply;
  }

  AppBehaviour behaviour_;
  envoysim::RequestSpec spec_;
  envoysim::AcceptInfo info_;
  RandomStream random_{7, "behaviour"};
};

TEST_F(Behaviour, LeavesNothingToChanceWhereNothingIsSaid) {
  EXPECT_EQ(Ask().code, 200);
  EXPECT_EQ(Ask().delay, Duration::zero());
  EXPECT_EQ(random_.draws(), 0u);
}

TEST_F(Behaviour, TimesOfServiceHaveTheGivenQuantiles) {
  behaviour_.latency = {{500'000, 5ms}, {990'000, 80ms}, {1'000'000, 200ms}};
  int below_p50 = 0, below_p99 = 0;
  constexpr int kRequests = 20'000;
  for (int i = 0; i < kRequests; ++i) {
    const Duration delay = Ask().delay;
    ASSERT_LE(delay, 200ms);
    below_p50 += delay <= 5ms ? 1 : 0;
    below_p99 += delay <= 80ms ? 1 : 0;
  }
  EXPECT_NEAR(below_p50, kRequests / 2, kRequests / 50);
  EXPECT_NEAR(below_p99, kRequests * 99 / 100, kRequests / 200);
}

TEST_F(Behaviour, TheFirstAnswerThatFitsIsGiven) {
  behaviour_.answers = {{.reset = true, .header = "x-fail", .value = "hard"},
                        {.code = 500, .header = "x-fail", .value = "soft"},
                        {.code = 503, .share_ppm = 100'000}};
  int failed = 0;
  for (int i = 0; i < 10'000; ++i) failed += Ask().code == 503 ? 1 : 0;
  EXPECT_NEAR(failed, 1'000, 150);
  spec_.headers = {{"x-fail", "soft"}};
  EXPECT_EQ(Ask().code, 500);
  spec_.headers = {{"x-fail", "hard"}};
  EXPECT_EQ(Ask().code, 0) << "the connection is reset";
}

TEST_F(Behaviour, APodThatHasJustStartedIsSlowAndGetsFaster) {
  behaviour_.latency = {{1, 10ms}, {1'000'000, 10ms}};
  behaviour_.slow_start = 30s;
  behaviour_.slow_factor = 10;
  EXPECT_EQ(Ask(0s).delay, 100ms);
  EXPECT_EQ(Ask(15s).delay, 55ms);
  EXPECT_EQ(Ask(30s).delay, 10ms);
}

TEST(Behaviours, TheLatestRuleThatMatchesAPodIsInForce) {
  AppBehaviours all;
  const auto v1 = [&all] { return all.Of("c1", "sample", "helloworld", "v1"); };
  const auto v2 = [&all] { return all.Of("c2", "sample", "helloworld", "v2"); };
  EXPECT_EQ(v1(), nullptr);
  all.Set({"", "", "helloworld", "", {.slow_factor = 2}});
  all.Set({"c2", "sample", "helloworld", "v2", {.slow_factor = 3}});
  EXPECT_EQ(v1()->slow_factor, 2);
  EXPECT_EQ(v2()->slow_factor, 3);
  all.Set({"", "", "helloworld", "", {.slow_factor = 4}});
  EXPECT_EQ(v1()->slow_factor, 4) << "the same pods' rule is replaced";
  EXPECT_EQ(v2()->slow_factor, 4) << "and is the latest";
}

}  // namespace
}  // namespace wavetank::sim
