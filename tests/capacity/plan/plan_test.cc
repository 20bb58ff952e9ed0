#include "capacity/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/status.h"
#include "tests/capacity/plan/planned_fleet.h"

namespace wavetank::capacity {
namespace {

using ::testing::HasSubstr;

Slo Within(std::string_view text) {
  const auto slo = ParseSlo(text);
  EXPECT_TRUE(slo.ok()) << slo.status();
  return slo.ok() ? *slo : Slo();
}

TEST(Slo, IsReadTermByTerm) {
  const Slo slo = Within("convergence p90 <= 1500ms, cpu <= 80%, error 0");
  EXPECT_EQ(slo.limit, 1500ms);
  EXPECT_EQ(slo.convergence_ppm, 900'000);
  EXPECT_EQ(slo.cpu_ppm, 800'000);
  EXPECT_TRUE(slo.no_error);
  EXPECT_EQ(slo.Text(), "convergence p90 <= 1.50 s, cpu <= 80 %, error 0");
}

TEST(Slo, WithWrongUnitsIsRefusedWithItsTermAndARemedy) {
  const auto why = [](std::string_view text) { return std::string(Message(ParseSlo(text).status())); };
  EXPECT_THAT(why("convergence p99 <= 2"), HasSubstr("'2' is no duration; write 'convergence p99 <= 2s'"));
  EXPECT_THAT(why("convergence p98 <= 2s"), HasSubstr("'p98' is no percentile"));
  EXPECT_THAT(why("convergence p99 < 2s"), HasSubstr("<= and a duration"));
  EXPECT_THAT(why("error 1"), HasSubstr("only be asked to be 0"));
  EXPECT_THAT(why("cpu <= 2GB"), HasSubstr("is no share"));
  EXPECT_THAT(why("latency <= 1s"), HasSubstr("'latency' is nothing"));
  EXPECT_THAT(why("error 0,"), HasSubstr("empty term"));
}

TEST(Slo, HasOneBoundOfAKind) {
  const auto why = [](std::string_view text) { return std::string(Message(ParseSlo(text).status())); };
  EXPECT_THAT(why("convergence p50 <= 1s, error 0, convergence p99 <= 2s"),
              HasSubstr("' convergence p99 <= 2s': convergence has a bound already"));
  EXPECT_THAT(why("cpu <= 80%, cpu <= 70%"), HasSubstr("cpu has a bound already"));
}

TEST(Evaluate, MoreIstiodsServeProxiesSoonerAndHoldLess) {
  const CostModel model;
  Fleet fleet = SmallFleet();
  const auto one = Evaluate(model, fleet, 2);
  fleet.istiod.replicas = 4;
  const auto four = Evaluate(model, fleet, 2);
  ASSERT_TRUE(one.ok() && four.ok());
  EXPECT_LT(four->p99, one->p99);
  EXPECT_LT(four->resident_mb, one->resident_mb);
  EXPECT_LT(four->istiod_recovery, one->istiod_recovery);
  EXPECT_LE(one->p99_low, one->p99);
  EXPECT_EQ(one->changes, four->changes);  // the same churn
}

TEST(Evaluate, IsTheSameEachTime) {
  const CostModel model;
  const auto one = Evaluate(model, SmallFleet(), 2), again = Evaluate(model, SmallFleet(), 2);
  ASSERT_TRUE(one.ok() && again.ok());
  EXPECT_EQ(one->p99, again->p99);
  EXPECT_EQ(one->cpus, again->cpus);
}

// 25 streams a second, and a lone istiod that has to start first.
TEST(Evaluate, ProxiesOfADeadIstiodConnectAsFastAsTheLimitLets) {
  const CostModel model;
  Fleet fleet = SmallFleet();
  fleet.proxies = 999;
  fleet.services = 1;
  const auto one = Evaluate(model, fleet, 1);
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->all_connect, 40s);
  EXPECT_GT(one->istiod_recovery, 45s);
  fleet.istiod.replicas = 2;
  const auto two = Evaluate(model, fleet, 1);
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(two->istiod_recovery, 20s);
}

// 160 TokenReviews at once, then 80 a second, two for each proxy that is new.
TEST(Evaluate, TokenReviewsBindWhereMoreStreamsASecondAreLetIn) {
  const CostModel model;
  Fleet fleet = SmallFleet();
  fleet.proxies = 999;
  fleet.services = 1;
  fleet.istiod.requests_per_second = 1000;
  fleet.istiod.cpus = 64;
  const auto bound = Evaluate(model, fleet, 1);
  ASSERT_TRUE(bound.ok());
  EXPECT_EQ(bound->all_connect, 23s);
  fleet.istiod.api_qps = 10'000;
  const auto free = Evaluate(model, fleet, 1);
  ASSERT_TRUE(free.ok());
  EXPECT_LT(free->all_connect, 3s);
}

TEST(Evaluate, WatchesOfApiServersGrowWithChurnAndEndpointsOfASlice) {
  const CostModel model;
  Fleet fleet = SmallFleet();
  const auto once = Evaluate(model, fleet, 2), faster = Evaluate(model, fleet, 2, 4);
  fleet.endpoints.fixed = 50;
  const auto larger = Evaluate(model, fleet, 2);
  ASSERT_TRUE(once.ok() && faster.ok() && larger.ok());
  EXPECT_GT(faster->api.kilobytes_per_second, 2 * once->api.kilobytes_per_second);
  EXPECT_GT(larger->api.kilobytes_per_second, 10 * once->api.kilobytes_per_second);
  EXPECT_GT(larger->api.start_mb, 10 * once->api.start_mb);
}

// Real Envoys on six configurations (the figures of capacity/data/envoy-1.40.csv).
TEST(Evaluate, AProxyHoldsWhatARealEnvoyHolds) {
  struct Row {
    int64_t services, endpoints;
    double kilobytes;
  };
  for (const Row& row : {Row{1, 1, 72588}, Row{100, 1, 84436}, Row{300, 1, 106540}, Row{100, 10, 87256},
                         Row{100, 40, 99920}, Row{300, 20, 128452}}) {
    Fleet fleet = SmallFleet();
    fleet.clusters = 1;
    fleet.services = row.services;
    fleet.endpoints.fixed = row.endpoints;
    const auto outcome = Evaluate(CostModel(), fleet, 1);
    ASSERT_TRUE(outcome.ok());
    EXPECT_NEAR(outcome->envoy_mb, row.kilobytes / 1024, row.kilobytes / 1024 / 50) << row.services;
  }
}

TEST(Plan, FindsTheFewestIstiodsThatKeepTheSlo) {
  const CostModel model;
  const Fleet fleet = SmallFleet();
  const Slo slo = Within("convergence p99 <= 300ms, error 0");
  const auto plan = MakePlan(model, fleet, slo, {.samples = 2});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->broken, "");
  ASSERT_GT(plan->fleet.istiod.replicas, 1);
  EXPECT_THAT(plan->asked_broken, HasSubstr("convergence is"));
  Fleet fewer = fleet;
  fewer.istiod.replicas = plan->fleet.istiod.replicas - 1;
  const auto outcome = Evaluate(model, fewer, 2);
  ASSERT_TRUE(outcome.ok());
  EXPECT_NE(Breaks(slo, fewer, *outcome), "");
}

TEST(Plan, TheLargestChurnKeepsTheSloAndMoreBreaksIt) {
  const CostModel model;
  Fleet fleet = SmallFleet();
  const Slo slo = Within("convergence p99 <= 1s");
  const auto plan = MakePlan(model, fleet, slo, {.samples = 1, .keep_replicas = true});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_TRUE(plan->most_churn.has_value());
  if (!plan->churn_open) {
    const auto more = Evaluate(model, fleet, 1, *plan->most_churn * 1.2);
    ASSERT_TRUE(more.ok());
    EXPECT_NE(Breaks(slo, fleet, *more), "");
  }
  EXPECT_EQ(plan->remedies.size(), 8u);
}

TEST(Plan, SaysWhatNoIstiodCanDo) {
  const auto plan = MakePlan(CostModel(), SmallFleet(), Within("convergence p99 <= 50ms"), {.samples = 1});
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->broken, HasSubstr("convergence is"));  // the debounce alone takes 100 ms
  EXPECT_FALSE(plan->most_churn.has_value());
}

TEST(Plan, ASettingIsToldAsItWasTried) {
  Fleet fleet = SmallFleet();
  fleet.istiod.debounce_after = 2s;  // a tenth of the 10 s that a push waits at most would be less than that
  const auto plan = MakePlan(CostModel(), fleet, Within("error 0"), {.samples = 1, .keep_replicas = true});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto most = std::find_if(plan->remedies.begin(), plan->remedies.end(),
                                 [](const Remedy& r) { return r.setting == "PILOT_DEBOUNCE_MAX"; });
  ASSERT_NE(most, plan->remedies.end());
  EXPECT_EQ(most->from, "10.0 s");
  EXPECT_EQ(most->to, "2.00 s");
}

TEST(Plan, AnIstiodWithTooLittleMemoryIsKilled) {
  Fleet fleet = SmallFleet();
  fleet.istiod.memory_mb = 64;
  const auto plan = MakePlan(CostModel(), fleet, Within("error 0"), {.samples = 1});
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->broken, HasSubstr("istiod is killed"));
}

}  // namespace
}  // namespace wavetank::capacity
