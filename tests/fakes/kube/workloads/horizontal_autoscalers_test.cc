#include "fakes/kube/workloads/horizontal_autoscalers.h"

#include "core/base/json_access.h"
#include "fakes/kube/control/pod_template.h"
#include "tests/fakes/kube/cluster_fixture.h"

namespace wavetank::fakekube {
namespace {

class HorizontalAutoscalerTest : public ClusterTest {
 protected:
  void MakeDeployment(int replicas) {
    ASSERT_TRUE(api()
                    .Apply({{"apiVersion", "apps/v1"},
                            {"kind", "Deployment"},
                            {"metadata", {{"name", "web"}, {"namespace", "default"}}},
                            {"spec",
                             {{"replicas", replicas},
                              {"selector", {{"matchLabels", {{"app", "web"}}}}},
                              {"template",
                               {{"metadata", {{"labels", {{"app", "web"}}}}},
                                {"spec", {{"containers", {{{"name", "c"}, {"image", "x"}}}}}}}}}}})
                    .ok());
  }
  void MakeAutoscaler(int least, int most, const std::string& target = "web") {
    ASSERT_TRUE(
        api()
            .Apply({{"apiVersion", "autoscaling/v2"},
                    {"kind", "HorizontalPodAutoscaler"},
                    {"metadata", {{"name", "web"}, {"namespace", "default"}}},
                    {"spec",
                     {{"minReplicas", least},
                      {"maxReplicas", most},
                      {"scaleTargetRef", {{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", target}}}}}})
            .ok());
  }
  void Pass(Duration time) { kernel_.RunUntil(kernel_.Now() + time); }
  int64_t Wanted() { return Replicas(*api().Get("Deployment", {"default", "web"})); }
  json Condition(const std::string& type) {
    const ObjectRef autoscaler = api().Get("HorizontalPodAutoscaler", {"default", "web"});
    for (const json& condition : Items(At(autoscaler->body, {"status", "conditions"}))) {
      if (Text(condition, "type") == type) return condition;
    }
    return {};
  }
};

TEST_F(HorizontalAutoscalerTest, FewerReplicasThanItsMinimumAreRaisedToIt) {
  MakeDeployment(1);
  MakeAutoscaler(2, 5);
  Pass(10s);
  EXPECT_EQ(Wanted(), 1);
  Pass(10s);
  EXPECT_EQ(Wanted(), 2);
}

TEST_F(HorizontalAutoscalerTest, MoreThanItsMaximumAreTakenAway) {
  MakeDeployment(7);
  MakeAutoscaler(2, 5);
  Pass(20s);
  EXPECT_EQ(Wanted(), 5);
}

TEST_F(HorizontalAutoscalerTest, WhoScalesBeyondTheBoundsLaterIsCorrectedAgain) {
  MakeDeployment(3);
  MakeAutoscaler(2, 5);
  Pass(1min);
  EXPECT_EQ(Wanted(), 3);
  MakeDeployment(1);
  Pass(20s);
  EXPECT_EQ(Wanted(), 2);
}

TEST_F(HorizontalAutoscalerTest, AWorkloadThatWasScaledToNothingIsLeftAlone) {
  MakeDeployment(0);
  MakeAutoscaler(2, 5);
  Pass(1min);
  EXPECT_EQ(Wanted(), 0);
  EXPECT_EQ(Condition("ScalingActive")["reason"], "ScalingDisabled");
}

TEST_F(HorizontalAutoscalerTest, ItsStatusSaysThatNobodyMeasures) {
  MakeDeployment(2);
  MakeAutoscaler(2, 5);
  Pass(1min);
  EXPECT_EQ(Condition("ScalingActive")["reason"], "FailedGetResourceMetric");
  const json status = api().Get("HorizontalPodAutoscaler", {"default", "web"})->body["status"];
  EXPECT_EQ(status["currentReplicas"], 2);
  EXPECT_EQ(status["desiredReplicas"], 2);
}

TEST_F(HorizontalAutoscalerTest, OneWithoutATargetSaysSo) {
  MakeDeployment(2);
  MakeAutoscaler(2, 5, "other");
  Pass(1min);
  EXPECT_EQ(Condition("AbleToScale")["reason"], "FailedGetScale");
}

}  // namespace
}  // namespace wavetank::fakekube
