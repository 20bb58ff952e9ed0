#include "fakes/kube/workloads/jobs.h"

#include "tests/fakes/kube/cluster_fixture.h"

namespace wavetank::fakekube {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class JobsTest : public ClusterTest {
 protected:
  void Make(const json& spec, const json& command, const std::string& restart = "Never") {
    json whole = spec;
    whole["template"] = {
        {"spec",
         {{"restartPolicy", restart}, {"containers", {{{"name", "c"}, {"image", "busybox"}, {"command", command}}}}}}};
    ASSERT_TRUE(api()
                    .Create({{"apiVersion", "batch/v1"},
                             {"kind", "Job"},
                             {"metadata", {{"name", "job"}, {"namespace", "default"}}},
                             {"spec", whole}})
                    .ok());
  }
  void Pass(Duration time) { kernel_.RunUntil(kernel_.Now() + time); }
  ObjectRef Job() { return api().Get("Job", {"default", "job"}); }
  json Status() { return Job()->body["status"]; }
  std::vector<std::string> Phases() {
    std::vector<std::string> out;
    for (const ObjectRef& pod : api().List("Pod", "default")) out.push_back(pod->body["status"]["phase"]);
    return out;
  }
};

TEST_F(JobsTest, AJobIsCompleteOnceAsManyPodsHaveSucceededAsItWants) {
  Make({{"completions", 3}, {"parallelism", 2}}, {"date"});
  Pass(1s);
  EXPECT_THAT(api().List("Pod", "default"), SizeIs(2));
  Pass(20s);
  EXPECT_EQ(Status()["succeeded"], 3);
  EXPECT_EQ(JobEnded(*Job()), "Complete");
  EXPECT_TRUE(Status().contains("completionTime"));
  EXPECT_THAT(Phases(), testing::Each("Succeeded"));
}

TEST_F(JobsTest, AJobOfFailingPodsTriesAgainLaterAndLaterAndThenFails) {
  Make({{"backoffLimit", 2}}, {"sh", "-c", "echo no; exit 3"});
  Pass(5s);
  EXPECT_EQ(Status()["failed"], 1);
  Pass(5min);
  EXPECT_EQ(Status()["failed"], 3);
  EXPECT_EQ(JobEnded(*Job()), "Failed");
  EXPECT_EQ(Status()["conditions"][0]["reason"], "BackoffLimitExceeded");
  const json status = api().List("Pod", "default")[0]->body["status"]["containerStatuses"][0];
  EXPECT_EQ(status["state"]["terminated"]["exitCode"], 3);
}

TEST_F(JobsTest, AJobBeyondItsDeadlineFails) {
  Make({{"activeDeadlineSeconds", 30}}, {"sleep", "1h"});
  Pass(40s);
  EXPECT_EQ(JobEnded(*Job()), "Failed");
  EXPECT_EQ(Status()["conditions"][0]["reason"], "DeadlineExceeded");
  EXPECT_THAT(api().List("Pod", "default"), IsEmpty());
}

TEST_F(JobsTest, AnIndexedJobHasAPodForEachIndex) {
  Make({{"completions", 3}, {"parallelism", 3}, {"completionMode", "Indexed"}}, {"true"});
  Pass(10s);
  EXPECT_EQ(Status()["completedIndexes"], "0-2");
  for (const ObjectRef& pod : api().List("Pod", "default"))
    EXPECT_EQ(pod->body["spec"]["containers"][0]["env"][0]["name"], "JOB_COMPLETION_INDEX");
}

TEST_F(JobsTest, ASuspendedJobHasNoPodsUntilItIsResumed) {
  Make({{"suspend", true}}, {"true"});
  Pass(5s);
  EXPECT_THAT(api().List("Pod", "default"), IsEmpty());
  EXPECT_EQ(Status()["conditions"][0]["type"], "Suspended");
  ASSERT_TRUE(api().Patch("Job", {"default", "job"}, {{"spec", {{"suspend", false}}}}).ok());
  Pass(10s);
  EXPECT_EQ(JobEnded(*Job()), "Complete");
}

TEST_F(JobsTest, AFinishedJobGoesAfterItsTimeToLive) {
  Make({{"ttlSecondsAfterFinished", 60}}, {"true"});
  Pass(30s);
  ASSERT_NE(Job(), nullptr);
  Pass(60s);
  EXPECT_EQ(Job(), nullptr);
  EXPECT_THAT(api().List("Pod", "default"), IsEmpty());
}

TEST_F(JobsTest, AJobFindsItsPodsByItsUid) {
  Make(json::object(), {"true"});
  const ObjectRef job = Job();
  EXPECT_EQ(job->body["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"], job->meta.uid);
  Pass(5s);
  const kube::Labels labels = api().List("Pod", "default").at(0)->meta.labels;
  EXPECT_EQ(labels.at("job-name"), "job");
  EXPECT_EQ(labels.at("controller-uid"), job->meta.uid);
}

TEST_F(JobsTest, AContainerThatFailsIsStartedAgainInItsPodWhereThePolicyIsOnFailure) {
  Make({{"backoffLimit", 6}}, {"false"}, "OnFailure");
  Pass(20s);
  const json status = api().List("Pod", "default").at(0)->body["status"];
  EXPECT_EQ(status["phase"], "Running");
  EXPECT_GE(status["containerStatuses"][0]["restartCount"], 1);
}

TEST_F(JobsTest, APodWithAServerRunsOn) {
  ASSERT_TRUE(
      api()
          .Create(
              {{"apiVersion", "v1"},
               {"kind", "Pod"},
               {"metadata", {{"name", "web"}, {"namespace", "default"}}},
               {"spec",
                {{"restartPolicy", "Never"},
                 {"containers",
                  {{{"name", "c"}, {"image", "x"}, {"command", {"serve"}}, {"ports", {{{"containerPort", 80}}}}}}}}}})
          .ok());
  Pass(10min);
  EXPECT_THAT(Phases(), testing::ElementsAre("Running"));
}

TEST_F(JobsTest, ASidecarRunsOnUnlessTheWorkAsksItToEnd) {
  const auto make = [&](const std::string& name, const std::string& script) {
    const json proxy = {
        {"name", "istio-proxy"}, {"image", "proxyv2"}, {"ports", json::array({{{"containerPort", 15090}}})}};
    const json work = {{"name", "c"}, {"image", "busybox"}, {"command", {"sh", "-c", script}}};
    ASSERT_TRUE(api()
                    .Create({{"apiVersion", "v1"},
                             {"kind", "Pod"},
                             {"metadata", {{"name", name}, {"namespace", "default"}}},
                             {"spec", {{"restartPolicy", "Never"}, {"containers", json::array({work, proxy})}}}})
                    .ok());
  };
  make("a", "sleep 5");
  make("b", "sleep 5; curl -X POST http://localhost:15020/quitquitquit");
  Pass(1min);
  EXPECT_THAT(Phases(), testing::ElementsAre("Running", "Succeeded"));
}

}  // namespace
}  // namespace wavetank::fakekube
