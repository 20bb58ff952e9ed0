// What worlds do when they are pushed: connections of the control plane, inputs, names.
#include "sim/world.h"
#include "sim/inputs/kinds/network.h"
#include "sim/inputs/kinds/objects.h"
#include "sim/inputs/kinds/pods.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/network/dns.h"
#include "tests/sim/two_cluster_world.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class WorldTest : public TwoClusterWorld {
 protected:
  void Build(bool remote) {
    TwoClusterWorld::Build(remote);
    EXPECT_THAT(world_->Complaints(), testing::IsEmpty());
  }
  const PodProcess& Only(const std::string& cluster, const std::string& app) {
    const auto pods = world_->Pods(cluster, "", app);
    EXPECT_EQ(pods.size(), 1u) << app << " in " << cluster;
    return *pods.front();
  }
  bool Connected(const std::string& cluster, const std::string& app) {
    const auto pods = world_->Pods(cluster, "", app);
    return !pods.empty() && pods.front()->envoy() != nullptr && pods.front()->envoy()->ads_connected();
  }
  void Run(Duration duration) { world_->RunUntil(world_->Now() + duration); }
};

TEST_F(WorldTest, ARemoteProxyReachesIstiodThroughThePrimarysGateway) {
  Build(/*remote=*/true);
  EXPECT_TRUE(Connected("cluster2", "sleep"));
  EXPECT_EQ(world_->Istiods().size(), 1u);
  // Without that gateway there is no way, and nobody comes back before it does.
  Do("patch", {{"cluster", "cluster1"},
               {"kind", "Deployment"},
               {"namespace", "istio-system"},
               {"name", "istio-eastwestgateway"},
               {"patch", {{"spec", {{"replicas", 0}}}}}});
  Run(20s);
  EXPECT_FALSE(Connected("cluster2", "sleep"));
  EXPECT_TRUE(Connected("cluster1", "sleep"));
  Do("patch", {{"cluster", "cluster1"},
               {"kind", "Deployment"},
               {"namespace", "istio-system"},
               {"name", "istio-eastwestgateway"},
               {"patch", {{"spec", {{"replicas", 1}}}}}});
  Run(60s);
  EXPECT_TRUE(Connected("cluster2", "sleep"));
}

TEST_F(WorldTest, AStreamOverACutLineBreaksAfterItsKeepaliveAndComesBackWhenTheLineDoes) {
  Build(/*remote=*/true);
  Do("link", {{"between", {"cluster1", "cluster2"}}, {"cut", true}});
  // A change makes somebody speak; silence alone is noticed by nobody.
  Do("patch", {{"cluster", "cluster1"},
               {"kind", "Deployment"},
               {"namespace", "sample"},
               {"name", "helloworld-v1"},
               {"patch", {{"spec", {{"replicas", 2}}}}}});
  Run(20s);
  EXPECT_TRUE(Connected("cluster2", "sleep")) << "broken before the keepalive gave up";
  Run(60s);
  EXPECT_FALSE(Connected("cluster2", "sleep"));
  Do("link", {{"between", {"cluster1", "cluster2"}}, {"cut", false}});
  Run(90s);
  EXPECT_TRUE(Connected("cluster2", "sleep"));
}

TEST_F(WorldTest, ProxiesComeBackToAnIstiodThatWasKilled) {
  Build(/*remote=*/false);
  Do("kill", {{"cluster", "cluster1"}, {"namespace", "istio-system"}, {"app", "istiod"}});
  Run(100ms);
  EXPECT_FALSE(Connected("cluster1", "sleep"));
  EXPECT_TRUE(Connected("cluster2", "sleep"));
  Run(60s);
  EXPECT_TRUE(Connected("cluster1", "sleep"));
}

TEST_F(WorldTest, RefusesAWrongInputAndChangesNothing) {
  Build(/*remote=*/false);
  const std::string before = world_->kernel().digest().Hex();
  using namespace inputs;  // NOLINT
  EXPECT_THAT(std::string(world_->Do(ApplyObject{"nowhere", {}}).message()), HasSubstr("nowhere"));
  EXPECT_FALSE(world_->Do(ApplyObject{"cluster1", {{"kind", "Pod"}}}).ok());
  EXPECT_FALSE(world_->Do(KillPods{"cluster1", "", "nobody"}).ok());
  EXPECT_FALSE(world_->Do(SetLoadBalancer{"cluster1", "", "x", "new"}).ok());
  EXPECT_EQ(world_->kernel().digest().Hex(), before);
}

TEST_F(WorldTest, WhatAPodExcludesFromItsSidecarDoesNotPassIt) {
  Build(/*remote=*/false);
  const auto send = [this](const std::string& id) {
    std::string cluster = "no answer";  // of the client's sidecar, which alone knows clusters
    const Subscription requests = world_->commons().on_request.Add([&](const TrafficRecord& record) {
      if (record.server != nullptr) cluster = record.record.cluster;
    });
    Do("traffic", {{"id", id},
                   {"flow", id},
                   {"from", {{"cluster", "cluster1"}, {"namespace", "sample"}, {"app", "sleep"}}},
                   {"host", "helloworld.sample"},
                   {"port", 5000},
                   {"requests", 1}});
    Run(5s);
    return cluster;
  };
  EXPECT_EQ(send("through"), "outbound|5000||helloworld.sample.svc.cluster.local");
  const json annotations = {{"traffic.sidecar.istio.io/excludeOutboundPorts", "5000"}};
  Do("patch", {{"cluster", "cluster1"},
               {"kind", "Deployment"},
               {"namespace", "sample"},
               {"name", "sleep"},
               {"patch", {{"spec", {{"template", {{"metadata", {{"annotations", annotations}}}}}}}}}});
  ASSERT_TRUE(world_->RunUntilSettled(world_->Now() + 2min));
  EXPECT_EQ(send("around"), "");
}

TEST_F(WorldTest, APodThatCallsItsOwnServiceIsAmongThoseThatAnswer) {
  Build(/*remote=*/false);
  int own = 0, other = 0;
  const Subscription requests = world_->commons().on_request.Add([&](const TrafficRecord& record) {
    ASSERT_NE(record.server, nullptr);
    ++(record.server->cluster == "cluster1" ? own : other);
  });
  Do("traffic", {{"id", "self"},
                 {"flow", "self"},
                 {"from", {{"cluster", "cluster1"}, {"namespace", "sample"}, {"app", "helloworld"}}},
                 {"host", "helloworld.sample"},
                 {"port", 5000},
                 {"requests", 40}});
  Run(20s);
  EXPECT_EQ(own + other, 40);
  EXPECT_GT(own, 5);
  EXPECT_GT(other, 5);
}

// pilot-agent starts as many workers as its container may use processors: its limit, or without one the node's.
TEST_F(WorldTest, AProxyWithoutACpuLimitRunsOnTheProcessorsOfItsNode) {
  Build(/*remote=*/false);
  const auto concurrency = [this] {
    std::vector<int64_t> out;
    for (const PodProcess* pod : world_->Pods("cluster1", "sample", "sleep")) {
      const json& config = pod->node().metadata["PROXY_CONFIG"];
      out.push_back(config.value("concurrency", int64_t{0}));
    }
    return out;
  };
  EXPECT_THAT(concurrency(), testing::ElementsAre(2));  // the injection template's limit
  Do("patch", {{"cluster", "cluster1"},
               {"kind", "Node"},
               {"namespace", ""},
               {"name", "n1"},
               {"patch", {{"status", {{"allocatable", {{"cpu", "3500m"}}}}}}}});
  // Requests of its own take the template's resources away, and with them its limit.
  const json annotations = {{"sidecar.istio.io/proxyCPU", "100m"}};
  Do("patch", {{"cluster", "cluster1"},
               {"kind", "Deployment"},
               {"namespace", "sample"},
               {"name", "sleep"},
               {"patch", {{"spec", {{"template", {{"metadata", {{"annotations", annotations}}}}}}}}}});
  ASSERT_TRUE(world_->RunUntilSettled(world_->Now() + 2min));
  EXPECT_THAT(concurrency(), testing::ElementsAre(4));
}

TEST_F(WorldTest, KeySetsAreWhatTheWorldSaysAndOthersComeWithTheNextRefresh) {
  Build(/*remote=*/false);
  std::string listeners;  // of helloworld-v1, as it was sent them last
  const auto follow = [&](const std::string& proxy, const pilot::DiscoveryResponse& response) {
    if (response.type != pilot::XdsType::kLds || !proxy.starts_with("helloworld-v1")) return;
    listeners.clear();
    for (const pilot::Resource& resource : response.resources) listeners += *resource.bytes;
  };
  const Subscription responses = world_->commons().on_xds.Add(follow);
  const std::string uri = "https://issuer.example/keys";
  const auto keys = [](const char* kid) { return json{{"keys", json::array({{{"kid", kid}}})}}; };
  Do("apply", {{"cluster", "cluster1"},
               {"object",
                {{"apiVersion", "security.istio.io/v1beta1"},
                 {"kind", "RequestAuthentication"},
                 {"metadata", {{"name", "tokens"}, {"namespace", "sample"}}},
                 {"spec", {{"jwtRules", json::array({{{"issuer", "issuer.example"}, {"jwksUri", uri}}})}}}}}});
  Run(5s);
  EXPECT_THAT(listeners, HasSubstr("\"kid\":\"abc\"")) << "nobody answers there yet: a key that verifies nothing";
  Do("keySet", {{"uri", uri}, {"keys", keys("first")}});
  Run(5s);
  EXPECT_THAT(listeners, HasSubstr("first")) << "the attempts have not ended";
  Do("keySet", {{"uri", uri}, {"keys", keys("second")}});
  Run(19min);
  EXPECT_THAT(listeners, HasSubstr("first"));
  Run(2min);
  EXPECT_THAT(listeners, HasSubstr("second"));
}

// istioctl: pkg/config/analysis/analyzers/injection. It panics where the first is missing, and warns of every sidecar
// whose image is not what the others make.
TEST_F(WorldTest, TheInstallationSaysOfInjectionWhatIstioctlAnalyzeReads) {
  Build(/*remote=*/false);
  const fakekube::ApiServer& api = world_->cluster("cluster2").api();
  const kube::ObjectRef map = api.Get("ConfigMap", {"istio-system", "istio-sidecar-injector"});
  ASSERT_NE(map, nullptr);
  const json values = json::parse(map->body["data"].value("values", ""), nullptr, false);
  EXPECT_EQ(values.value("/sidecarInjectorWebhook/enableNamespacesByDefault"_json_pointer, true), false);
  const auto global = [&](const char* path) { return values["global"].value(json::json_pointer(path), ""); };
  const kube::ObjectRef pod = api.Get("Pod", {"sample", Only("cluster2", "sleep").pod()->meta.name});
  std::vector<std::string> images;
  for (const json& container : pod->body["spec"]["containers"]) {
    if (container["name"] == "istio-proxy") images.push_back(container["image"]);
  }
  EXPECT_THAT(images, testing::ElementsAre(global("/hub") + "/" + global("/proxy/image") + ":" + global("/tag")));
}

TEST_F(WorldTest, OptionsSurviveTheirJson) {
  const WorldOptions options = TwoClusters(true);
  const absl::StatusOr<WorldOptions> again = WorldOptions::FromJson(options.ToJson());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->ToJson(), options.ToJson());
  json broken = options.ToJson();
  broken.erase("clusters");
  EXPECT_FALSE(WorldOptions::FromJson(broken).ok());
}

TEST_F(WorldTest, ACountOfItsTimingEndsAtABillion) {
  WorldOptions options = TwoClusters(false);
  options.timing["istiod.cpus"] = "9223372036854775807";
  EXPECT_THAT(std::string(World::Create(options).status().message()),
              HasSubstr("timing istiod.cpus: '9223372036854775807' cannot be read"));
}

TEST_F(WorldTest, NamesResolveByAPodsSearchListAndLoadBalancersForEverybody) {
  Build(/*remote=*/false);
  ClusterDns dns(world_->cluster("cluster1").api(), world_->commons().dns);
  const auto vip = dns.Resolve("helloworld.sample.svc.cluster.local", "default");
  ASSERT_TRUE(vip.ok()) << vip.status();
  EXPECT_EQ(*dns.Resolve("helloworld", "sample"), *vip);
  EXPECT_EQ(*dns.Resolve("helloworld.sample", "default"), *vip);
  EXPECT_FALSE(dns.Resolve("helloworld", "default").ok());
  EXPECT_FALSE(dns.Resolve("nowhere.example", "sample").ok());
  EXPECT_EQ(dns.Resolve("10.9.8.7", "sample")->front().ToString(), "10.9.8.7");
  EXPECT_EQ(dns.Resolve("lb-172-30-2-1.cluster2.example", "sample")->front().ToString(), "172.30.2.1");
}

// Each version of a pod is some 20 KB: a large mesh would hold two of each.
TEST_F(WorldTest, AProcessHoldsNoOlderVersionOfItsPodThanTheClusterUnlessItsLabelsWereOthers) {
  Build(false);
  ASSERT_FALSE(world_->Pods().empty());
  const PodProcess* sleep = nullptr;
  for (const PodProcess* pod : world_->Pods()) {
    const kube::ObjectMeta& meta = pod->pod()->meta;
    EXPECT_EQ(pod->pod(), world_->cluster(pod->site().name).api().Get("Pod", {meta.ns, meta.name})) << pod->name();
    if (pod->app() == "sleep") sleep = pod;
  }
  ASSERT_NE(sleep, nullptr);
  const kube::ObjectRef started = sleep->pod();
  Do("patch", {{"cluster", sleep->site().name},
               {"kind", "Pod"},
               {"namespace", started->meta.ns},
               {"name", started->meta.name},
               {"patch", {{"metadata", {{"labels", {{"tier", "gold"}}}}}}}});
  world_->RunUntil(world_->Now() + 1s);
  EXPECT_EQ(sleep->pod(), started);
}

}  // namespace
}  // namespace wavetank::sim
