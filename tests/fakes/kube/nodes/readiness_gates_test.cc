// Pods that wait for a condition which somebody else sets.
#include <gtest/gtest.h>

#include <string>

#include "core/base/json_access.h"
#include "tests/fakes/kube/cluster_fixture.h"

namespace wavetank::fakekube {
namespace {

class ReadinessGatesTest : public ClusterTest {
 protected:
  void MakePod() {
    const auto made = api().Apply({{"apiVersion", "v1"},
                                   {"kind", "Pod"},
                                   {"metadata", {{"name", "a"}, {"namespace", "default"}}},
                                   {"spec",
                                    {{"readinessGates", json::array({{{"conditionType", "example.com/served"}}})},
                                     {"containers", json::array({{{"name", "c"}, {"image", "x"}}})}}}});
    ASSERT_TRUE(made.ok()) << made.status();
    Settle();
  }
  // As a controller does it: its own condition beside the others.
  void SetGate(const std::string& status) {
    json conditions = json::array({{{"type", "example.com/served"}, {"status", status}}});
    for (const json& condition : Items(At(Pod()->body, {"status", "conditions"}))) {
      if (Text(condition, "type") != "example.com/served") conditions.push_back(condition);
    }
    ASSERT_TRUE(api().Patch("Pod", {"default", "a"}, {{"status", {{"conditions", conditions}}}}).ok());
    Settle();
  }
  ObjectRef Pod() { return api().Get("Pod", {"default", "a"}); }
  json Condition(const std::string& type) {
    for (const json& condition : Items(At(Pod()->body, {"status", "conditions"}))) {
      if (Text(condition, "type") == type) return condition;
    }
    return nullptr;
  }
};

TEST_F(ReadinessGatesTest, APodWhoseGateNobodyOpensIsNotReadyThoughItsContainersAre) {
  MakePod();
  EXPECT_EQ(Condition("ContainersReady")["status"], "True");
  EXPECT_EQ(Condition("Ready")["status"], "False");
  EXPECT_EQ(Condition("Ready")["reason"], "ReadinessGatesNotReady");
  EXPECT_EQ(Condition("Ready")["message"],
            "corresponding condition of pod readiness gate \"example.com/served\" does not exist.");
}

TEST_F(ReadinessGatesTest, ItFollowsItsGate) {
  MakePod();
  SetGate("True");
  EXPECT_EQ(Condition("Ready")["status"], "True");
  SetGate("False");
  EXPECT_EQ(Condition("Ready")["status"], "False");
  EXPECT_EQ(Condition("Ready")["message"],
            "the status of pod readiness gate \"example.com/served\" is not \"True\", but False");
}

TEST_F(ReadinessGatesTest, ConditionsOfOthersOutliveWhatTheKubeletSays) {
  MakePod();
  SetGate("True");
  EXPECT_EQ(Condition("example.com/served")["status"], "True");
}

}  // namespace
}  // namespace wavetank::fakekube
