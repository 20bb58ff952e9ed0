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

TEST_F(CronJobsTest, ASuspendedOneStrikesNever) {
  Make({{"suspend", true}}, {"true"});
  Pass(5min);
  EXPECT_THAT(api().List("Job", "default"), SizeIs(0));
}

}  // namespace
}  // namespace wavetank::fakekube
