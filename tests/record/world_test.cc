// A mesh that ran in one world, recorded through its Kubernetes APIs and simulated again from the record alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <set>
#include <tuple>

#include "fmt/format.h"
#include "record/recording.h"
#include "replay/replayer.h"
#include "replay/world_target.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"
#include "scenarios/survey/mesh_survey.h"
#include "tests/record/fake_transport.h"
#include "tests/replay/temp_folder.h"
#include "tests/sim/two_cluster_world.h"

namespace wavetank::record {
namespace {

using nlohmann::json;

class RecordedWorld : public sim::TwoClusterWorld {
 protected:
  void Scale(const std::string& cluster, const std::string& name, int replicas) {
    Do("patch", {{"cluster", cluster},
                 {"kind", "Deployment"},
                 {"namespace", "sample"},
                 {"name", name},
                 {"patch", {{"spec", {{"replicas", replicas}}}}}});
  }
  // The contexts are called otherwise than the clusters: these follow from what is in them.
  void Start() {
    RecordingOptions options;
    for (const char* cluster : {"cluster1", "cluster2"}) {
      DefineIstio(world_->cluster(cluster).api());
      transports_.push_back(std::make_unique<FakeTransport>(host_, world_->cluster(cluster).api()));
      options.clusters.push_back({std::string("admin@") + cluster, transports_.back().get()});
    }
    options.log = path_;
    auto started = Recording::Start(host_, std::move(options));
    ASSERT_TRUE(started.ok()) << started.status();
    recording_ = *std::move(started);
    Run(1s);
    ASSERT_TRUE(recording_->recording()) << recording_->status();
  }
  // Both clocks, side by side.
  void Run(Duration duration) {
    for (Duration done{}; done < duration; done += 10ms) {
      world_->RunUntil(world_->Now() + 10ms);
      kernel_.RunUntil(kernel_.Now() + 10ms);
    }
  }
  void Finish() {
    const absl::Status status = recording_->Finish();
    ASSERT_TRUE(status.ok()) << status;
    recording_.reset();
    transports_.clear();
  }
  void RecordTwoSeconds() {
    Build(/*remote=*/false);
    Start();
    Run(2s);
    Finish();
  }
  std::unique_ptr<sim::World> Again(std::optional<Duration> until = std::nullopt) {
    auto log = replay::LogReader::Open(path_);
    EXPECT_TRUE(log.ok()) << log.status();
    auto world = replay::WorldOfLog(**log, until);
    EXPECT_TRUE(world.ok()) << world.status();
    return world.ok() ? *std::move(world) : nullptr;
  }
  // What proxies hold, but for whether anybody has judged an endpoint bad.
  using Held = std::set<std::tuple<std::string, std::string, std::string, std::string>>;
  static Held EndpointsOf(const sim::World& world) {
    Held out;
    for (const scenario::ProxyEndpoints& held : scenario::ListEndpoints(world)) {
      for (const scenario::EndpointRow& row : *held.rows) {
        out.insert({held.cluster, held.proxy, row.upstream, row.endpoint});
      }
    }
    return out;
  }

  TempFolder folder_;
  const std::string path_ = folder_ / "mesh.wtlog";
  sim::Kernel kernel_{1};
  Host& host_ = kernel_.NewHost("record", 0, nullptr);
  std::vector<std::unique_ptr<FakeTransport>> transports_;
  std::unique_ptr<Recording> recording_;
};

TEST_F(RecordedWorld, GivesEveryProxyTheEndpointsThatItHad) {
  Build(/*remote=*/false);
  Start();
  Finish();
  const Held before = EndpointsOf(*world_);
  ASSERT_GT(before.size(), 20u);
  const std::unique_ptr<sim::World> again = Again();
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(EndpointsOf(*again), before);
  EXPECT_THAT(again->Complaints(), testing::IsEmpty());
  EXPECT_EQ(again->Pods().size(), world_->Pods().size());
  EXPECT_EQ(again->Istiods().size(), 2u);
}

TEST_F(RecordedWorld, OfAPrimaryAndARemoteKnowsWhoServesWhom) {
  Build(/*remote=*/true);
  Start();
  EXPECT_EQ(recording_->world().clusters[1].name, "cluster2");
  EXPECT_EQ(recording_->world().clusters[1].control_plane, "cluster1");
  EXPECT_EQ(recording_->world().clusters[1].network, "network2");
  Finish();
  const Held before = EndpointsOf(*world_);
  const std::unique_ptr<sim::World> again = Again();
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(EndpointsOf(*again), before);
  EXPECT_EQ(again->Istiods().size(), 1u);
}

TEST_F(RecordedWorld, FollowsChangesAlsoThoseThatAGapHid) {
  Build(/*remote=*/false);
  Start();
  Run(4s);
  Scale("cluster2", "helloworld-v2", 3);
  Run(10s);
  transports_[1]->down = true;
  transports_[1]->BreakWatches();
  Scale("cluster2", "helloworld-v2", 1);
  Run(10s);
  world_->cluster("cluster2").api().ForgetHistory();
  transports_[1]->down = false;
  Scale("cluster1", "helloworld-v1", 2);
  Run(60s);
  Finish();
  const std::unique_ptr<sim::World> again = Again();
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(EndpointsOf(*again), EndpointsOf(*world_));
  EXPECT_EQ(again->Pods("cluster2", "sample", "helloworld").size(), 1u);
  // In between it was as it was.
  const std::unique_ptr<sim::World> between = Again(12s);
  ASSERT_NE(between, nullptr);
  EXPECT_EQ(between->Pods("cluster2", "sample", "helloworld").size(), 3u);
}

TEST_F(RecordedWorld, TwoRootsStayTwo) {
  Build(/*remote=*/false, "other-root");
  Start();
  Finish();
  const std::unique_ptr<sim::World> again = Again();
  ASSERT_NE(again, nullptr);
  const auto root = [&](const char* cluster) {
    const auto map = again->cluster(cluster).api().Get("ConfigMap", {"sample", "istio-ca-root-cert"});
    return map == nullptr ? std::string("none") : map->body["data"].dump();
  };
  EXPECT_NE(root("cluster1"), root("cluster2"));
}

TEST_F(RecordedWorld, IsReplayedWithoutAnythingToCompareAndTheSameEveryTime) {
  Build(/*remote=*/false);
  Start();
  Run(2s);
  Scale("cluster1", "helloworld-v1", 2);
  Run(10s);
  Finish();
  std::set<std::string> digests;
  for (int i = 0; i < 2; ++i) {
    auto log = replay::LogReader::Open(path_);
    ASSERT_TRUE(log.ok()) << log.status();
    replay::WorldTarget target;
    const auto result = replay::Replay(**log, target);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_FALSE(result->compared);
    EXPECT_TRUE(result->complete);
    EXPECT_FALSE(result->divergence);
    EXPECT_GT(result->inputs, 40u);
    digests.insert(result->trace_digest);
  }
  EXPECT_EQ(digests.size(), 1u);
}

TEST_F(RecordedWorld, ShowsWhatEachChangeCameToAndWritesALogThatReplaysIdentically) {
  Build(/*remote=*/false);
  Start();
  Run(30s);  // the simulated mesh has to come up
  Scale("cluster2", "helloworld-v2", 3);
  Run(10s);
  Finish();
  scenario::RunOptions options;
  options.from = path_;
  options.log = folder_ / "run.wtlog";
  const auto result = scenario::RunLog(options);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_GE(result->steps.size(), 2u);
  EXPECT_EQ(result->steps[0].name, "the first picture");
  const auto widest = std::max_element(
      result->steps.begin() + 1, result->steps.end(),
      [](const auto& a, const auto& b) { return a.convergence.proxies.size() < b.convergence.proxies.size(); });
  // Pods became ready: all proxies of both clusters heard of their endpoints.
  EXPECT_GE(widest->convergence.proxies.size(), 4u);
  EXPECT_GT(widest->convergence.Total(), 0ms);
  EXPECT_LT(widest->convergence.Total(), 5s);

  auto log = replay::LogReader::Open(options.log);
  ASSERT_TRUE(log.ok()) << log.status();
  replay::WorldTarget target;
  const auto replayed = replay::Replay(**log, target);
  ASSERT_TRUE(replayed.ok()) << replayed.status();
  EXPECT_TRUE(replayed->compared);
  EXPECT_FALSE(replayed->divergence) << replay::Describe(*replayed->divergence);
}

// Steps on the mesh that the record ends with; `at_end` looks at it then.
absl::StatusOr<scenario::RunResult> GoOn(const std::string& log, const std::string& steps,
                                         const std::function<void(sim::World&)>& at_end) {
  const auto clusters = scenario::ClustersOfLog(log);
  if (!clusters.ok()) return clusters.status();
  const auto scenario = scenario::ParseScenario("on.yaml",
                                                "name: n\nflows: [{name: f, from: {cluster: cluster1, namespace: "
                                                "sample, app: sleep}, to: 'helloworld.sample:5000'}]\n"
                                                "steps:\n" +
                                                    steps,
                                                *clusters);
  if (!scenario.ok()) return scenario.status();
  scenario::RunOptions options;
  options.from = log;
  options.on_end = at_end;
  return scenario::Run(*scenario, options);
}

TEST_F(RecordedWorld, GoesOnAsALiveMeshThatIsScaledAndServes) {
  RecordTwoSeconds();
  const auto result =
      GoOn(path_,
           "  - {name: three, do: [{scale: {cluster: cluster2, deployment: sample/helloworld-v2, "
           "replicas: 3}}], then: [{flow: f, requests: 400}], expect: [{requests: {failed: 0}}, {split: "
           "{is: {v1: 25%, v2: 75%}}}]}\n"
           "  - {name: none, do: [{scale: {cluster: cluster2, deployment: sample/helloworld-v2, "
           "replicas: 0}}], then: [{flow: f, requests: 100}], expect: [{requests: {failed: 0}}, {split: "
           "{is: {v1: 100%}}}]}\n",
           [](sim::World& world) {
             EXPECT_EQ(world.Pods("cluster2", "sample", "helloworld").size(), 0u);
             EXPECT_EQ(world.Pods("cluster1", "sample", "helloworld").size(), 1u);
           });
  ASSERT_TRUE(result.ok()) << result.status();
  for (const auto& step : result->steps) {
    for (const auto& e : step.expectations) EXPECT_TRUE(e.held) << step.name << ": " << e.text << ": " << e.explanation;
  }
}

TEST_F(RecordedWorld, GoesOnAsALiveMeshWithoutTouchingWhatRuns) {
  RecordTwoSeconds();
  const Held before = EndpointsOf(*world_);
  std::set<std::string> names;
  for (const sim::PodProcess* pod : world_->Pods()) names.insert(pod->name());
  const auto result = GoOn(path_, "  - {name: nothing, after: 30s}\n", [&](sim::World& world) {
    EXPECT_EQ(EndpointsOf(world), before);
    std::set<std::string> now;
    for (const sim::PodProcess* pod : world.Pods()) now.insert(pod->name());
    EXPECT_EQ(now, names);
  });
  ASSERT_TRUE(result.ok()) << result.status();
}

TEST_F(RecordedWorld, GoesOnAsALiveMeshInWhichKilledPodsComeBack) {
  RecordTwoSeconds();
  const auto result =
      GoOn(path_,
           "  - {name: killed, do: [{kill: {cluster: cluster1, namespace: sample, app: helloworld}}]}\n"
           "  - {name: drained, do: [{drain: {cluster: cluster1, node: n1}}], settle: 30s}\n"
           "  - {name: back, do: [{uncordon: {cluster: cluster1, node: n1}}]}\n"
           "  - {name: rolled, do: [{restart: {cluster: cluster1, deployment: sample/helloworld-v1}}]}\n",
           [](sim::World& world) {
             const auto pods = world.Pods("cluster1", "sample", "helloworld");
             ASSERT_EQ(pods.size(), 1u);
             // Injected as its siblings were.
             EXPECT_NE(pods[0]->envoy(), nullptr);
           });
  ASSERT_TRUE(result.ok()) << result.status();
  // Nowhere else can they run: the step says so.
  EXPECT_THAT(result->steps[1].notes, testing::Contains(testing::HasSubstr("no node takes it")));
}

TEST_F(RecordedWorld, GoesOnAsALiveMeshThatInjectsWhatIsNewByTheRecordedWebhook) {
  RecordTwoSeconds();
  const std::string file = folder_ / "new.yaml";
  std::ofstream(file) << "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: new, namespace: sample}\nspec:\n"
                         "  selector: {matchLabels: {app: new}}\n  template:\n    metadata: {labels: {app: new}}\n"
                         "    spec: {containers: [{name: app, image: example}]}\n";
  const auto result =
      GoOn(path_, "  - {name: new, do: [{apply: {cluster: cluster2, manifest: " + file + "}}], settle: 30s}\n",
           [](sim::World& world) {
             const auto pods = world.Pods("cluster2", "sample", "new");
             ASSERT_EQ(pods.size(), 1u);
             EXPECT_NE(pods[0]->envoy(), nullptr);
           });
  ASSERT_TRUE(result.ok()) << result.status();
}

TEST_F(RecordedWorld, GoesOnAsALiveMeshWhoseBudgetsHoldDrainsBack) {
  Build(/*remote=*/false);
  Do("apply", {{"cluster", "cluster1"},
               {"object",
                {{"apiVersion", "policy/v1"},
                 {"kind", "PodDisruptionBudget"},
                 {"metadata", {{"name", "helloworld"}, {"namespace", "sample"}}},
                 {"spec", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "helloworld"}}}}}}}}}});
  Start();
  Run(2s);
  Finish();
  const auto result =
      GoOn(path_, "  - {name: drained, do: [{drain: {cluster: cluster1, node: n1, timeout: 20s}}], settle: 40s}\n",
           [](sim::World& world) { EXPECT_EQ(world.Pods("cluster1", "sample", "helloworld").size(), 1u); });
  ASSERT_TRUE(result.ok()) << result.status();
}

TEST_F(RecordedWorld, GoesOnAsALiveMeshWhoseLoadBalancersMove) {
  RecordTwoSeconds();
  const auto result = GoOn(path_,
                           "  - {name: gone, do: [{loadBalancer: {cluster: cluster2, service: "
                           "istio-system/istio-eastwestgateway, address: none}}], then: [{flow: f, requests: 100}], "
                           "expect: [{requests: {failed: <= 100%}}]}\n"
                           "  - {name: another, do: [{loadBalancer: {cluster: cluster2, service: "
                           "istio-system/istio-eastwestgateway, address: new}}], then: [{flow: f, requests: 200}], "
                           "expect: [{requests: {failed: 0}}, {split: {by: cluster, is: {cluster1: 50%, cluster2: "
                           "50%}}}]}\n",
                           [](sim::World&) {});
  ASSERT_TRUE(result.ok()) << result.status();
  for (const auto& e : result->steps[1].expectations) EXPECT_TRUE(e.held) << e.text << ": " << e.explanation;
}

TEST_F(RecordedWorld, ARunThatGoesOnIsReplayedIdentically) {
  RecordTwoSeconds();
  const auto clusters = scenario::ClustersOfLog(path_);
  ASSERT_TRUE(clusters.ok()) << clusters.status();
  const auto scenario = scenario::ParseScenario("on.yaml",
                                                "name: n\nsteps: [{name: two, do: [{scale: {cluster: cluster2, "
                                                "deployment: sample/helloworld-v2, replicas: 2}}]}]\n",
                                                *clusters);
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  scenario::RunOptions options;
  options.from = path_;
  options.log = folder_ / "on.wtlog";
  ASSERT_TRUE(scenario::Run(*scenario, options).ok());
  auto log = replay::LogReader::Open(options.log);
  ASSERT_TRUE(log.ok()) << log.status();
  replay::WorldTarget target;
  const auto replayed = replay::Replay(**log, target);
  ASSERT_TRUE(replayed.ok()) << replayed.status();
  EXPECT_FALSE(replayed->divergence);
}

}  // namespace
}  // namespace wavetank::record
