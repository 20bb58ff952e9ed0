// Where pods go, and where not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/json_access.h"
#include "fakes/kube/objects/conditions.h"
#include "tests/fakes/kube/cluster_fixture.h"

namespace wavetank::fakekube {
namespace {

using ::testing::HasSubstr;

class SchedulerTest : public ClusterTest {
 protected:
  // A pod of `spec` (containers are added), settled; where it runs, "" if nowhere.
  std::string Place(const std::string& name, json spec, const json& labels = json::object()) {
    if (!spec.contains("containers")) spec["containers"] = json::array({{{"name", "c"}, {"image", "x"}}});
    const auto made = api().Apply({{"apiVersion", "v1"},
                                   {"kind", "Pod"},
                                   {"metadata", {{"name", name}, {"namespace", "default"}, {"labels", labels}}},
                                   {"spec", std::move(spec)}});
    EXPECT_TRUE(made.ok()) << made.status();
    Settle();
    return NodeOf(name);
  }
  std::string NodeOf(const std::string& name) {
    const ObjectRef pod = api().Get("Pod", {"default", name});
    return pod == nullptr ? "gone" : Text(At(pod->body, "spec"), "nodeName");
  }
  std::string WhyNot(const std::string& name) {
    const ObjectRef pod = api().Get("Pod", {"default", name});
    for (const json& condition : Items(At(pod->body, {"status", "conditions"}))) {
      if (Text(condition, "reason") == "Unschedulable") return Text(condition, "message");
    }
    return "";
  }
  void PatchNode(const std::string& node, const json& patch) {
    ASSERT_TRUE(api().Patch("Node", {"", node}, patch).ok());
  }
};

TEST_F(SchedulerTest, PodsGoRoundOverTheNodesThatTakeThem) {
  EXPECT_EQ(Place("a", json::object()), "node1");
  EXPECT_EQ(Place("b", json::object()), "node2");
  EXPECT_EQ(Place("c", json::object()), "node1");
}

TEST_F(SchedulerTest, ACordonedNodeTakesNothingUntilItIsOpenAgain) {
  PatchNode("node1", {{"spec", {{"unschedulable", true}}}});
  EXPECT_EQ(Place("a", json::object()), "node2");
  EXPECT_EQ(Place("b", json::object()), "node2");
  PatchNode("node2", {{"spec", {{"unschedulable", true}}}});
  EXPECT_EQ(Place("c", json::object()), "");
  EXPECT_EQ(WhyNot("c"), "0/2 nodes are available: 2 node(s) were unschedulable.");
  PatchNode("node1", {{"spec", {{"unschedulable", nullptr}}}});
  Settle();
  EXPECT_EQ(NodeOf("c"), "node1");
}

TEST_F(SchedulerTest, APodThatWaitsKeepsWhatOthersSayOfIt) {
  PatchNode("node1", {{"spec", {{"unschedulable", true}}}});
  PatchNode("node2", {{"spec", {{"unschedulable", true}}}});
  const json gate = {{"type", "example.com/gate"}, {"status", "True"}};
  ASSERT_TRUE(api()
                  .Apply({{"apiVersion", "v1"},
                          {"kind", "Pod"},
                          {"metadata", {{"name", "a"}, {"namespace", "default"}}},
                          {"spec", {{"containers", json::array({{{"name", "c"}, {"image", "x"}}})}}},
                          {"status", {{"conditions", json::array({gate})}}}})
                  .ok());
  Settle();
  const json& conditions = Items(At(api().Get("Pod", {"default", "a"})->body, {"status", "conditions"}));
  EXPECT_EQ(Text(ConditionOf(conditions, "example.com/gate"), "status"), "True");
  const json& scheduled = ConditionOf(conditions, "PodScheduled");
  EXPECT_EQ(Text(scheduled, "status"), "False");
  EXPECT_NE(Text(scheduled, "lastTransitionTime"), "");
  EXPECT_TRUE(scheduled.contains("lastProbeTime")) << "null, as Go writes the zero of a time";
}

TEST_F(SchedulerTest, TaintsSelectorsAndAffinityChooseNodes) {
  PatchNode("node1", {{"spec", {{"taints", {{{"key", "only"}, {"value", "gpu"}, {"effect", "NoSchedule"}}}}}}});
  EXPECT_EQ(Place("a", json::object()), "node2");
  EXPECT_EQ(Place("b", {{"tolerations", {{{"key", "only"}, {"operator", "Exists"}}}},
                        {"nodeSelector", {{"kubernetes.io/hostname", "node1"}}}}),
            "node1");
  EXPECT_EQ(Place("c", {{"nodeSelector", {{"disk", "ssd"}}}}), "");
  EXPECT_THAT(WhyNot("c"), HasSubstr("1 node(s) didn't match Pod's node affinity/selector"));
  EXPECT_THAT(WhyNot("c"), HasSubstr("1 node(s) had untolerated taint {only: gpu}"));
  const json zone = {
      {"matchExpressions", {{{"key", "topology.kubernetes.io/zone"}, {"operator", "In"}, {"values", {"z2"}}}}}};
  EXPECT_EQ(
      Place("d",
            {{"affinity",
              {{"nodeAffinity",
                {{"requiredDuringSchedulingIgnoredDuringExecution", {{"nodeSelectorTerms", json::array({zone})}}}}}}}}),
      "node2");
}

TEST_F(SchedulerTest, LabelsOfNodesAreComparedAsNumbers) {
  PatchNode("node1", {{"metadata", {{"labels", {{"cores", "many"}}}}}});
  PatchNode("node2", {{"metadata", {{"labels", {{"cores", "16"}}}}}});
  const auto with = [](const char* op, const char* number) {
    const json term = {{"matchExpressions", {{{"key", "cores"}, {"operator", op}, {"values", {number}}}}}};
    return json{
        {"affinity",
         {{"nodeAffinity",
           {{"requiredDuringSchedulingIgnoredDuringExecution", {{"nodeSelectorTerms", json::array({term})}}}}}}}};
  };
  EXPECT_EQ(Place("a", with("Gt", "8")), "node2");
  EXPECT_EQ(Place("b", with("Gt", "16")), "");
  EXPECT_EQ(Place("c", with("Lt", "17")), "node2") << "a label that is no number is not less";
}

TEST_F(SchedulerTest, PodsThatMustBeApartAreApart) {
  const json apart = {
      {"affinity",
       {{"podAntiAffinity",
         {{"requiredDuringSchedulingIgnoredDuringExecution",
           {{{"topologyKey", "kubernetes.io/hostname"}, {"labelSelector", {{"matchLabels", {{"app", "a"}}}}}}}}}}}}};
  EXPECT_EQ(Place("a1", apart, {{"app", "a"}}), "node1");
  EXPECT_EQ(Place("a2", apart, {{"app", "a"}}), "node2");
  EXPECT_EQ(Place("a3", apart, {{"app", "a"}}), "");
  EXPECT_EQ(WhyNot("a3"), "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules.");
  ASSERT_TRUE(api().Delete("Pod", {"default", "a2"}).ok());
  Settle();
  EXPECT_EQ(NodeOf("a3"), "node2");
}

// Helm's charts ask for three replicas apart, and no manifest says which nodes a mesh has.
TEST_F(SchedulerTest, ANodeMoreComesForPodsThatMustBeApartWhereNobodySaysWhichThereAre) {
  options_.nodes = {{"cluster1-node1", "r1", "z1", "203.0.113.1"}};
  options_.nodes_untold = true;
  cluster_ = std::make_unique<Cluster>(host_, options_, nullptr, nullptr);
  const auto apart = [](const char* key) {
    return json{{"affinity",
                 {{"podAntiAffinity",
                   {{"requiredDuringSchedulingIgnoredDuringExecution",
                     {{{"topologyKey", key}, {"labelSelector", {{"matchLabels", {{"app", "a"}}}}}}}}}}}}};
  };
  for (const char* n : {"1", "2", "3"})
    EXPECT_EQ(Place(std::string("a") + n, apart("kubernetes.io/hostname"), {{"app", "a"}}),
              std::string("cluster1-node") + n);
  const ObjectRef third = api().Get("Node", {"", "cluster1-node3"});
  ASSERT_NE(third, nullptr);
  EXPECT_EQ(third->meta.labels.at("kubernetes.io/hostname"), "cluster1-node3");
  EXPECT_EQ(third->meta.labels.at("topology.kubernetes.io/zone"), "z1");
  EXPECT_EQ(Place("b", apart("topology.kubernetes.io/zone"), {{"app", "a"}}), "cluster1-node4");
  EXPECT_EQ(api().Get("Node", {"", "cluster1-node4"})->meta.labels.at("topology.kubernetes.io/zone"), "z4");
  EXPECT_EQ(Place("r", apart("topology.kubernetes.io/region"), {{"app", "a"}}), "") << "a region is no guess";
  for (const char* n : {"1", "2", "3", "4"})
    PatchNode(std::string("cluster1-node") + n, {{"spec", {{"unschedulable", true}}}});
  EXPECT_EQ(Place("c", apart("kubernetes.io/hostname"), {{"app", "a"}}), "");
  EXPECT_EQ(Place("d", {{"nodeSelector", {{"disk", "ssd"}}}}), "");
  EXPECT_EQ(api().List("Node").size(), 4u);
}

TEST_F(SchedulerTest, NodesHaveTheLabelsThatEveryKubeletWrites) {
  int pods = 0;
  for (const auto& [label, value] :
       {std::pair("kubernetes.io/arch", "amd64"), std::pair("beta.kubernetes.io/os", "linux"),
        std::pair("beta.kubernetes.io/arch", "amd64")})
    EXPECT_EQ(Place("p" + std::to_string(++pods), {{"nodeSelector", {{label, value}}}}).substr(0, 4), "node") << label;
}

TEST_F(SchedulerTest, RequestsFillANodeThatSaysWhatItHas) {
  for (const char* node : {"node1", "node2"}) PatchNode(node, {{"status", {{"allocatable", {{"cpu", "1"}}}}}});
  const json most = {
      {"containers", {{{"name", "c"}, {"image", "x"}, {"resources", {{"requests", {{"cpu", "600m"}}}}}}}}};
  EXPECT_EQ(Place("a", most), "node1");
  EXPECT_EQ(Place("b", most), "node2");
  EXPECT_EQ(Place("c", most), "");
  EXPECT_EQ(WhyNot("c"), "0/2 nodes are available: 2 Insufficient cpu.");
}

TEST_F(SchedulerTest, PodsOfANodeThatIsGoneGo) {
  EXPECT_EQ(Place("a", json::object()), "node1");
  ASSERT_TRUE(api().Delete("Node", {"", "node1"}).ok());
  Settle();
  EXPECT_EQ(NodeOf("a"), "gone");
  EXPECT_EQ(Place("b", json::object()), "node2");
}

TEST_F(SchedulerTest, WhatAnotherSchedulerBindsWaitsForIt) {
  EXPECT_EQ(Place("a", {{"schedulerName", "mine"}}), "");
  ASSERT_TRUE(api().Patch("Pod", {"default", "a"}, {{"spec", {{"nodeName", "node2"}}}}).ok());
  Settle();
  EXPECT_EQ(TextOf(At(api().Get("Pod", {"default", "a"})->body, {"status", "phase"})), "Running");
}

TEST_F(SchedulerTest, StatusesHaveWhatTypedClientsDemand) {
  Place("a", json::object());
  const json& container = api().Get("Pod", {"default", "a"})->body["status"]["containerStatuses"][0];
  EXPECT_THAT(Text(container, "imageID"), HasSubstr("sha256:"));
  const ObjectRef node = api().Get("Node", {"", "node1"});
  for (const char* field : {"bootID", "machineID", "systemUUID", "kubeProxyVersion"})
    EXPECT_NE(Text(At(node->body, {"status", "nodeInfo"}), field), "") << field;
}

}  // namespace
}  // namespace wavetank::fakekube
