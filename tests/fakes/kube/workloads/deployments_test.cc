#include "fakes/kube/workloads/deployments.h"
#include "core/base/json_access.h"

#include "tests/fakes/kube/cluster_fixture.h"

namespace wavetank::fakekube {
namespace {

class DeploymentsTest : public ClusterTest {
 protected:
  // Deploys, waits, changes the template, and keeps what there was of pods at any moment of the change.
  void Roll(int replicas, const json& strategy, const json& template_change) {
    ApplyText(kWeb);
    Patch({{"replicas", replicas}, {"strategy", strategy}});
    Settle();
    Watch();
    Patch({{"template", template_change}});
    Settle();
  }

  void Patch(const json& spec) { ASSERT_TRUE(api().Patch("Deployment", {"sample", "web"}, {{"spec", spec}}).ok()); }

  void Watch() {
    subscriptions_.Add(api().Observe("Pod", [this](const Change&) {
      int ready = 0, wanted = 0, old_pods = 0, new_pods = 0;
      for (const ObjectRef& pod : api().List("Pod", "sample")) {
        (pod->meta.labels.at("version") == "v2" ? new_pods : old_pods) += 1;
        if (pod->meta.deleting) continue;
        ++wanted;
        for (const json& condition : pod->body["status"].value("conditions", json::array())) {
          if (condition["type"] == "Ready" && condition["status"] == "True") ++ready;
        }
      }
      least_ready_ = std::min(least_ready_, ready);
      most_ = std::max(most_, wanted);
      mixed_ = mixed_ || (old_pods > 0 && new_pods > 0);
    }));
  }

  size_t OfVersion(const char* version) {
    size_t n = 0;
    for (const ObjectRef& pod : api().List("Pod", "sample")) n += pod->meta.labels.at("version") == version ? 1 : 0;
    return n;
  }

  const json kV2 = {{"metadata", {{"labels", {{"version", "v2"}}}}}};
  int least_ready_ = 1000, most_ = 0;
  bool mixed_ = false;
};

class AdmitsNobody final : public PodAdmission {
 public:
  void Review(json, const kube::Labels&, absl::AnyInvocable<void(absl::StatusOr<json>)> done) override {
    done(absl::UnavailableError("no endpoints available"));
  }
};

// The harness beside a real istiod would wait for ever for a cluster whose injector is gone.
TEST_F(DeploymentsTest, APodThatNobodyAdmitsKeepsAClusterFromSettlingButForPodsUntilItIsTriedAsSeldomAsEver) {
  AdmitsNobody admission;
  cluster_ = std::make_unique<Cluster>(host_, options_, &admission, nullptr);
  ApplyText(kWeb);
  kernel_.RunUntil(kernel_.Now() + 60s);
  EXPECT_FALSE(cluster_->SettledButForPods());
  kernel_.RunUntil(kernel_.Now() + 60s);
  EXPECT_TRUE(cluster_->SettledButForPods());
  EXPECT_FALSE(cluster_->Settled());
  cluster_.reset();
}

TEST_F(DeploymentsTest, SurgeAloneKeepsAllReadyAndAddsNoMoreThanItMay) {
  Roll(4, {{"rollingUpdate", {{"maxSurge", 1}, {"maxUnavailable", 0}}}}, kV2);
  EXPECT_EQ(OfVersion("v2"), 4u);
  EXPECT_EQ(OfVersion("v1"), 0u);
  EXPECT_EQ(least_ready_, 4);
  EXPECT_EQ(most_, 5);
}

TEST_F(DeploymentsTest, UnavailableAloneNeverHasMorePodsThanWanted) {
  Roll(4, {{"rollingUpdate", {{"maxSurge", 0}, {"maxUnavailable", 2}}}}, kV2);
  EXPECT_EQ(OfVersion("v2"), 4u);
  EXPECT_EQ(least_ready_, 2);
  EXPECT_EQ(most_, 4);
}

TEST_F(DeploymentsTest, ANegativeHistoryEndsNoRollout) {
  ApplyText(kWeb);
  Patch({{"revisionHistoryLimit", -5}});
  Patch({{"template", kV2}});
  Settle();
  EXPECT_EQ(OfVersion("v2"), 2u);
  EXPECT_LE(api().List("ReplicaSet", "sample").size(), 2u);
}

TEST_F(DeploymentsTest, PercentagesRoundSurgeUpAndUnavailableDown) {
  Roll(5, {{"rollingUpdate", {{"maxSurge", "25%"}, {"maxUnavailable", "25%"}}}}, kV2);
  EXPECT_EQ(OfVersion("v2"), 5u);
  EXPECT_EQ(least_ready_, 4);
  EXPECT_LE(most_, 7);
}

TEST_F(DeploymentsTest, RecreateStartsNothingBeforeTheLastOldPodIsGone) {
  Roll(3, {{"type", "Recreate"}, {"rollingUpdate", nullptr}}, kV2);
  EXPECT_EQ(OfVersion("v2"), 3u);
  EXPECT_FALSE(mixed_);
  EXPECT_EQ(least_ready_, 0);
}

TEST_F(DeploymentsTest, ScalingInTheMiddleOfAChangeArrivesAtTheNewNumber) {
  ApplyText(kWeb);
  Patch({{"replicas", 6}});
  Settle();
  for (const int replicas : {2, 7}) {
    Patch({{"template", {{"metadata", {{"labels", {{"version", replicas == 2 ? "v2" : "v3"}}}}}}}});
    kernel_.RunUntil(kernel_.Now() + 1300ms);
    Patch({{"replicas", replicas}});
    Settle();
    EXPECT_EQ(api().List("Pod", "sample").size(), static_cast<size_t>(replicas));
    EXPECT_EQ(OfVersion(replicas == 2 ? "v2" : "v3"), static_cast<size_t>(replicas));
    const json status = api().Get("Deployment", {"sample", "web"})->body["status"];
    EXPECT_EQ(status["updatedReplicas"], replicas);
    EXPECT_EQ(Number(status, "readyReplicas"), replicas);
  }
}

TEST_F(DeploymentsTest, APodIsAvailableOnceItHasBeenReadyForMinReadySeconds) {
  ApplyText(kWeb);
  Patch({{"replicas", 2}, {"minReadySeconds", 30}});
  kernel_.RunUntil(kernel_.Now() + 20s);
  const auto status = [this] { return api().Get("Deployment", {"sample", "web"})->body["status"]; };
  EXPECT_EQ(status()["readyReplicas"], 2);
  EXPECT_FALSE(status().contains("availableReplicas")) << "a count of none is left out";
  EXPECT_EQ(status()["unavailableReplicas"], 2);
  EXPECT_EQ(status()["conditions"][0]["message"], "Deployment does not have minimum availability.");
  EXPECT_EQ(status()["conditions"][0]["status"], "False");
  kernel_.RunUntil(kernel_.Now() + 20s);
  EXPECT_EQ(status()["availableReplicas"], 2);
  EXPECT_FALSE(status().contains("unavailableReplicas"));
  EXPECT_NE(Text(status()["conditions"][0], "lastTransitionTime"), "");
  EXPECT_EQ(status()["conditions"][0]["status"], "True");
}

TEST_F(DeploymentsTest, ARollingChangeWaitsForMinReadySecondsOfEachNewPod) {
  ApplyText(kWeb);
  Patch({{"replicas", 3},
         {"minReadySeconds", 10},
         {"strategy", {{"rollingUpdate", {{"maxSurge", 1}, {"maxUnavailable", 0}}}}}});
  Settle();
  const Time before = kernel_.Now();
  Patch({{"template", kV2}});
  Settle();
  EXPECT_EQ(OfVersion("v2"), 3u);
  EXPECT_EQ(OfVersion("v1"), 0u);
  EXPECT_GE(kernel_.Now() - before, 30s);  // one after another
}

// Pods of one version never become ready: as an image that does not exist.
class BrokenVersion : public PodRuntime {
 public:
  void Start(const ObjectRef& pod, std::function<void(bool)> ready) override {
    if (pod->meta.labels.at("version") != broken) ready(true);
  }
  void Terminate(const ObjectRef&) override {}
  void Remove(const ObjectRef&) override {}
  std::string broken = "v2";
};

TEST_F(DeploymentsTest, AChangeToPodsThatNeverBecomeReadyStopsAndIsHealedByTheNext) {
  BrokenVersion runtime;
  cluster_ = std::make_unique<Cluster>(host_, options_, nullptr, &runtime);
  ApplyText(kWeb);
  Patch({{"replicas", 4}});
  Settle();
  Watch();
  Patch({{"template", kV2}});
  kernel_.RunUntil(kernel_.Now() + 1min);
  EXPECT_EQ(ReadyAddresses("web").size(), 3u);  // 25 % of 4 may be missing, and no more ever are
  EXPECT_EQ(OfVersion("v2"), 2u);               // that one, and one of surge
  const json status = api().Get("Deployment", {"sample", "web"})->body["status"];
  EXPECT_EQ(status["replicas"], 5);  // they are told of before they are ready
  EXPECT_EQ(status["updatedReplicas"], 2);
  EXPECT_EQ(status["conditions"][0]["status"], "True");  // as many are available as the strategy asks
  Patch({{"template", {{"metadata", {{"labels", {{"version", "v3"}}}}}}}});
  Settle();
  EXPECT_EQ(OfVersion("v3"), 4u);
  EXPECT_EQ(api().List("Pod", "sample").size(), 4u);
  EXPECT_EQ(least_ready_, 3);
  cluster_.reset();  // before what runs in its pods
}

TEST_F(DeploymentsTest, GoingBackTakesTheOldReplicaSetAgain) {
  Roll(2, {{"rollingUpdate", {{"maxSurge", 1}, {"maxUnavailable", 0}}}}, kV2);
  Patch({{"template", {{"metadata", {{"labels", {{"version", "v1"}}}}}}}});
  Settle();
  EXPECT_EQ(OfVersion("v1"), 2u);
  EXPECT_EQ(api().List("ReplicaSet", "sample").size(), 2u);
}

TEST_F(DeploymentsTest, ItsStatusSaysWhatRolloutStatusWaitsFor) {
  ApplyText(kWeb);
  Settle();
  const auto get = [&] { return api().Get("Deployment", {"sample", "web"})->body; };
  EXPECT_EQ(get()["status"]["observedGeneration"], 1);
  EXPECT_EQ(get()["status"]["updatedReplicas"], 2);
  EXPECT_EQ(get()["status"]["conditions"][1]["reason"], "NewReplicaSetAvailable");
  // A change that scales nothing is observed too.
  ASSERT_TRUE(api().Patch("Deployment", {"sample", "web"}, {{"spec", {{"minReadySeconds", 1}}}}).ok());
  Settle();
  EXPECT_EQ(get()["status"]["observedGeneration"], 2);
}

TEST_F(DeploymentsTest, ItSaysItsRevisionAndHandsItsAnnotationsOn) {
  ApplyText(kWeb);
  Settle();
  const auto annotations = [&](const ObjectRef& object) { return object->meta.annotations; };
  const auto deployment = [&] { return api().Get("Deployment", {"sample", "web"}); };
  const auto set = [&] { return api().List("ReplicaSet", "sample").front(); };
  // `kubectl rollout undo` replaces the annotations, and cannot where there are none.
  EXPECT_EQ(annotations(deployment()).at("deployment.kubernetes.io/revision"), "1");
  ASSERT_TRUE(api()
                  .Patch("Deployment", {"sample", "web"},
                         {{"metadata",
                           {{"annotations",
                             {{"kubernetes.io/change-cause", "a test"},
                              {"kubectl.kubernetes.io/last-applied-configuration", "{}"}}}}}})
                  .ok());
  Settle();
  EXPECT_EQ(annotations(set()).at("kubernetes.io/change-cause"), "a test");
  EXPECT_EQ(annotations(set()).count("kubectl.kubernetes.io/last-applied-configuration"), 0u);
  EXPECT_EQ(annotations(set()).at("deployment.kubernetes.io/revision"), "1");
}

TEST_F(DeploymentsTest, RevisionsCountTemplatesAndGoingBackIsANewOne) {
  ApplyText(kWeb);
  Settle();
  const auto change = [&](const char* image) {
    const json containers = json::array({{{"name", "web"}, {"image", image}}});
    ASSERT_TRUE(api()
                    .Patch("Deployment", {"sample", "web"},
                           {{"spec", {{"template", {{"spec", {{"containers", containers}}}}}}}})
                    .ok());
    Settle();
  };
  const auto revisions = [&] {
    std::map<std::string, std::string> out;  // by image
    for (const ObjectRef& set : api().List("ReplicaSet", "sample")) {
      out[set->body["spec"]["template"]["spec"]["containers"][0]["image"]] =
          set->meta.annotations.at("deployment.kubernetes.io/revision");
    }
    return out;
  };
  change("y");
  EXPECT_EQ(revisions(), (std::map<std::string, std::string>{{"x", "1"}, {"y", "2"}}));
  change("z");
  change("y");
  EXPECT_EQ(revisions(), (std::map<std::string, std::string>{{"x", "1"}, {"y", "4"}, {"z", "3"}}));
}

}  // namespace
}  // namespace wavetank::fakekube
