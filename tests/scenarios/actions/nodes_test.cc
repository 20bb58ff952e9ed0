// What operators do to nodes and workloads, in a running mesh.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/json_access.h"
#include "core/kube/types.h"
#include "tests/scenarios/actions/main_mesh.h"

namespace wavetank::scenario {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kNodes = {"a", "b"};

TEST(RestartAction, IstiodAndItsWorkloadsGetPodsAnew) {
  std::string names;
  const auto collect = [&names](sim::World& world) {
    names.clear();
    for (const sim::PodProcess* pod : world.Pods("cluster1", "", "")) names += pod->pod()->meta.name + " ";
  };
  ASSERT_TRUE(RunOnMainMesh("  - {name: nothing}\n", kNodes, collect).ok());
  const std::string before = names;
  const auto result = RunOnMainMesh(
      "  - {name: istiod, do: [{restart: {cluster: cluster1, deployment: istio-system/istiod}}]}\n"
      "  - {name: app, do: [{restart: {cluster: cluster1, deployment: sample/helloworld-v1}}]}\n",
      kNodes, collect);
  ASSERT_TRUE(result.ok()) << result.status();
  for (const std::string app : {"istiod-", "helloworld-v1-"}) {
    const auto name = [&app](const std::string& all) {
      return all.substr(all.find(app), all.find(' ', all.find(app)) - all.find(app));
    };
    EXPECT_NE(name(names), name(before)) << app;
  }
  EXPECT_EQ(std::count(names.begin(), names.end(), ' '), std::count(before.begin(), before.end(), ' '));
}

TEST(RestartAction, PodsNamesComeOfTheTimeThatKubectlsClockSays) {
  const auto set_of = [](const std::string& arguments) {
    std::string name;
    const auto look = [&name](sim::World& world) {
      name = world.Pods("cluster1", "sample", "helloworld").at(0)->pod()->meta.name;
    };
    const std::string restart = "{restart: {cluster: cluster1, deployment: sample/helloworld-v1" + arguments + "}}";
    const auto result = RunOnMainMesh("  - {name: app, do: [" + restart + "]}\n", kNodes, look);
    EXPECT_TRUE(result.ok()) << result.status();
    return name.substr(0, name.rfind('-'));
  };
  const std::string then = set_of(", at: 2023-07-01T12:00:00Z");
  EXPECT_EQ(set_of(", at: 2023-07-01T12:00:00Z"), then);
  EXPECT_NE(set_of(", at: 2023-07-01T12:00:01Z"), then);
  EXPECT_NE(set_of(""), then);
}

TEST(DrainAction, ANodeIsCordonedAndItsPodsGo) {
  size_t left = 0;
  bool unschedulable = false;
  const auto look = [&](sim::World& world) {
    unschedulable = At(world.cluster("cluster1").api().Get("Node", {"", "a"})->body, {"spec", "unschedulable"}) == true;
    left = 0;
    for (const kube::ObjectRef& pod : world.cluster("cluster1").api().List("Pod")) {
      left += kube::ParsePod(*pod).node_name == "a" ? 1 : 0;
    }
  };
  ASSERT_TRUE(RunOnMainMesh("  - {name: nothing}\n", kNodes, look).ok());
  const size_t before = left;
  ASSERT_GT(before, 0u);
  const auto drained = RunOnMainMesh("  - {name: s, do: [{drain: {cluster: cluster1, node: a}}]}\n", kNodes, look);
  ASSERT_TRUE(drained.ok()) << drained.status();
  EXPECT_TRUE(unschedulable);
  EXPECT_EQ(left, 0u);
  const auto back = RunOnMainMesh(
      "  - {name: s, do: [{cordon: {cluster: cluster1, node: a}}, {uncordon: {cluster: cluster1, node: a}}]}\n", kNodes,
      look);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_FALSE(unschedulable);
  const auto wrong = RunOnMainMesh("  - {name: s, do: [{drain: {cluster: cluster1, node: c}}]}\n", kNodes, look);
  EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("has no node 'c'; it has a, b"));
}

TEST(TaintAction, ATaintComesAndGoes) {
  nlohmann::json taints;
  const auto look = [&](sim::World& world) {
    taints = At(world.cluster("cluster1").api().Get("Node", {"", "a"})->body, {"spec", "taints"});
  };
  const std::string taint = "{taint: {cluster: cluster1, node: a, key: k, value: v, effect: NoSchedule}}";
  ASSERT_TRUE(RunOnMainMesh("  - {name: s, do: [" + taint + "]}\n", kNodes, look).ok());
  ASSERT_EQ(taints.size(), 1u);
  EXPECT_EQ(taints[0], (nlohmann::json{{"key", "k"}, {"value", "v"}, {"effect", "NoSchedule"}}));
  ASSERT_TRUE(
      RunOnMainMesh("  - {name: s, do: [" + taint + ", {taint: {cluster: cluster1, node: a, key: k, remove: true}}]}\n",
                    kNodes, look)
          .ok());
  EXPECT_TRUE(taints.is_null());
}

}  // namespace
}  // namespace wavetank::scenario
