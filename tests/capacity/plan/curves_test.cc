#include "capacity/plan/curves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "capacity/plan/plan_texts.h"
#include "tests/capacity/plan/planned_fleet.h"

namespace wavetank::capacity {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Planned {
  Plan plan;
  Curves curves;
};
Planned PlannedFleet(int64_t replicas, std::string_view slo = "convergence p99 <= 600ms, error 0") {
  Fleet fleet = SmallFleet();
  fleet.istiod.replicas = replicas;
  const CostModel model;
  const PlanOptions options{.samples = 2, .keep_replicas = true};
  auto plan = MakePlan(model, fleet, *ParseSlo(slo), options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  auto curves = DrawCurves(model, *plan, options);
  EXPECT_TRUE(curves.ok()) << curves.status();
  return {*std::move(plan), *std::move(curves)};
}

TEST(ChurnsToDraw, HoldTheFleetsOwnAndTheLargestAndGoBeyondBoth) {
  EXPECT_THAT(ChurnsToDraw(std::nullopt), ElementsAre(0.03125, 0.0625, 0.125, 0.25, 0.5, 1, 2, 4));
  EXPECT_THAT(ChurnsToDraw(1.0), ElementsAre(0.25, 0.5, 1, 2, 4));
  EXPECT_THAT(ChurnsToDraw(230.0), ElementsAre(0.25, 1, 4, 16, 64, 230, 256, 460));
  for (const double most : {1.0 / 16, 0.3, 0.96, 5.5, 256.0}) {
    const std::vector<double> churns = ChurnsToDraw(most);
    EXPECT_THAT(churns, Contains(1.0));
    EXPECT_THAT(churns, Contains(most));
    EXPECT_LT(churns.front(), std::min(1.0, most));
    EXPECT_GT(churns.back(), std::max(1.0, most));
    EXPECT_LE(churns.size(), 12u);
  }
}

TEST(Curves, AtTheFleetsOwnChurnAreThePlansNumbers) {
  const auto [plan, curves] = PlannedFleet(1);
  const auto own = std::find_if(curves.churn.begin(), curves.churn.end(), [](const auto& p) { return p.times == 1; });
  ASSERT_NE(own, curves.churn.end());
  EXPECT_EQ(own->p50, plan.outcome.p50);
  EXPECT_EQ(own->p99, plan.outcome.p99);
  EXPECT_EQ(own->p99_low, plan.outcome.p99_low);
  EXPECT_EQ(own->p99_high, plan.outcome.p99_high);
  EXPECT_EQ(own->changes, plan.outcome.changes);
  EXPECT_EQ(own->kept, plan.broken.empty());
}

TEST(Curves, KeepTheSloUpToTheLargestChurnAndBreakItBeyond) {
  const auto [plan, curves] = PlannedFleet(1);
  ASSERT_TRUE(plan.most_churn.has_value());
  ASSERT_FALSE(plan.churn_open);
  for (const ChurnPoint& p : curves.churn) {
    if (p.times == *plan.most_churn) {
      EXPECT_TRUE(p.kept);
    }
  }
  EXPECT_FALSE(curves.churn.back().kept);
}

// What is used over the time is, on average, what the plan says is used; of one sample.
TEST(Curves, OverTheTimeHaveTheMeanOfTheSample) {
  const auto [plan, curves] = PlannedFleet(1);
  ASSERT_FALSE(curves.time.empty());
  EXPECT_GE(static_cast<int64_t>(curves.time.size()) * curves.span, plan.fleet.duration);
  const auto one = Evaluate(CostModel(), plan.fleet, 1);
  ASSERT_TRUE(one.ok());
  double sum = 0, most_memory = 0;
  int64_t waiting = 0;
  for (const TimePoint& p : curves.time) {
    sum += p.cpus;
    most_memory = std::max(most_memory, p.resident_mb);
    waiting = std::max(waiting, p.waiting);
  }
  EXPECT_NEAR(sum / static_cast<double>(curves.time.size()), one->cpus, one->cpus * 0.01);
  EXPECT_EQ(curves.time.front().resident_mb, one->resident_mb);
  EXPECT_EQ(most_memory, one->after_full_mb);
  EXPECT_EQ(waiting, one->most_waiting);
}

TEST(Curves, OfALoneIstiodsDeathFallToNobodyUntilItIsBack) {
  const auto [plan, curves] = PlannedFleet(1);
  const auto& ramp = curves.istiod_death;
  EXPECT_EQ(ramp.front().served, 0);
  EXPECT_EQ(ramp[1].served, 0);
  EXPECT_EQ(ramp[1].at, plan.outcome.start);
  EXPECT_EQ(ramp.back().at, plan.outcome.istiod_recovery);
  EXPECT_EQ(ramp.back().served, 401);
  EXPECT_EQ(curves.all_connect.back().at, plan.outcome.all_connect);
}

TEST(Curves, OfOneDeathAmongFourNeverFallBelowThreeQuarters) {
  const auto [plan, curves] = PlannedFleet(4);
  EXPECT_DOUBLE_EQ(curves.istiod_death.front().served, 401 * 0.75);
  EXPECT_TRUE(std::is_sorted(curves.istiod_death.begin(), curves.istiod_death.end(), [](const auto& a, const auto& b) {
    return a.at < b.at || (a.at == b.at && a.served < b.served);
  }));
  EXPECT_EQ(curves.istiod_death.back().at, plan.outcome.istiod_recovery);
}

TEST(PlanTexts, SayWhetherTheSloIsKeptAndWhyNot) {
  EXPECT_EQ(TextOf(PlannedFleet(4, "error 0").plan).verdict, "kept with 4 istiods per cluster");
  EXPECT_THAT(TextOf(PlannedFleet(1, "convergence p99 <= 50ms").plan).verdict,
              HasSubstr("NOT kept with 1 per cluster: convergence is"));
  // Where other numbers were tried, that none of them helps is a part of the answer.
  const auto plan = MakePlan(CostModel(), SmallFleet(), *ParseSlo("convergence p99 <= 50ms"), {.samples = 1});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const PlanText text = TextOf(*plan);
  EXPECT_THAT(text.verdict, HasSubstr(" per cluster, nor with up to 64: convergence is"));
  const auto churn = std::find_if(text.figures.begin(), text.figures.end(),
                                  [](const auto& figure) { return figure[0] == "largest churn"; });
  ASSERT_NE(churn, text.figures.end());
  EXPECT_THAT(*churn, ElementsAre("largest churn", "none", "not even a sixteenth of it keeps the SLO"));
}

}  // namespace
}  // namespace wavetank::capacity
