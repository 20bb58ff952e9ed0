#include "fakes/kube/workloads/daemon_sets.h"

#include <map>

#include "tests/fakes/kube/cluster_fixture.h"

namespace wavetank::fakekube {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kAgent[] = R"(
apiVersion: v1
kind: Namespace
metadata: {name: sample}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: sample}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent, version: v1}}
    spec: {containers: [{name: agent, image: x}]}
)";

class DaemonSetsTest : public ClusterTest {
 protected:
  void Patch(const json& spec) { ASSERT_TRUE(api().Patch("DaemonSet", {"sample", "agent"}, {{"spec", spec}}).ok()); }
  void PatchPods(const json& pod_spec) { Patch({{"template", {{"spec", pod_spec}}}}); }
  void AddNode(const std::string& name, const json& labels = json::object(), const json& spec = json::object()) {
    ASSERT_TRUE(api()
                    .Create({{"apiVersion", "v1"},
                             {"kind", "Node"},
                             {"metadata", {{"name", name}, {"labels", labels}}},
                             {"spec", spec}})
                    .ok());
  }
  std::vector<std::string> Nodes() {
    std::vector<std::string> out;
    for (const ObjectRef& pod : api().List("Pod", "sample")) out.push_back(pod->body["spec"]["nodeName"]);
    std::sort(out.begin(), out.end());
    return out;
  }
  json Status() { return api().Get("DaemonSet", {"sample", "agent"})->body["status"]; }
  // The most pods that there were, and the fewest that were ready, while the template changed.
  void Roll(const json& strategy) {
    ApplyText(kAgent);
    Patch({{"updateStrategy", {{"rollingUpdate", strategy}}}});
    Settle();
    subscriptions_.Add(api().Observe("Pod", [this](const Change&) {
      int ready = 0, wanted = 0;
      for (const ObjectRef& pod : api().List("Pod", "sample")) {
        if (pod->meta.deleting) continue;
        ++wanted;
        for (const json& condition : pod->body["status"].value("conditions", json::array()))
          ready += condition["type"] == "Ready" && condition["status"] == "True" ? 1 : 0;
      }
      least_ready_ = std::min(least_ready_, ready);
      most_ = std::max(most_, wanted);
    }));
    Patch({{"template", {{"metadata", {{"labels", {{"version", "v2"}}}}}}}});
    Settle();
    for (const ObjectRef& pod : api().List("Pod", "sample")) EXPECT_EQ(pod->meta.labels.at("version"), "v2");
    EXPECT_EQ(Status()["updatedNumberScheduled"], 2);
  }
  int least_ready_ = 1000, most_ = 0;
};

TEST_F(DaemonSetsTest, EveryNodeHasOnePodAlsoOneThatComesLater) {
  ApplyText(kAgent);
  Settle();
  EXPECT_THAT(Nodes(), ElementsAre("node1", "node2"));
  AddNode("node3");
  Settle();
  EXPECT_THAT(Nodes(), ElementsAre("node1", "node2", "node3"));
  EXPECT_EQ(Status()["desiredNumberScheduled"], 3);
  EXPECT_EQ(Status()["numberReady"], 3);
  EXPECT_EQ(Status()["numberUnavailable"], 0);
}

TEST_F(DaemonSetsTest, SelectorsAffinityAndTaintsSayWhichNodesTakeIt) {
  AddNode("node3", {{"disk", "ssd"}});
  AddNode("node4", {{"disk", "ssd"}},
          {{"taints", {{{"key", "dedicated"}, {"value", "db"}, {"effect", "NoSchedule"}}}}});
  ApplyText(kAgent);
  PatchPods({{"nodeSelector", {{"disk", "ssd"}}}});
  Settle();
  EXPECT_THAT(Nodes(), ElementsAre("node3"));
  PatchPods({{"tolerations", {{{"key", "dedicated"}, {"operator", "Exists"}}}}});
  Settle();
  EXPECT_THAT(Nodes(), ElementsAre("node3", "node4"));
  PatchPods(
      {{"nodeSelector", nullptr},
       {"affinity",
        {{"nodeAffinity",
          {{"requiredDuringSchedulingIgnoredDuringExecution",
            {{"nodeSelectorTerms", {{{"matchExpressions", {{{"key", "disk"}, {"operator", "DoesNotExist"}}}}}}}}}}}}}});
  Settle();
  EXPECT_THAT(Nodes(), ElementsAre("node1", "node2"));
}

TEST_F(DaemonSetsTest, APodThatIsDeletedIsMadeAnewOnItsNode) {
  ApplyText(kAgent);
  Settle();
  const std::string name = api().List("Pod", "sample")[0]->meta.name;
  ASSERT_TRUE(api().Delete("Pod", {"sample", name}).ok());
  Settle();
  EXPECT_THAT(Nodes(), ElementsAre("node1", "node2"));
  EXPECT_EQ(api().Get("Pod", {"sample", name}), nullptr);
}

TEST_F(DaemonSetsTest, AChangeTakesOnePodAfterTheOther) {
  Roll({{"maxUnavailable", 1}, {"maxSurge", 0}});
  EXPECT_EQ(least_ready_, 1);
  EXPECT_EQ(most_, 2);
}

TEST_F(DaemonSetsTest, WithASurgeTheNewPodIsReadyBeforeTheOldOneGoes) {
  Roll({{"maxUnavailable", 0}, {"maxSurge", 1}});
  EXPECT_EQ(least_ready_, 2);
  EXPECT_EQ(most_, 3);
}

TEST_F(DaemonSetsTest, ItsEndTakesItsPods) {
  ApplyText(kAgent);
  Settle();
  ASSERT_TRUE(api().Delete("DaemonSet", {"sample", "agent"}).ok());
  Settle();
  EXPECT_THAT(Nodes(), IsEmpty());
}

TEST_F(DaemonSetsTest, EachTemplateIsARevision) {
  ApplyText(kAgent);
  Settle();
  const auto numbers = [&] {
    std::map<int64_t, std::string> out;
    for (const ObjectRef& revision : api().List("ControllerRevision", "sample")) {
      const json& containers = revision->body["data"]["spec"]["template"]["spec"]["containers"];
      out[revision->body["revision"].get<int64_t>()] = containers[0]["image"].get<std::string>();
    }
    return out;
  };
  EXPECT_THAT(numbers(), ElementsAre(testing::Pair(1, "x")));
  PatchPods({{"containers", {{{"name", "agent"}, {"image", "y"}}}}});
  Settle();
  EXPECT_THAT(numbers(), ElementsAre(testing::Pair(1, "x"), testing::Pair(2, "y")));
  // Back: the old revision is the newest.
  PatchPods({{"containers", {{{"name", "agent"}, {"image", "x"}}}}});
  Settle();
  EXPECT_THAT(numbers(), ElementsAre(testing::Pair(2, "y"), testing::Pair(3, "x")));
}

}  // namespace
}  // namespace wavetank::fakekube
