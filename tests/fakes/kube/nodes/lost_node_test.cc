// Pods of a node that falls silent, and of one that comes back.
#include <gtest/gtest.h>

#include <string>

#include "core/base/json_access.h"
#include "fakes/kube/objects/conditions.h"
#include "tests/fakes/kube/cluster_fixture.h"

namespace wavetank::fakekube {
namespace {

class LostNodeTest : public ClusterTest {
 protected:
  static json PodThatTolerates(const std::string& name, const json& seconds) {
    const json toleration = {{"key", "node.kubernetes.io/unreachable"},
                             {"operator", "Exists"},
                             {"effect", "NoExecute"},
                             {"tolerationSeconds", seconds}};
    return {{"apiVersion", "v1"},
            {"kind", "Pod"},
            {"metadata", {{"name", name}, {"namespace", "default"}}},
            {"spec",
             {{"nodeName", "node1"},
              {"tolerations", json::array({toleration})},
              {"containers", json::array({{{"name", "c"}, {"image", "x"}}})}}}};
  }
  void Make(json pod) {
    const auto made = api().Apply(std::move(pod));
    ASSERT_TRUE(made.ok()) << made.status();
  }
  bool Evicted(const std::string& name) {
    const ObjectRef pod = api().Get("Pod", {"default", name});
    return pod == nullptr || pod->meta.deleting;
  }
  std::string AddressOf(const std::string& name) {
    const ObjectRef pod = api().Get("Pod", {"default", name});
    return pod == nullptr ? "" : Text(At(pod->body, "status"), "podIP");
  }
};

TEST_F(LostNodeTest, APodThatToleratesLessThanNothingGoesAtOnce) {
  Make(PodThatTolerates("short", -5));
  Make(PodThatTolerates("minute", 60));
  Settle();
  ASSERT_TRUE(cluster_->SetNodeLost("node1", true).ok());
  kernel_.RunUntil(kernel_.Now() + 41s);
  EXPECT_TRUE(Evicted("short"));
  EXPECT_FALSE(Evicted("minute"));
  kernel_.RunUntil(kernel_.Now() + 60s);
  EXPECT_TRUE(Evicted("minute"));
}

TEST_F(LostNodeTest, APodThatToleratesMoreThanTimeCanHoldStays) {
  Make(PodThatTolerates("long", int64_t{1} << 62));
  Settle();
  ASSERT_TRUE(cluster_->SetNodeLost("node1", true).ok());
  kernel_.RunUntil(kernel_.Now() + 24h);
  EXPECT_FALSE(Evicted("long"));
}

TEST_F(LostNodeTest, ItsConditionsSaySinceWhenNobodyHasHeardOfIt) {
  const auto conditions = [&] {
    std::string out;
    for (const json& condition : Items(At(api().Get("Node", {"", "node1"})->body, {"status", "conditions"})))
      out += Text(condition, "type") + "=" + Text(condition, "status") + " " + Text(condition, "reason") + "; ";
    return out;
  };
  const auto since = [&] {
    return Text(ConditionOf(At(api().Get("Node", {"", "node1"})->body, {"status", "conditions"}), "Ready"),
                "lastTransitionTime");
  };
  Settle();
  EXPECT_EQ(conditions(),
            "MemoryPressure=False KubeletHasSufficientMemory; DiskPressure=False KubeletHasNoDiskPressure; "
            "PIDPressure=False KubeletHasSufficientPID; Ready=True KubeletReady; ");
  const std::string made = since();
  ASSERT_TRUE(cluster_->SetNodeLost("node1", true).ok());
  kernel_.RunUntil(kernel_.Now() + 41s);
  EXPECT_EQ(conditions(),
            "MemoryPressure=Unknown NodeStatusUnknown; DiskPressure=Unknown NodeStatusUnknown; "
            "PIDPressure=Unknown NodeStatusUnknown; Ready=Unknown NodeStatusUnknown; ");
  EXPECT_GT(since(), made);
  ASSERT_TRUE(cluster_->SetNodeLost("node1", false).ok());
  Settle();
  EXPECT_EQ(Text(ConditionOf(At(api().Get("Node", {"", "node1"})->body, {"status", "conditions"}), "Ready"), "reason"),
            "KubeletReady");
}

// What ran before the loss is not what ends after it.
TEST_F(LostNodeTest, APodThatBeganAnewEndsAtItsOwnTime) {
  json pod = PodThatTolerates("a", 3600);
  pod["spec"]["restartPolicy"] = "Never";
  pod["spec"]["containers"][0]["command"] = {"sleep", "60"};
  Make(pod);
  Settle();
  kernel_.RunUntil(kernel_.Now() + 30s);
  ASSERT_TRUE(cluster_->SetNodeLost("node1", true).ok());
  kernel_.RunUntil(kernel_.Now() + 10s);
  ASSERT_TRUE(cluster_->SetNodeLost("node1", false).ok());
  const auto phase = [&] { return Text(At(api().Get("Pod", {"default", "a"})->body, "status"), "phase"); };
  kernel_.RunUntil(kernel_.Now() + 50s);
  EXPECT_EQ(phase(), "Running");
  kernel_.RunUntil(kernel_.Now() + 30s);
  EXPECT_EQ(phase(), "Succeeded");
}

// Its first start and the one after the return would each take an address, and the first would never be free again.
TEST_F(LostNodeTest, ANodeThatIsBackBeforeItsPodStartedGivesItOneAddress) {
  options_.pod_cidr = "10.1.0.0/29";
  Restart();
  Make(PodThatTolerates("a", 60));
  kernel_.RunUntil(kernel_.Now() + options_.schedule + options_.container_start / 2);
  ASSERT_EQ(AddressOf("a"), "");
  ASSERT_TRUE(cluster_->SetNodeLost("node1", true).ok());
  ASSERT_TRUE(cluster_->SetNodeLost("node1", false).ok());
  Settle();
  ASSERT_NE(AddressOf("a"), "");
  // Pods that come and go find room for ever.
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(api().Delete("Pod", {"default", "a"}).ok());
    Settle();
    ASSERT_EQ(api().Get("Pod", {"default", "a"}), nullptr);
    Make(PodThatTolerates("a", 60));
    kernel_.RunUntil(kernel_.Now() + options_.schedule + options_.container_start / 2);
    ASSERT_TRUE(cluster_->SetNodeLost("node1", true).ok());
    ASSERT_TRUE(cluster_->SetNodeLost("node1", false).ok());
    Settle();
    ASSERT_NE(AddressOf("a"), "") << "after " << i;
  }
}

}  // namespace
}  // namespace wavetank::fakekube
