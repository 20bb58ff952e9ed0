#include "fakes/kube/workloads/replication_controllers.h"

#include "tests/fakes/kube/cluster_fixture.h"

namespace wavetank::fakekube {
namespace {

using testing::SizeIs;

class ReplicationManagerTest : public ClusterTest {
 protected:
  void Make(int replicas) {
    ASSERT_TRUE(api()
                    .Create({{"apiVersion", "v1"},
                             {"kind", "ReplicationController"},
                             {"metadata", {{"name", "rc"}, {"namespace", "default"}}},
                             {"spec",
                              {{"replicas", replicas},
                               {"template",
                                {{"metadata", {{"labels", {{"app", "a"}}}}},
                                 {"spec", {{"containers", {{{"name", "c"}, {"image", "x"}}}}}}}}}}})
                    .ok());
    Settle();
  }
  json Status() { return api().Get("ReplicationController", {"default", "rc"})->body["status"]; }
  std::vector<ObjectRef> Pods() { return api().List("Pod", "default"); }
};

TEST_F(ReplicationManagerTest, KeepsAsManyPodsAsItWants) {
  Make(3);
  EXPECT_THAT(Pods(), SizeIs(3));
  EXPECT_EQ(Status()["readyReplicas"], 3);
  ASSERT_TRUE(api().Delete("Pod", {"default", Pods()[0]->meta.name}).ok());
  Settle();
  EXPECT_THAT(Pods(), SizeIs(3));
  ASSERT_TRUE(api().Patch("ReplicationController", {"default", "rc"}, {{"spec", {{"replicas", 1}}}}).ok());
  Settle();
  EXPECT_THAT(Pods(), SizeIs(1));
  EXPECT_EQ(Status()["replicas"], 1);
}

TEST_F(ReplicationManagerTest, TakesPodsThatItsSelectorTakesAndLetsGoOfOthers) {
  ASSERT_TRUE(api()
                  .Create({{"apiVersion", "v1"},
                           {"kind", "Pod"},
                           {"metadata", {{"name", "orphan"}, {"namespace", "default"}, {"labels", {{"app", "a"}}}}},
                           {"spec", {{"containers", {{{"name", "c"}, {"image", "x"}}}}}}})
                  .ok());
  Make(1);
  ASSERT_THAT(Pods(), SizeIs(1));
  EXPECT_EQ(Pods()[0]->meta.owner_references.at(0).name, "rc");
  ASSERT_TRUE(api().Patch("Pod", {"default", "orphan"}, {{"metadata", {{"labels", {{"app", "b"}}}}}}).ok());
  Settle();
  EXPECT_THAT(Pods(), SizeIs(2));
  EXPECT_TRUE(api().Get("Pod", {"default", "orphan"})->meta.owner_references.empty());
}

}  // namespace
}  // namespace wavetank::fakekube
