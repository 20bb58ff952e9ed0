// Worlds in which releases meet: each istiod and each proxy is of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/istiod/istiod.h"
#include "core/xds/connection.h"
#include "core/xds/discovery_server.h"
#include "fakes/envoy/envoy.h"
#include "sim/upgrade/proxies.h"
#include "tests/sim/two_cluster_world.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class UpgradedWorld : public TwoClusterWorld {
 protected:
  void Upgrade(const std::string& cluster, const std::string& part, const std::string& revision = "") {
    json body = {{"cluster", cluster}, {"profile", "istio-1.30"}, {"part", part}};
    if (!revision.empty()) body["revision"] = revision;
    Do("upgrade", body);
    EXPECT_TRUE(world_->RunUntilSettled(world_->Now() + 3min)) << part;
  }
  absl::Status Try(const json& body) { return world_->Do(*Input::Parse("upgrade", body)); }

  // "sleep": istio-1.18, by the application of each proxy of a cluster.
  std::map<std::string, std::string> ServedBy(const std::string& cluster) const {
    std::map<std::string, std::string> profiles;
    for (const IstiodProcess* process : world_->Istiods()) {
      for (const pilot::Connection* connection : process->istiod().discovery().Clients()) {
        profiles[connection->proxy().metadata.cluster_id.str() + "/" + connection->proxy().id] =
            process->istiod().options().profile.Name();
      }
    }
    std::map<std::string, std::string> out;
    for (const PodProcess* pod : world_->Pods(cluster, "", "")) {
      if (pod->envoy() == nullptr) continue;
      out[pod->app()] = profiles[cluster + "/" + pod->pod()->meta.name + "." + pod->pod()->meta.ns];
    }
    return out;
  }
  std::map<std::string, std::string> Releases(const std::string& cluster) const {
    std::map<std::string, std::string> out;
    for (const PodProcess* pod : world_->Pods(cluster, "", "")) {
      if (pod->envoy() != nullptr) out[pod->app()] = Text(pod->node().metadata, "ISTIO_VERSION");
    }
    return out;
  }
  std::set<std::string> Refusals() const {
    std::set<std::string> out;
    for (const auto& nack : world_->data_plane().nacks()) out.insert(nack.text);
    return out;
  }
};

TEST_F(UpgradedWorld, InPlaceTheProxiesOfAClusterFollowTheirIstiodAndStayOfTheirRelease) {
  Build(/*remote=*/false);
  Upgrade("cluster1", "istiod");
  for (const auto& [app, profile] : ServedBy("cluster1")) EXPECT_EQ(profile, "istio-1.30") << app;
  for (const auto& [app, profile] : ServedBy("cluster2")) EXPECT_EQ(profile, "istio-1.18") << app;
  for (const auto& [app, release] : Releases("cluster1")) EXPECT_EQ(release, "1.18.2") << app;
}

// istio-proxy 1.18 has no filter peer_metadata, and istiod 1.30 asks no more what a proxy has.
TEST_F(UpgradedWorld, OldProxiesRefuseListenersOfANewIstiod) {
  Build(/*remote=*/false);
  EXPECT_TRUE(Refusals().empty());
  Upgrade("cluster1", "istiod");
  ASSERT_FALSE(Refusals().empty());
  for (const std::string& text : Refusals()) {
    EXPECT_THAT(text, HasSubstr("Didn't find a registered implementation for 'istio.metadata_exchange'"));
  }
}

TEST_F(UpgradedWorld, OnceRestartedTheProxiesAreOfTheNewReleaseAndRefuseNothing) {
  Build(/*remote=*/false);
  Upgrade("cluster1", "istiod");
  const size_t before = world_->data_plane().nacks().size();
  Upgrade("cluster1", "gateways");
  EXPECT_EQ(Releases("cluster1")["istio-eastwestgateway"], "1.30.3");
  EXPECT_EQ(Releases("cluster1")["sleep"], "1.18.2");
  Upgrade("cluster1", "workloads");
  for (const auto& [app, release] : Releases("cluster1")) EXPECT_EQ(release, "1.30.3") << app;
  for (size_t i = before; i < world_->data_plane().nacks().size(); ++i) {
    EXPECT_THAT(world_->data_plane().nacks()[i].proxy, testing::Not(HasSubstr("cluster1"))) << "of a restarted proxy";
  }
}

TEST_F(UpgradedWorld, ProxiesSpeakDeltaXdsAsTheirOwnReleaseDoesUnlessTheyAreToldNotTo) {
  Build(/*remote=*/false);
  std::set<std::string> whole, delta;  // that were answered so
  const Subscription of_whole = world_->commons().on_xds.Add(
      [&](const std::string& proxy, const pilot::DiscoveryResponse&) { whole.insert(proxy); });
  const Subscription of_delta = world_->commons().on_delta_xds.Add(
      [&](const std::string& proxy, const pilot::DeltaDiscoveryResponse&) { delta.insert(proxy); });
  Upgrade("cluster1", "istiod");
  EXPECT_THAT(whole, testing::Contains(HasSubstr("sleep")));
  EXPECT_TRUE(delta.empty()) << *delta.begin();
  Do("patch",
     {{"cluster", "cluster1"},
      {"kind", "Deployment"},
      {"namespace", "sample"},
      {"name", "helloworld-v1"},
      {"patch",
       {{"spec",
         {{"template",
           {{"metadata",
             {{"annotations", {{"proxy.istio.io/config", "proxyMetadata: {ISTIO_DELTA_XDS: \"false\"}"}}}}}}}}}}}});
  EXPECT_TRUE(world_->RunUntilSettled(world_->Now() + 3min));
  whole.clear();
  Upgrade("cluster1", "workloads");
  EXPECT_THAT(delta, testing::Contains(HasSubstr("sleep")));
  EXPECT_THAT(delta, testing::Not(testing::Contains(HasSubstr("helloworld-v1"))));
  EXPECT_THAT(whole, testing::Contains(HasSubstr("helloworld-v1")));
}

// istio-proxy has no istio_authn since 1.20, which istiod 1.18 puts into every inbound chain.
TEST_F(UpgradedWorld, NewProxiesRefuseListenersOfAnOldIstiodAndNeverGetReady) {
  Build(/*remote=*/false);
  Upgrade("cluster1", "injector");
  Do("upgrade", {{"cluster", "cluster1"}, {"profile", "istio-1.30"}, {"part", "workloads"}});
  world_->RunUntil(world_->Now() + 1min);
  bool seen = false;
  for (const PodProcess* pod : world_->Pods("cluster1", "sample", "sleep")) {
    if (Text(pod->node().metadata, "ISTIO_VERSION") != "1.30.3") continue;
    seen = true;
    EXPECT_EQ(pod->envoy()->accepted_version(envoysim::XdsType::kLds), "");
    EXPECT_NE(At(world_->cluster("cluster1").api().Get("Pod", {"sample", pod->pod()->meta.name})->body,
                 {"status", "containerStatuses"})
                  .dump()
                  .find("\"ready\":false"),
              std::string::npos);
  }
  EXPECT_TRUE(seen);
  EXPECT_THAT(Refusals(), testing::Contains(HasSubstr("istio_authn")));
}

TEST_F(UpgradedWorld, ARevisionServesTheProxiesThatAreMovedToItAlone) {
  Build(/*remote=*/false);
  Upgrade("cluster1", "istiod", "canary");
  EXPECT_EQ(world_->Istiods().size(), 3U);
  for (const auto& [app, profile] : ServedBy("cluster1")) EXPECT_EQ(profile, "istio-1.18") << app;
  Upgrade("cluster1", "gateways", "canary");
  EXPECT_EQ(ServedBy("cluster1")["istio-eastwestgateway"], "istio-1.30");
  EXPECT_EQ(ServedBy("cluster1")["sleep"], "istio-1.18");
  Upgrade("cluster1", "workloads", "canary");
  for (const auto& [app, profile] : ServedBy("cluster1")) EXPECT_EQ(profile, "istio-1.30") << app;
  EXPECT_TRUE(Refusals().empty());
}

TEST_F(UpgradedWorld, TheOldIstiodGoesWithAllThatIsItsOwn) {
  Build(/*remote=*/false);
  for (const char* part : {"istiod", "gateways", "workloads", "oldIstiod"}) Upgrade("cluster1", part, "canary");
  const auto& api = world_->cluster("cluster1").api();
  for (const char* kind : {"Deployment", "Service"}) {
    EXPECT_EQ(api.Get(kind, {"istio-system", "istiod"}), nullptr) << kind;
    EXPECT_NE(api.Get(kind, {"istio-system", "istiod-canary"}), nullptr) << kind;
  }
  EXPECT_EQ(api.Get("ConfigMap", {"istio-system", "istio-sidecar-injector"}), nullptr);
  ASSERT_EQ(api.List("MutatingWebhookConfiguration").size(), 1U);
  EXPECT_EQ(api.List("MutatingWebhookConfiguration")[0]->meta.name, "istio-sidecar-injector-canary");
  for (const auto& [app, profile] : ServedBy("cluster1")) EXPECT_EQ(profile, "istio-1.30") << app;
  EXPECT_TRUE(world_->Complaints().empty());
}

TEST_F(UpgradedWorld, WhatCannotBeDoneIsRefusedWithItsReason) {
  Build(/*remote=*/true);
  const auto why = [&](const json& body) { return std::string(Message(Try(body))); };
  EXPECT_THAT(why({{"cluster", "cluster1"}, {"profile", "istio-1.30"}, {"part", "istiod"}, {"revision", "b"}}),
              HasSubstr("serves remote cluster 'cluster2'"));
  EXPECT_THAT(why({{"cluster", "cluster1"}, {"profile", "istio-7"}, {"part", "istiod"}}), HasSubstr("istio-7"));
  EXPECT_THAT(why({{"cluster", "cluster1"}, {"profile", "istio-1.30"}, {"part", "ztunnel"}}), HasSubstr("ztunnel"));
  EXPECT_THAT(why({{"cluster", "cluster1"}, {"profile", "istio-1.30"}, {"part", "oldIstiod"}}),
              HasSubstr("the revision that stays"));
  EXPECT_THAT(why({{"cluster", "cluster9"}, {"profile", "istio-1.30"}, {"part", "istiod"}}), HasSubstr("cluster9"));
  EXPECT_EQ(world_->Istiods().size(), 1U);
}

TEST_F(UpgradedWorld, OfARemoteClusterTheProxiesAreUpgradedAndTheIstiodIsItsPrimarys) {
  Build(/*remote=*/true);
  Upgrade("cluster1", "istiod");
  Upgrade("cluster2", "istiod");  // changes nothing
  Upgrade("cluster2", "workloads");
  EXPECT_EQ(world_->Istiods().size(), 1U);
  EXPECT_EQ(Releases("cluster2")["sleep"], "1.30.3");
  EXPECT_EQ(ServedBy("cluster2")["sleep"], "istio-1.30");
}

TEST_F(UpgradedWorld, AnIstiodWhoseProfileThereIsNotDoesNotStartAndSaysSo) {
  Build(/*remote=*/false);
  Do("patch",
     {{"cluster", "cluster1"},
      {"kind", "Deployment"},
      {"namespace", "istio-system"},
      {"name", "istiod"},
      {"patch", {{"spec", {{"template", {{"metadata", {{"annotations", {{"wavetank/profile", "istio-99"}}}}}}}}}}}});
  world_->RunUntil(world_->Now() + 30s);
  EXPECT_THAT(world_->Complaints(), testing::Contains(HasSubstr("istio-99")));
  for (const auto& [app, profile] : ServedBy("cluster1")) EXPECT_EQ(profile, "istio-1.18") << app;  // the old pod stays
}

TEST_F(UpgradedWorld, WorkloadsWithProxiesAreToldFromGatewaysAndFromTheRest) {
  Build(/*remote=*/false);
  std::vector<std::string> gateways, sidecars;
  for (const ProxyWorkload& workload : ProxyWorkloads(world_->cluster("cluster1").api())) {
    (workload.gateway ? gateways : sidecars).push_back(workload.kind + " " + workload.name);
  }
  EXPECT_THAT(gateways, ElementsAre("Deployment istio-eastwestgateway"));
  EXPECT_THAT(sidecars, UnorderedElementsAre("Deployment helloworld-v1", "Deployment sleep"));
}

}  // namespace
}  // namespace wavetank::sim
