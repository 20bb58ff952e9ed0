#include "core/registry/multicluster/registries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/profile/changes.h"
#include "sim/kernel/kernel.h"
#include "tests/core/kube/memory_client.h"
#include "tests/core/registry/multicluster/remote_clusters.h"
#include "tests/core/registry/objects.h"
#include "tests/core/registry/recorded_updater.h"

namespace wavetank::pilot {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kWeb[] = "web.shop.svc.cluster.local";

class RegistriesTest : public ::testing::Test {
 protected:
  void Start() {
    Registries::Options options;
    options.config_cluster = ClusterId("c1");
    options.trust_domain = [] { return "cluster.local"; };
    options.networks = [] { return nullptr; };
    options.profile = &profile;
    options.features = features;
    registries = std::make_unique<Registries>(client, remote, host, updater, configs, std::move(options));
    registries->Start();
    Run();
  }
  void Run(Duration d = 1s) { kernel.RunUntil(kernel.Now() + d); }
  void PutWeb(kube::MemoryClient& server, const std::string& ip) {
    server.Put(ServiceOf("web", {{"app", "web"}}));
    server.Put(PodOf("web-1", ip, {{"app", "web"}}));
    server.Put(SliceOf("web", {{"web-1", ip}}));
  }
  std::vector<std::string> Addresses(const std::string& cluster) const {
    return updater.Addresses({ClusterId(cluster), Provider::kKubernetes}, kWeb, "shop");
  }
  void PutGateway(kube::MemoryClient& server, const std::string& ip) {
    json gateway = ServiceOf("gw", {{"app", "gw"}});
    gateway["metadata"]["labels"] = {{"topology.istio.io/network", "n2"}};
    gateway["spec"]["type"] = "LoadBalancer";
    gateway["spec"]["ports"].push_back({{"name", "tls"}, {"port", 15443}, {"protocol", "TCP"}});
    gateway["status"] = {{"loadBalancer", {{"ingress", {{{"ip", ip}}}}}}};
    server.Put(gateway);
  }
  std::vector<std::string> Gateways() const {
    std::vector<std::string> out;
    const auto all = registries->networks().Gateways();
    for (const NetworkGateway& gateway : all->All()) out.push_back(gateway.addr);
    return out;
  }
  void PutSecret(const std::string& token) { client.Put(RemoteSecretOf("remote-c2", "c2", KubeconfigOf("c2", token))); }
  // A remote cluster with one endpoint, its Secret rotated, and after every event whatever the endpoint index has: what
  // a push at that moment would send.
  std::vector<size_t> EndpointsWhileTheSecretRotates() {
    PutWeb(remote.Server("c2"), "10.2.0.5");
    PutSecret("t0");
    Start();
    std::vector<size_t> seen = {Addresses("c2").size()};
    PutSecret("t1");
    for (const Time end = kernel.Now() + 10s; kernel.NextTime() && *kernel.NextTime() < end;) {
      kernel.Step();
      seen.push_back(Addresses("c2").size());
    }
    EXPECT_EQ(remote.connected, 2) << "the Secret was rotated";
    return seen;
  }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  kube::MemoryClient client{host};
  RemoteClusters remote{host};
  RecordedUpdater updater;
  config::ConfigStore configs;
  Profile profile;
  Features features;
  std::unique_ptr<Registries> registries;
};

TEST_F(RegistriesTest, AServiceOfTwoClustersHasAShardOfEach) {
  PutWeb(client, "10.1.0.5");
  PutWeb(remote.Server("c2"), "10.2.0.5");
  PutSecret("t0");
  Start();
  EXPECT_TRUE(registries->HasSynced());
  EXPECT_TRUE(registries->Idle());
  EXPECT_THAT(Addresses("c1"), ElementsAre("10.1.0.5:8080"));
  EXPECT_THAT(Addresses("c2"), ElementsAre("10.2.0.5:8080"));
  EXPECT_EQ(registries->aggregate().GetService(kWeb)->cluster_vips.size(), 2u);
}

TEST_F(RegistriesTest, ADeletedSecretTakesTheClustersShardsAndPushesEverything) {
  PutWeb(remote.Server("c2"), "10.2.0.5");
  PutSecret("t0");
  Start();
  std::vector<std::string> told;
  registries->on_cluster_deleted = [&](const ClusterId& id) { told.push_back("deleted " + id.str()); };
  registries->on_cluster_stopped = [&](const ClusterId& id) { told.push_back("stopped " + id.str()); };
  updater.Take();
  client.Remove(kube::kinds::kSecret, "istio-system", "remote-c2");
  Run();
  EXPECT_THAT(Addresses("c2"), IsEmpty());
  EXPECT_EQ(registries->Find(ClusterId("c2")), nullptr);
  EXPECT_EQ(registries->aggregate().GetService(kWeb), nullptr);
  EXPECT_THAT(updater.Take(), ElementsAre("shard of c2 removed", "full cluster"));
  EXPECT_THAT(told, ElementsAre("stopped c2", "deleted c2"));
}

TEST_F(RegistriesTest, GatewaysOfADeletedClusterStayUntilSomethingElseReloads) {
  PutGateway(remote.Server("c2"), "198.51.100.2");
  PutSecret("t0");
  Start();
  client.Remove(kube::kinds::kSecret, "istio-system", "remote-c2");
  Run();
  EXPECT_EQ(registries->networks().Gateways()->All().size(), 1u);
  registries->networks().Reload();
  EXPECT_THAT(registries->networks().Gateways()->All(), IsEmpty());
}

TEST_F(RegistriesTest, AnUnreachableRemoteClusterHoldsUpTheStartForItsTimeoutOnly) {
  remote.Server("c2").refusing = true;
  PutSecret("t0");
  Start();
  EXPECT_FALSE(registries->HasSynced());
  Run(30s);
  EXPECT_TRUE(registries->HasSynced());
}

// 1.30 reads the remote cluster's mesh config before its registry; the time runs from the cluster's beginning (istiod:
// pkg/kube/multicluster/cluster.go, Run).
TEST_F(RegistriesTest, AnUnreachableRemoteClusterHoldsUpThatOfLaterReleasesNotLonger) {
  profile = *ParseProfile("istio-1.30");
  remote.Server("c2").refusing = true;
  PutSecret("t0");
  Start();
  EXPECT_FALSE(registries->HasSynced());
  Run(30s);
  EXPECT_TRUE(registries->HasSynced());
}

TEST_F(RegistriesTest, AClusterThatGoesWhileItStartsIsNotStarted) {
  Start();
  std::vector<std::string> started;
  registries->on_cluster_started = [&](const ClusterId& id, kube::Client&, bool) { started.push_back(id.str()); };
  PutSecret("t0");
  client.Remove(kube::kinds::kSecret, "istio-system", "remote-c2");
  Run();
  EXPECT_THAT(started, Not(Contains("c2")));
  EXPECT_EQ(registries->Find(ClusterId("c2")), nullptr);
}

// 1.18.2: the old registry goes before the new one has listed anything, and a push in between has no endpoints of the
// cluster (istio#36365).
TEST_F(RegistriesTest, RemoteSecretRotatedMidPushLosesTheEndpointsForAMoment) {
  const std::vector<size_t> seen = EndpointsWhileTheSecretRotates();
  EXPECT_EQ(seen.front(), 1u);
  EXPECT_THAT(seen, Contains(0u));
  EXPECT_EQ(seen.back(), 1u);
}

TEST_F(RegistriesTest, RemoteSecretRotatedMidPushLosesNoEndpoint) {
  profile.Set(Change::kGracefulSecretUpdate);
  const std::vector<size_t> seen = EndpointsWhileTheSecretRotates();
  EXPECT_GT(seen.size(), 10u) << "events between which a push may fall";
  EXPECT_THAT(seen, ::testing::Each(1u));
}

// Then no ServiceEntries are followed beside a registry. Found by a random mesh: the program ended there.
TEST_F(RegistriesTest, ARotatedSecretIsTakenOverWhereServicesSelectNoWorkloadEntries) {
  profile.Set(Change::kGracefulSecretUpdate);
  features.services_select_entries = false;
  EXPECT_THAT(EndpointsWhileTheSecretRotates(), ::testing::Each(1u));
  EXPECT_TRUE(registries->Idle());
}

// The new registry says everything it knows, and what the old one knew beside that goes.
TEST_F(RegistriesTest, WhatIsGoneFromTheClusterGoesWhenTheNewRegistryTakesOver) {
  profile.Set(Change::kGracefulSecretUpdate);
  PutWeb(remote.Server("c2"), "10.2.0.5");
  PutSecret("t0");
  Start();
  // The old registry hears nothing of this: its watches are broken when it happens.
  remote.Server("c2").BreakWatches(absl::UnavailableError("gone"));
  remote.Server("c2").Remove(kube::kinds::kService, "shop", "web");
  remote.Server("c2").Remove(kube::kinds::kEndpointSlice, "shop", "web-1");
  PutSecret("t1");
  Run(10s);
  EXPECT_THAT(Addresses("c2"), IsEmpty());
  EXPECT_EQ(registries->aggregate().GetService(kWeb), nullptr);
}

TEST_F(RegistriesTest, ASuccessorThatNeverSyncsLeavesTheOldRegistryInUse) {
  profile.Set(Change::kGracefulSecretUpdate);
  PutWeb(remote.Server("c2"), "10.2.0.5");
  PutSecret("t0");
  Start();
  KubeController* const before = registries->Find(ClusterId("c2"));
  remote.Server("c2").refusing = true;
  PutSecret("t1");
  Run(2min);
  EXPECT_EQ(registries->Find(ClusterId("c2")), before);
  EXPECT_THAT(Addresses("c2"), ElementsAre("10.2.0.5:8080"));
  remote.Server("c2").refusing = false;
  Run(5min);
  EXPECT_NE(registries->Find(ClusterId("c2")), before);
  EXPECT_THAT(Addresses("c2"), ElementsAre("10.2.0.5:8080"));
}

// 1.30.3 closes the old registry before the new one is put in its place, which therefore gets its handlers.
TEST_F(RegistriesTest, Issue60920AGatewayThatMovesAfterTheSwapIsHeard) {
  profile = *ParseProfile("istio-1.30");
  PutGateway(remote.Server("c2"), "198.51.100.2");
  PutSecret("t0");
  Start();
  PutSecret("t1");
  Run(10s);
  EXPECT_THAT(Gateways(), ElementsAre("198.51.100.2"));
  PutGateway(remote.Server("c2"), "198.51.100.3");
  Run();
  EXPECT_THAT(Gateways(), ElementsAre("198.51.100.3"));
}

// But what it found before it had them reached nobody.
TEST_F(RegistriesTest, Issue60920AGatewayThatTheNewRegistryBringsIsKnownOnlyAfterAReload) {
  profile = *ParseProfile("istio-1.30");
  PutGateway(remote.Server("c2"), "198.51.100.2");
  PutSecret("t0");
  Start();
  remote.Server("c2").BreakWatches(absl::UnavailableError("gone"));  // the old registry hears nothing of this
  PutGateway(remote.Server("c2"), "198.51.100.3");
  PutSecret("t1");
  Run(500ms);
  EXPECT_THAT(Gateways(), ElementsAre("198.51.100.2"));
  registries->networks().Reload();
  EXPECT_THAT(Gateways(), ElementsAre("198.51.100.3"));
}

TEST_F(RegistriesTest, Issue60612UntilItsTimeToSyncIsOverANewRegistryIsNotEvenStarted) {
  profile = *ParseProfile("istio-1.30.1");
  PutWeb(remote.Server("c2"), "10.2.0.5");
  PutSecret("t0");
  Start();
  KubeController* const before = registries->Find(ClusterId("c2"));
  PutSecret("t1");
  Run(29s);
  EXPECT_EQ(registries->Find(ClusterId("c2")), before);
  EXPECT_THAT(Addresses("c2"), ElementsAre("10.2.0.5:8080"));
}

TEST_F(RegistriesTest, Issue60612AfterThatTheClusterIsNoneOfTheMeshsThoughItsEndpointsAreFollowed) {
  profile = *ParseProfile("istio-1.30.1");
  PutWeb(remote.Server("c2"), "10.2.0.5");
  PutGateway(remote.Server("c2"), "198.51.100.2");
  PutSecret("t0");
  Start();
  PutSecret("t1");
  Run(32s);
  EXPECT_EQ(registries->aggregate().GetService(kWeb), nullptr);
  EXPECT_THAT(Addresses("c2"), IsEmpty());
  PutWeb(remote.Server("c2"), "10.2.0.6");
  Run();
  EXPECT_THAT(Addresses("c2"), ElementsAre("10.2.0.6:8080"));
  EXPECT_EQ(registries->aggregate().GetService(kWeb), nullptr);
  EXPECT_THAT(Gateways(), ElementsAre("198.51.100.2"));
  registries->networks().Reload();
  EXPECT_THAT(Gateways(), IsEmpty()) << "whatever reloads networks next finds none";
}

// A clean-up 30 s after each of them, whichever registry is there by then.
TEST_F(RegistriesTest, Issue60612EveryRotationTakesTheClusterOutAnew) {
  profile = *ParseProfile("istio-1.30.1");
  PutWeb(remote.Server("c2"), "10.2.0.5");
  PutSecret("t0");
  Start();
  PutSecret("t1");
  Run(10s);
  PutSecret("t2");
  Run(25s);
  PutWeb(remote.Server("c2"), "10.2.0.6");
  Run();
  EXPECT_THAT(Addresses("c2"), ElementsAre("10.2.0.6:8080"));
  Run(10s);
  EXPECT_THAT(Addresses("c2"), IsEmpty());
  EXPECT_EQ(registries->aggregate().GetService(kWeb), nullptr);
}

// 1.30.3: at its timeout the registry is put in the old one's place as it is; when it has synced at last, the old one
// is closed and takes out whatever registry the cluster has.
TEST_F(RegistriesTest, Issue61043ARegistryThatSyncsAfterItsTimeIsTakenOut) {
  profile = *ParseProfile("istio-1.30");
  PutWeb(remote.Server("c2"), "10.2.0.5");
  PutSecret("t0");
  Start();
  remote.Server("c2").refusing = true;
  PutSecret("t1");
  Run(29s);
  EXPECT_NE(registries->aggregate().GetService(kWeb), nullptr);
  Run(3s);
  EXPECT_EQ(registries->aggregate().GetService(kWeb), nullptr) << "the new one knows nothing yet";
  EXPECT_THAT(Addresses("c2"), ElementsAre("10.2.0.5:8080"));
  remote.Server("c2").refusing = false;
  Run(5min);
  EXPECT_EQ(registries->aggregate().GetService(kWeb), nullptr);
  EXPECT_THAT(Addresses("c2"), IsEmpty());
}

}  // namespace
}  // namespace wavetank::pilot
