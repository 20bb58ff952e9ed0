#include "fakes/kube/workloads/cron_jobs.h"

#include "fakes/kube/objects/cron_schedule.h"
#include "fakes/kube/workloads/jobs.h"
#include "tests/fakes/kube/cluster_fixture.h"

namespace wavetank::fakekube {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

// 2023-09-01T00:00:00Z was a Friday.
constexpr int64_t kFriday = kWorldEpochUnixSeconds, kHour = 3600, kDay = 24 * kHour;

int64_t Next(const char* schedule, int64_t after) {
  const absl::StatusOr<CronSchedule> parsed = CronSchedule::Parse(schedule);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() ? parsed->Next(after).value_or(-1) : -2;
}

TEST(CronScheduleTest, FieldsHaveListsRangesAndSteps) {
  EXPECT_EQ(Next("* * * * *", kFriday), kFriday + 60);
  EXPECT_EQ(Next("*/15 * * * *", kFriday + 1), kFriday + 15 * 60);
  EXPECT_EQ(Next("5,7 3-4 * * *", kFriday), kFriday + 3 * kHour + 5 * 60);
  EXPECT_EQ(Next("0 0 * * mon", kFriday), kFriday + 3 * kDay);
  EXPECT_EQ(Next("0 0 2 * sun", kFriday), kFriday + kDay);  // either day is enough
  EXPECT_EQ(Next("@daily", kFriday), kFriday + kDay);
  EXPECT_EQ(Next("59 23 31 2 *", kFriday), -1);
}

TEST(CronScheduleTest, AStarWithAStepOfOneIsAStar) {
  EXPECT_EQ(Next("0 0 13 * */1", kFriday), kFriday + 12 * kDay);  // not "or any weekday"
  EXPECT_EQ(Next("0 0 13 * *,*/2", kFriday), kFriday + 12 * kDay);
  EXPECT_EQ(Next("0 0 13 * */2", kFriday), kFriday + kDay);
}

TEST(CronScheduleTest, StepsBeyondTheFieldStrikeOnce) {
  EXPECT_EQ(Next("1/2147483647 * * * *", kFriday), kFriday + 60);
  EXPECT_EQ(Next("1/2147483647 * * * *", kFriday + 60), kFriday + kHour + 60);
}

TEST(CronScheduleTest, EveryTakesGosDurationsInWholeSeconds) {
  EXPECT_EQ(Next("@every 1.5h", kFriday), kFriday + kHour + kHour / 2);
  EXPECT_EQ(Next("@every 500ms", kFriday), kFriday + 1);
  EXPECT_EQ(Next("@every 1000000h", kFriday), kFriday + 1'000'000 * kHour);
  EXPECT_FALSE(CronSchedule::Parse("@every -1h").ok());
  EXPECT_FALSE(CronSchedule::Parse("@every 1000000h1000000h1000000h").ok());
}

TEST(CronScheduleTest, TheLastOfManyStrikesIsFound) {
  const auto last = [](const char* schedule, int64_t after, int64_t until) {
    return CronSchedule::Parse(schedule)->Last(after, until).value_or(-1);
  };
  EXPECT_EQ(last("* * * * *", kFriday, kFriday + 3650 * kDay + 59), kFriday + 3650 * kDay);
  EXPECT_EQ(last("0 9,10 1 * *", kFriday, kFriday + 20 * kDay), kFriday + 10 * kHour);
  EXPECT_EQ(last("@every 7s", kFriday, kFriday + kDay), kFriday + kDay / 7 * 7);
  EXPECT_EQ(last("0 0 * * *", kFriday, kFriday + kHour), -1);
}

TEST(CronScheduleTest, WhatIsNoScheduleIsRefusedInTheParsersWords) {
  EXPECT_EQ(CronSchedule::Parse("* * *").status().message(), "expected exactly 5 fields, found 3: [* * *]");
  EXPECT_THAT(std::string(CronSchedule::Parse("61 * * * *").status().message()), HasSubstr("above maximum (59)"));
  EXPECT_THAT(std::string(CronSchedule::Parse("@often").status().message()), HasSubstr("unrecognized descriptor"));
}

class CronJobsTest : public ClusterTest {
 protected:
  void Make(const json& more, const json& command) {
    json spec = {{"schedule", "* * * * *"}};
    spec.update(more);
    spec["jobTemplate"]["spec"]["template"]["spec"] = {
        {"restartPolicy", "Never"}, {"containers", {{{"name", "c"}, {"image", "busybox"}, {"command", command}}}}};
    ASSERT_TRUE(api()
                    .Create({{"apiVersion", "batch/v1"},
                             {"kind", "CronJob"},
                             {"metadata", {{"name", "cron"}, {"namespace", "default"}}},
                             {"spec", spec}})
                    .ok());
  }
  void Pass(Duration time) { kernel_.RunUntil(kernel_.Now() + time); }
};

TEST_F(CronJobsTest, AJobIsMadeAtEachStrikeAndOldOnesGo) {
  Make({{"successfulJobsHistoryLimit", 2}}, {"true"});
  Pass(90s);
  ASSERT_THAT(api().List("Job", "default"), SizeIs(1));
  EXPECT_EQ(api().Get("CronJob", {"default", "cron"})->body["status"]["lastScheduleTime"], "2023-09-01T00:01:00Z");
  Pass(5min);
  EXPECT_THAT(api().List("Job", "default"), SizeIs(2));
}

// An API server refuses it; what a log holds, nobody has looked at.
TEST_F(CronJobsTest, ANegativeHistoryKeepsNoJobThatHasEnded) {
  Make({{"successfulJobsHistoryLimit", -5}}, {"true"});
  Pass(5min);
  EXPECT_LE(api().List("Job", "default").size(), 1u);
}

TEST_F(CronJobsTest, AForbiddenStrikeLetsTheRunningJobBe) {
  Make({{"concurrencyPolicy", "Forbid"}}, {"sleep", "infinity"});
  Pass(10min);
  EXPECT_THAT(api().List("Job", "default"), SizeIs(1));
}

TEST_F(CronJobsTest, AStrikeReplacesTheRunningJobWhereItShould) {
  Make({{"concurrencyPolicy", "Replace"}}, {"sleep", "infinity"});
  Pass(65s);
  const std::string first = api().List("Job", "default").at(0)->meta.name;
  Pass(60s);
  ASSERT_THAT(api().List("Job", "default"), SizeIs(1));
  EXPECT_NE(api().List("Job", "default")[0]->meta.name, first);
}

TEST_F(CronJobsTest, OneThatIsResumedAfterAWeekStrikesOnce) {
  Make({{"suspend", true}}, {"true"});
  Pass(7 * 24h);
  ASSERT_TRUE(api().Patch("CronJob", {"default", "cron"}, {{"spec", {{"suspend", false}}}}).ok());
  Pass(1s);
  EXPECT_THAT(api().List("Job", "default"), SizeIs(1));
}

// kubernetes: pkg/controller/cronjob/utils.go, mostRecentScheduleTime: what was last scheduled long ago is late, what
// will have been is waited for.
TEST_F(CronJobsTest, TimesThatAClientWroteIntoItsStatusHurtNobody) {
  for (const auto& [time, jobs] : {std::pair{"0001-01-01T00:00:00Z", true}, std::pair{"9999-12-31T23:59:59Z", false}}) {
    Make(json::object(), {"true"});
    ASSERT_TRUE(api().Patch("CronJob", {"default", "cron"}, {{"status", {{"lastScheduleTime", time}}}}).ok());
    Pass(61s);
    EXPECT_EQ(!api().List("Job", "default").empty(), jobs) << time;
    ASSERT_TRUE(api().Delete("CronJob", {"default", "cron"}).ok());
    Pass(5s);
  }
}

TEST_F(CronJobsTest, ASuspendedOneStrikesNever) {
  Make({{"suspend", true}}, {"true"});
  Pass(5min);
  EXPECT_THAT(api().List("Job", "default"), SizeIs(0));
}

}  // namespace
}  // namespace wavetank::fakekube
