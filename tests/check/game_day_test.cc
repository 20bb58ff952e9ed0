#include "check/game_day/game_day.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>

#include "check/diff/diff.h"
#include "check/game_day/fork_pool.h"

namespace wavetank::check {
namespace {

using testing::Contains;
using testing::HasSubstr;

MeshSource MainMesh() {
  MeshSource out;
  out.scenario = WAVETANK_SOURCE_DIR "/scenarios/multi-primary-multi-network";
  return out;
}

const Trial* Find(const GameDay& day, const std::string& start) {
  for (const Trial& trial : day.trials) {
    if (trial.failure.starts_with(start)) return &trial;
  }
  return nullptr;
}

TEST(ForkPool, AnswersComeInOrderAndTheDeadAreTold) {
  const auto answers = InForks(
      5, 3, [](size_t i) { return std::string(100'000 * (5 - i), static_cast<char>('a' + i)); }, nullptr);
  ASSERT_TRUE(answers.ok()) << answers.status();
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ((*answers)[i], std::string(100'000 * (5 - i), static_cast<char>('a' + i)));
  const auto dead = InForks(
      2, 2,
      [](size_t i) -> std::string {
        if (i == 1) _exit(3);
        return "alive";
      },
      nullptr);
  EXPECT_FALSE(dead.ok());
  const auto named = InForks(
      1, 1, [](size_t) -> std::string { std::abort(); }, nullptr, nullptr, [](size_t) { return "pod a"; });
  EXPECT_THAT(std::string(named.status().message()),
              AllOf(HasSubstr("that tried pod a died of signal"), HasSubstr("fault of wavetank")));
}

TEST(ForkPool, WhatIsThrownInAForkEndsTheForkAlone) {
  const pid_t parent = getpid();
  const auto thrown = InForks(
      1, 1, [](size_t) -> std::string { throw std::runtime_error("in a fork"); }, nullptr);
  ASSERT_EQ(getpid(), parent) << "the fork went on with its parent's program";
  EXPECT_FALSE(thrown.ok());
}

TEST(GameDay, OfTheMainMeshIsTheSameWithAnyNumberOfProcesses) {
  absl::StatusOr<SettledMesh> settled = BringToRest(MainMesh());
  ASSERT_TRUE(settled.ok()) << settled.status();
  const Mesh mesh(*std::move(settled));
  GameDayOptions options;
  options.failures = 2;
  options.sample = 3;
  options.processes = 3;
  const absl::StatusOr<GameDay> day = RunGameDay(mesh, options);
  ASSERT_TRUE(day.ok()) << day.status();
  options.processes = 1;
  const absl::StatusOr<GameDay> again = RunGameDay(mesh, options);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(GameDayJson(*day).dump(), GameDayJson(*again).dump());

  EXPECT_THAT(day->flows, testing::ElementsAre("from-cluster1", "from-cluster2"));
  for (const char* kind : {"pod ", "node ", "zone ", "gateway ", "gateway address ", "istiod ", "API server ",
                           "remote Secret ", "link ", "cluster ", "root certificate "}) {
    EXPECT_NE(Find(*day, kind), nullptr) << kind;
  }
  // A flow whose clients are gone is not lost; the other goes on.
  const Trial* cluster = Find(*day, "cluster cluster1");
  ASSERT_NE(cluster, nullptr);
  EXPECT_EQ(cluster->effects[0].fate, Fate::kClientGone);
  // A lost node is noticed after 40 s only: until then its gateway is sent to.
  const Trial* node = Find(*day, "node cluster2-node1@cluster2");
  ASSERT_NE(node, nullptr);
  EXPECT_GT(node->effects[0].retried, 0);
  EXPECT_THAT(node->chain, Contains(HasSubstr("Kubernetes has not noticed yet")));
  // An API server that is silent harms no request.
  const Trial* api = Find(*day, "API server cluster1");
  ASSERT_NE(api, nullptr);
  EXPECT_EQ(api->effects[0].fate, Fate::kUnharmed);
  EXPECT_EQ(api->effects[1].failed, 0);
  // Without the other cluster's Secret all requests stay at home.
  const Trial* secret = Find(*day, "remote Secret istio-remote-secret-cluster2@cluster1");
  ASSERT_NE(secret, nullptr);
  EXPECT_EQ(secret->effects[0].fate, Fate::kMoved);
  EXPECT_THAT(SloBreaches(*day, 1'000'001), Contains(HasSubstr("API server")));
}

// Its clients have one request under way each, which a cut line swallows: none fails, and none is answered any more.
TEST(GameDay, AFlowThatWaitsForAnAnswerThatNeverComesIsLostAndHasNotMoved) {
  const std::string path = testing::TempDir() + "/stuck.yaml";
  std::ofstream(path)
      << "extends: " WAVETANK_SOURCE_DIR
         "/scenarios/multi-primary-multi-network/scenario.yaml\nname: stuck\nflows:\n  - {name: "
         "stream, from: {cluster: cluster1, namespace: sample, app: sleep}, to: 'helloworld.sample:5000', "
         "protocol: tcp, connections: keep-alive, closedLoop: {users: 1, think: 50ms}}\n";
  const std::string none = testing::TempDir() + "/none.yaml";
  std::ofstream(none) << "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: helloworld-v1, namespace: "
                         "sample}\nspec:\n  replicas: 0\n  selector: {matchLabels: {app: helloworld, version: "
                         "v1}}\n  template:\n    metadata: {labels: {app: helloworld, version: v1}}\n    spec: "
                         "{containers: [{name: helloworld, image: example/helloworld:v1}]}\n";
  MeshSource source;
  source.scenario = path;
  // The Service's port named for TCP in both clusters.
  const std::string tcp = WAVETANK_SOURCE_DIR "/tests/check/faults/rules-of-another-protocol/cluster2.yaml";
  source.with = {{"cluster1", tcp}, {"cluster1", none}, {"cluster2", tcp}};
  absl::StatusOr<SettledMesh> settled = BringToRest(source);
  ASSERT_TRUE(settled.ok()) << settled.status();
  const Mesh mesh(*std::move(settled));
  const absl::StatusOr<GameDay> day = RunGameDay(mesh, GameDayOptions{});
  ASSERT_TRUE(day.ok()) << day.status();
  const Trial* link = Find(*day, "link ");
  ASSERT_NE(link, nullptr);
  EXPECT_EQ(link->effects[0].fate, Fate::kLost);
  EXPECT_FALSE(link->Recovered());
  EXPECT_THAT(link->chain, Contains(HasSubstr("wait for an answer that does not come")));
  EXPECT_THAT(SloBreaches(*day, 990'000), Contains(HasSubstr("nothing is answered any more")));
}

TEST(GameDay, KnowsPointsOfSingleFailureAndCapacities) {
  absl::StatusOr<SettledMesh> settled = BringToRest(MainMesh());
  ASSERT_TRUE(settled.ok()) << settled.status();
  const Mesh mesh(*std::move(settled));
  const std::vector<WeakPoint> points = WeakPoints(mesh, FlowsOf(mesh, 10));
  // One client pod for each flow; the servers are two, on two ways.
  ASSERT_EQ(points.size(), 2u);
  EXPECT_THAT(points[0].point, HasSubstr("pod sleep-"));
  const std::vector<Capacity> capacities = Capacities(mesh);
  ASSERT_EQ(capacities.size(), 2u);
  EXPECT_EQ(capacities[0].gateways, 1);
  EXPECT_EQ(capacities[0].cut, "one gateway address");
}

TEST(Diff, OfAMeshWithItselfIsEmpty) {
  const absl::StatusOr<MeshDiff> diff = Diff(MainMesh(), MainMesh(), {});
  ASSERT_TRUE(diff.ok()) << diff.status();
  EXPECT_TRUE(diff->Empty()) << DiffMarkdown(*diff);
}

TEST(Diff, TellsWhichFlowsAndEndpointsChange) {
  MeshSource after = MainMesh();
  after.with = {{"cluster2", WAVETANK_SOURCE_DIR "/tests/check/faults/gateway-selects-nothing/cluster2.yaml"}};
  const absl::StatusOr<MeshDiff> diff = Diff(MainMesh(), after, {});
  ASSERT_TRUE(diff.ok()) << diff.status();
  EXPECT_THAT(DiffMarkdown(*diff), HasSubstr("| from-cluster1 |"));
  after.with = {{"cluster2", WAVETANK_SOURCE_DIR "/tests/check/faults/gateway-cluster-ip/cluster2.yaml"}};
  const absl::StatusOr<MeshDiff> moved = Diff(MainMesh(), after, {});
  ASSERT_TRUE(moved.ok()) << moved.status();
  EXPECT_THAT(DiffMarkdown(*moved), HasSubstr("gateway of cluster2"));
  EXPECT_THAT(DiffMarkdown(*moved), HasSubstr("by its own address, in another network"));
}

}  // namespace
}  // namespace wavetank::check
