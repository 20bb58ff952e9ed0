#include "core/gen/nds/name_table.h"

#include "core/profile/changes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/gen/gen_world.h"

namespace wavetank::pilot {
namespace {

using ::testing::ElementsAre;

class NdsNameTable : public ::testing::Test {
 protected:
  std::shared_ptr<Service> Headless(const std::string& name) {
    auto service = world_.AddService(name);
    service->resolution = Resolution::kPassthrough;
    service->default_address = "0.0.0.0";
    return service;
  }

  void AddPod(const std::shared_ptr<Service>& service, const std::string& cluster, const std::string& address,
              const std::string& host = "", const std::string& network = "network-c1") {
    EndpointProfile profile = GenWorld::Workload(cluster);
    profile.network = NetworkId(network);
    profile.host_name = host;
    if (!host.empty()) profile.sub_domain = service->attributes.name;
    world_.discovery.instances.push_back({service, service->ports[0], GenWorld::Endpoint(address, profile)});
  }

  NameTable Build() {
    const PushContextRef push = world_.Push();
    return BuildNameTable(world_.Connect(*push, "c1"), *push);
  }

  GenWorld world_;
};

TEST_F(NdsNameTable, KubernetesServiceHasItsAddressAndShortName) {
  world_.AddService("web");
  const auto entry = Build().hosts.at("web.shop.svc.cluster.local");
  EXPECT_THAT(entry.ips, ElementsAre("240.0.0.1"));
  EXPECT_EQ(entry.registry, "Kubernetes");
  EXPECT_EQ(entry.short_name, "web");
  EXPECT_EQ(entry.ns, "shop");
}

TEST_F(NdsNameTable, AddressIsThatOfTheProxysCluster) {
  world_.AddService("web")->cluster_vips = {{ClusterId("c1"), {"10.96.0.7"}}, {ClusterId("c2"), {"10.97.0.7"}}};
  EXPECT_THAT(Build().hosts.at("web.shop.svc.cluster.local").ips, ElementsAre("10.96.0.7"));
}

TEST_F(NdsNameTable, AddressesOfAFamilyThatTheProxyLacksAreLeftOutByProfile) {
  world_.AddService("web")->cluster_vips = {{ClusterId("c1"), {"fd00::7", "10.96.0.7"}}};
  const auto far = world_.AddService("far");
  far->cluster_vips = {{ClusterId("c2"), {"fd00::8"}}};
  far->default_address = "fd00::8";
  EXPECT_THAT(Build().hosts.at("web.shop.svc.cluster.local").ips, ElementsAre("fd00::7"));
  EXPECT_THAT(Build().hosts.at("far.shop.svc.cluster.local").ips, ElementsAre("fd00::8"));
  world_.profile.Set(Change::kAllAddressesTold);
  EXPECT_THAT(Build().hosts.at("far.shop.svc.cluster.local").ips, ElementsAre("fd00::8"));
  world_.profile.Set(Change::kAddressesByFamily);
  EXPECT_THAT(Build().hosts.at("web.shop.svc.cluster.local").ips, ElementsAre("10.96.0.7"));
  EXPECT_EQ(Build().hosts.count("far.shop.svc.cluster.local"), 0u);
}

TEST_F(NdsNameTable, AutomaticAddressesAreForAgentsThatAnswerDnsAndAskForThemUnlessAControllerGivesThem) {
  auto entry = world_.AddService("entry");
  entry->attributes.registry = Provider::kExternal;
  entry->default_address = "0.0.0.0";
  entry->auto_allocated_ipv4 = "240.240.0.1";
  const auto known = [&] {
    const PushContextRef push = world_.Push();
    Proxy proxy = world_.Connect(*push, "c1");
    proxy.metadata.dns_capture = true;
    return BuildNameTable(proxy, *push).hosts.count("entry.shop.svc.cluster.local");
  };
  EXPECT_EQ(known(), 0u);
  world_.profile.Set(Change::kAddressesByController);
  EXPECT_EQ(known(), 1u);
}

TEST_F(NdsNameTable, AServiceOfTheClustersetHasNoShortName) {
  world_.AddService("web")->hostname = "web.shop.svc.clusterset.local";
  EXPECT_EQ(Build().hosts.at("web.shop.svc.clusterset.local").short_name, "");
}

TEST_F(NdsNameTable, PodsThatAreNotReadyHaveNoNameByProfile) {
  auto db = Headless("db");
  AddPod(db, "c1", "10.0.0.1");
  AddPod(db, "c1", "10.0.0.2");
  world_.discovery.instances.back().endpoint.health = HealthStatus::kUnhealthy;
  EXPECT_THAT(Build().hosts.at("db.shop.svc.cluster.local").ips, ElementsAre("10.0.0.1", "10.0.0.2"));
  world_.profile.Set(Change::kNamesOfReadyPods);
  EXPECT_THAT(Build().hosts.at("db.shop.svc.cluster.local").ips, ElementsAre("10.0.0.1"));
}

TEST_F(NdsNameTable, HeadlessServiceResolvesToInstancesOfAllClustersOfTheNetworkOnly) {
  auto db = Headless("db");
  AddPod(db, "c1", "10.0.0.1");
  AddPod(db, "c2", "10.0.0.2");
  AddPod(db, "c3", "10.0.0.3", "", "network-far");
  EXPECT_THAT(Build().hosts.at("db.shop.svc.cluster.local").ips, ElementsAre("10.0.0.1", "10.0.0.2"));
}

TEST_F(NdsNameTable, PodOfTheProxysClusterWinsItsName) {
  auto db = Headless("db");
  AddPod(db, "c1", "10.0.0.1", "db-0");
  AddPod(db, "c2", "10.0.0.2", "db-0");
  const auto entry = Build().hosts.at("db-0.db.shop.svc.cluster.local");
  EXPECT_THAT(entry.ips, ElementsAre("10.0.0.1"));
  EXPECT_EQ(entry.short_name, "db-0.db");
}

TEST_F(NdsNameTable, ServiceWithoutAddressOrInstancesIsLeftOut) {
  Headless("db");
  EXPECT_TRUE(Build().hosts.empty());
}

TEST_F(NdsNameTable, PrefixesAreNoAnswers) {
  world_.AddService("range")->default_address = "10.0.0.0/8";
  EXPECT_TRUE(Build().hosts.empty());
}

TEST_F(NdsNameTable, DecodesWhatItEncodes) {
  world_.AddService("web");
  auto db = Headless("db");
  AddPod(db, "c1", "10.0.0.1", "db-0");
  const NameTable table = Build();
  const auto decoded = DecodeNameTable(EncodeNameTable(table));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->hosts, table.hosts);
  EXPECT_FALSE(DecodeNameTable("\x0a\xff").ok());
}

TEST_F(NdsNameTable, PartialPushesCountOnlyWhenHeadlessEndpointsChange) {
  const PushContextRef push = world_.Push();
  const Proxy proxy = world_.Connect(*push, "c1");
  PushRequest request = world_.Request(push);
  request.full = false;
  request.reasons = Reason(TriggerReason::kEndpoint);
  EXPECT_FALSE(MakeNdsGenerator()->Generate(proxy, {}, request).send);
  request.reasons |= Reason(TriggerReason::kHeadlessEndpoint);
  EXPECT_TRUE(MakeNdsGenerator()->Generate(proxy, {}, request).send);
  EXPECT_FALSE(
      MakeNdsGenerator()->Generate(world_.Connect(*push, "c1", NodeType::kRouter), {}, world_.Request(push)).send);
}

TEST_F(NdsNameTable, NamesAreThoseOfEgressListenersByProfile) {
  for (const char* address : {"192.0.2.0/24", "198.51.100.7"}) {
    auto service = world_.AddService("far");
    service->hostname = "far.example";
    service->attributes.registry = Provider::kExternal;
    service->default_address = address;
  }
  auto sidecar = std::make_shared<config::TypedConfig<config::Sidecar>>();
  sidecar->meta.kind = config::Kind::kSidecar;
  sidecar->meta.name = "default";
  sidecar->meta.ns = "shop";
  world_.configs.Put(config::SidecarRef(sidecar));
  EXPECT_FALSE(Build().hosts.contains("far.example")) << "a scope has the first service of a host, here a range";
  world_.profile.Set(Change::kNamesByListener);
  EXPECT_THAT(Build().hosts.at("far.example").ips, ElementsAre("198.51.100.7"));
}

}  // namespace
}  // namespace wavetank::pilot
