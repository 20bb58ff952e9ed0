// A mesh that ran in one world, recorded through its Kubernetes APIs and simulated again from the record alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "fakes/kube/manifest.h"
#include "fmt/format.h"
#include "record/recording.h"
#include "replay/replayer.h"
#include "replay/world_target.h"
#include "scenarios/mesh_survey.h"
#include "scenarios/runner.h"
#include "sim/world.h"
#include "tests/record/fake_transport.h"
#include "tests/replay/temp_folder.h"

namespace wavetank::record {
namespace {

using nlohmann::json;

class RecordedWorld : public testing::Test {
 protected:
  static sim::WorldOptions TwoClusters(bool remote) {
    sim::WorldOptions options;
    for (const char* n : {"1", "2"}) {
      sim::WorldCluster cluster;
      cluster.name = std::string("cluster") + n;
      cluster.network = std::string("network") + n;
      cluster.control_plane = remote ? "cluster1" : cluster.name;
      cluster.pod_cidr = fmt::format("10.{}.0.0/16", n);
      cluster.service_cidr = fmt::format("10.9{}.0.0/16", n);
      cluster.load_balancer_cidr = fmt::format("172.30.{}.0/24", n);
      cluster.nodes = {{std::string("node") + n, "region1", "zone1"}};
      options.clusters.push_back(std::move(cluster));
    }
    return options;
  }
  void Build(bool remote, const std::string& root2 = "root") {
    auto world = sim::World::Create(TwoClusters(remote));
    ASSERT_TRUE(world.ok()) << world.status();
    world_ = *std::move(world);
    Do("cacerts", {{"cluster", "cluster1"}, {"root", "root"}});
    if (!remote) Do("cacerts", {{"cluster", "cluster2"}, {"root", root2}});
    for (const char* n : {"1", "2"}) Manifest(std::string("cluster") + n, std::string("network") + n);
    Do("install", {{"cluster", "cluster1"}});
    Do("install", {{"cluster", "cluster2"}});
    ASSERT_TRUE(world_->RunUntilSettled(world_->Now() + 2min));
    Do("remoteSecret", {{"of", "cluster2"}, {"in", "cluster1"}, {"state", "present"}});
    if (!remote) Do("remoteSecret", {{"of", "cluster1"}, {"in", "cluster2"}, {"state", "present"}});
    for (const char* n : {"1", "2"}) {
      const std::string cluster = std::string("cluster") + n;
      Manifest(cluster, std::string("eastwest-network") + n);
      Manifest(cluster, "expose-services");
      if (remote && *n == '1') Manifest(cluster, "expose-istiod");
    }
    ASSERT_TRUE(world_->RunUntilSettled(world_->Now() + 2min));
    for (const char* n : {"1", "2"}) {
      const std::string cluster = std::string("cluster") + n;
      for (const std::string& file : {std::string("sample"), std::string("helloworld-service"),
                                      std::string("helloworld-v") + n, std::string("sleep")}) {
        Manifest(cluster, file);
      }
    }
    ASSERT_TRUE(world_->RunUntilSettled(world_->Now() + 2min));
  }
  void Do(const std::string& kind, json body) {
    const absl::Status status = world_->Do({kind, std::move(body)});
    ASSERT_TRUE(status.ok()) << kind << ": " << status;
  }
  void Manifest(const std::string& cluster, const std::string& manifest) {
    const auto objects =
        fakekube::LoadManifests(std::string(WAVETANK_SOURCE_DIR "/scenarios/manifests/") + manifest + ".yaml");
    ASSERT_TRUE(objects.ok()) << objects.status();
    for (const auto& object : *objects) {
      json body = object.object;
      if (!fakekube::ClusterScoped(body.value("kind", "")) && !body["metadata"].contains("namespace")) {
        body["metadata"]["namespace"] = "sample";
      }
      Do("apply", {{"cluster", cluster}, {"object", std::move(body)}});
    }
  }
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
    for (const scenario::EndpointRow& row : scenario::ListEndpoints(world)) {
      out.insert({row.cluster, row.proxy, row.upstream, row.endpoint});
    }
    return out;
  }

  TempFolder folder_;
  const std::string path_ = folder_ / "mesh.wtlog";
  std::unique_ptr<sim::World> world_;
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

}  // namespace
}  // namespace wavetank::record
