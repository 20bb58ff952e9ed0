// Nodes and zones that are lost and come back, in a running mesh.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/base/json_access.h"
#include "core/kube/types.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"
#include "sim/world.h"

namespace wavetank::scenario {
namespace {

using testing::HasSubstr;

absl::StatusOr<RunResult> RunWithMachines(const std::string& steps, const std::function<void(sim::World&)>& at_end) {
  absl::StatusOr<Scenario> scenario = LoadScenario(WAVETANK_SOURCE_DIR "/scenarios/multi-primary-multi-network");
  if (!scenario.ok()) return scenario.status();
  const absl::StatusOr<Scenario> own = ParseScenario("own.yaml",
                                                     "name: n\nclusters: [{name: cluster1}, {name: cluster2}]\n"
                                                     "flows: [{name: from-cluster1, from: {cluster: cluster1, "
                                                     "namespace: sample, app: sleep}, to: 'helloworld:5000'}]\n"
                                                     "steps:\n" +
                                                         steps);
  if (!own.ok()) return own.status();
  scenario->clusters[1].nodes = {{"a", "region1", "zone-a", ""}, {"b", "region1", "zone-b", ""}};
  scenario->steps = own->steps;
  RunOptions options;
  options.on_end = at_end;
  return Run(*scenario, options);
}

// Where helloworld-v2 runs, and how Kubernetes sees that.
struct Seen {
  std::string node;
  size_t pods = 0, ready = 0, terminating = 0;
  nlohmann::json taints;
  std::string node_ready;
};

Seen LookAtPods(sim::World& world) {
  Seen out;
  const auto& api = world.cluster("cluster2").api();
  for (const kube::ObjectRef& pod : api.List("Pod")) {
    if (pod->meta.ns != "sample" || pod->meta.name.find("helloworld") != 0) continue;
    ++out.pods;
    out.terminating += pod->meta.deleting ? 1 : 0;
    for (const auto& condition : Items(At(pod->body, {"status", "conditions"})))
      out.ready += Text(condition, "type") == "Ready" && Text(condition, "status") == "True" ? 1 : 0;
    if (!pod->meta.deleting) out.node = kube::ParsePod(*pod).node_name;
  }
  return out;
}

std::string NodeOfHelloworld() {
  Seen seen;
  EXPECT_TRUE(RunWithMachines("  - {name: nothing}\n", [&](sim::World& world) { seen = LookAtPods(world); }).ok());
  return seen.node;
}

TEST(NodeAction, ALostNodeIsNoticedAfterItsGraceAndItsPodsMoveWhenTheirTolerationIsOver) {
  const std::string node = NodeOfHelloworld();
  ASSERT_FALSE(node.empty());
  Seen early, late, moved;
  std::string ready, status;
  nlohmann::json taints;
  const auto run = [&](const std::string& settle, Seen* seen) {
    const auto result = RunWithMachines(
        "  - {name: s, do: [{node: {cluster: cluster2, node: " + node + ", state: lost}}], settle: " + settle + "}\n",
        [&](sim::World& world) {
          *seen = LookAtPods(world);
          const auto object = world.cluster("cluster2").api().Get("Node", {"", node});
          status = Text(Items(At(object->body, {"status", "conditions"})).back(), "status");
          taints = At(object->body, {"spec", "taints"});
        });
    ASSERT_TRUE(result.ok()) << result.status();
  };
  run("39s", &early);
  EXPECT_EQ(early.ready, 1u);
  EXPECT_EQ(status, "True");
  run("42s", &late);
  EXPECT_EQ(late.ready, 0u);
  EXPECT_EQ(late.pods, 1u);
  EXPECT_EQ(status, "Unknown");
  EXPECT_EQ(taints.size(), 2u);
  run("8m", &moved);
  EXPECT_EQ(moved.pods, 2u);
  EXPECT_EQ(moved.terminating, 1u);  // no kubelet ends it
  EXPECT_EQ(moved.ready, 1u);
  EXPECT_NE(moved.node, node);
}

TEST(NodeAction, ANodeThatIsBackStartsItsPodsAgain) {
  const std::string node = NodeOfHelloworld();
  Seen back;
  nlohmann::json taints;
  const auto result =
      RunWithMachines("  - {name: lost, do: [{node: {cluster: cluster2, node: " + node +
                          ", state: lost}}], settle: 60s}\n"
                          "  - {name: back, do: [{node: {cluster: cluster2, node: " +
                          node +
                          ", state: back}}]}\n"
                          "  - {name: served, after: 30s, then: [{flow: from-cluster1, requests: 200}],\n"
                          "     expect: [{requests: {failed: 0}}, {split: {by: cluster, is: {cluster1: 50%, "
                          "cluster2: 50%}}}]}\n",
                      [&](sim::World& world) {
                        back = LookAtPods(world);
                        taints = At(world.cluster("cluster2").api().Get("Node", {"", node})->body, {"spec", "taints"});
                      });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(back.node, node);
  EXPECT_EQ(back.pods, 1u);
  EXPECT_EQ(back.ready, 1u);
  EXPECT_TRUE(taints.is_null());
  EXPECT_TRUE(result->Passed());
}

TEST(ZoneAction, AllNodesOfAZoneGo) {
  std::set<std::string> left;
  const auto result = RunWithMachines("  - {name: s, do: [{zone: {zone: zone-a, state: lost}}], settle: 10s}\n",
                                      [&](sim::World& world) {
                                        for (const sim::PodProcess* pod : world.Pods("cluster2", "", ""))
                                          left.insert(kube::ParsePod(*pod->pod()).node_name);
                                      });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(left.contains("a"));
  const auto wrong = RunWithMachines("  - {name: s, do: [{zone: {zone: moon, state: lost}}]}\n", {});
  EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("no node is in zone 'moon'; there are zone-a, zone-b"));
  const auto unknown = RunWithMachines("  - {name: s, do: [{node: {cluster: cluster2, node: c, state: lost}}]}\n", {});
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("has no node 'c'; it has a, b"));
}

}  // namespace
}  // namespace wavetank::scenario
