// What is generated for proxies of both IP families, with ISTIO_DUAL_STACK (change dual-stack) and without.
#include <map>

#include "core/gen/cds/cds.h"
#include "core/gen/eds/load_assignment_builder.h"
#include "core/gen/lds/lds.h"
#include "core/gen/nds/name_table.h"
#include "core/profile/changes.h"
#include "core/xds/cache.h"
#include "envoy/config/cluster/v3/cluster.pb.h"
#include "envoy/config/endpoint/v3/endpoint.pb.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/gen/gen_world.h"

namespace wavetank::pilot {
namespace {

using ::envoy::config::cluster::v3::Cluster;
using ::envoy::config::listener::v3::Listener;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DualStack : public ::testing::Test {
 protected:
  void Release(const std::string& name) { world_.profile = *ParseProfile(name); }

  // Its clients' cluster has those addresses for it.
  std::shared_ptr<Service> Add(const std::string& name, Protocol protocol, int port, std::vector<std::string> vips) {
    auto service = world_.AddService(name, "shop", {"p", port, protocol});
    service->default_address = vips.front();
    service->cluster_vips = {{ClusterId("c1"), std::move(vips)}};
    return service;
  }

  IstioEndpoint PodOfBoth(const std::string& v4, const std::string& v6) const {
    EndpointProfile profile = GenWorld::Workload("c1");
    profile.more_addresses = {v6};
    return GenWorld::Endpoint(v4, std::move(profile));
  }

  // Known to the registry and to the index of endpoints.
  void AddPod(const ServiceRef& service, IstioEndpoint endpoint) {
    EndpointProfile profile = endpoint.p();
    profile.service_port_name = service->ports[0].name;
    endpoint.profile = std::make_shared<const EndpointProfile>(std::move(profile));
    world_.discovery.instances.push_back({service, service->ports[0], endpoint});
    world_.SetEndpoints("c1", service->attributes.name, {endpoint});
  }

  Proxy Connect(NodeType type = NodeType::kSidecarProxy) {
    push_ = world_.Push();
    Proxy proxy = GenWorld::Connect(*push_, "c1", type);
    proxy.ip_addresses = {"10.1.0.9", "fd00:1::9"};
    proxy.service_instances = instances_;
    return proxy;
  }

  // By name, its additional addresses.
  std::map<std::string, std::vector<std::string>> MoreAddresses(NodeType type = NodeType::kSidecarProxy) {
    const Proxy proxy = Connect(type);
    std::map<std::string, std::vector<std::string>> out;
    for (const Resource& r : MakeLdsGenerator()->Generate(proxy, {}, GenWorld::Request(push_)).resources) {
      Listener listener;
      EXPECT_TRUE(listener.ParseFromString(std::string(*r.bytes)));
      std::vector<std::string>& more = out[std::string(r.name)];
      for (const auto& each : listener.additional_addresses()) {
        EXPECT_EQ(each.address().socket_address().port_value(), listener.address().socket_address().port_value());
        more.push_back(each.address().socket_address().address());
      }
    }
    return out;
  }

  Cluster ClusterNamed(const std::string& name) {
    const Proxy proxy = Connect();
    Cluster out;
    for (const Resource& r : MakeCdsGenerator({&cache_})->Generate(proxy, {}, GenWorld::Request(push_)).resources) {
      if (r.name == name) out.ParseFromString(std::string(*r.bytes));
    }
    EXPECT_EQ(out.name(), name);
    return out;
  }

  GenWorld world_;
  std::vector<ServiceInstance> instances_;
  PushContextRef push_;
  XdsCache cache_;
};

// istiod: pilot/pkg/networking/core/listener.go, buildListenerFromEntry asks for no flag since 1.21.
TEST_F(DualStack, OutboundListenersStandAtBothWildcardsWithoutTheFlagSince121) {
  Add("web", Protocol::kHttp, 80, {"10.96.0.7", "fd00:96::7"});
  Release("istio-1.18");
  EXPECT_THAT(MoreAddresses().at("0.0.0.0_80"), IsEmpty());
  Release("istio-1.18+dual-stack");
  EXPECT_THAT(MoreAddresses().at("0.0.0.0_80"), ElementsAre("::"));
  Release("istio-1.30");
  EXPECT_THAT(MoreAddresses().at("0.0.0.0_80"), ElementsAre("::"));
}

TEST_F(DualStack, AServicesListenerStandsAtItsAddressesOfBothFamiliesWithTheFlag) {
  Add("db", Protocol::kTcp, 5432, {"10.96.0.8", "fd00:96::8"});
  for (const char* release : {"istio-1.18", "istio-1.30"}) {
    Release(release);
    EXPECT_THAT(MoreAddresses().at("10.96.0.8_5432"), IsEmpty()) << release;
    world_.profile.Set(Change::kDualStack);
    EXPECT_THAT(MoreAddresses().at("10.96.0.8_5432"), ElementsAre("fd00:96::8")) << release;
  }
}

TEST_F(DualStack, VirtualListenersAreOfBothFamiliesWithTheFlagAlone) {
  for (const char* release : {"istio-1.18", "istio-1.30"}) {
    Release(release);
    EXPECT_THAT(MoreAddresses().at("virtualOutbound"), IsEmpty()) << release;
    EXPECT_THAT(MoreAddresses().at("virtualInbound"), IsEmpty()) << release;
    world_.profile.Set(Change::kDualStack);
    EXPECT_THAT(MoreAddresses().at("virtualOutbound"), ElementsAre("::")) << release;
    EXPECT_THAT(MoreAddresses().at("virtualInbound"), ElementsAre("::")) << release;
  }
}

TEST_F(DualStack, AServiceEntryWithoutAddressesIsListenedForAtBothWildcardsSince120) {
  const auto entry = Add("entry", Protocol::kTcp, 9000, {"0.0.0.0"});
  entry->attributes.registry = Provider::kExternal;
  entry->cluster_vips.clear();
  Release("istio-1.18+dual-stack");
  EXPECT_THAT(MoreAddresses().at("0.0.0.0_9000"), IsEmpty());
  Release("istio-1.30");
  EXPECT_THAT(MoreAddresses().at("0.0.0.0_9000"), ElementsAre("::"));
}

TEST_F(DualStack, AHeadlessServicesListenerStandsAtAllAddressesOfItsPod) {
  const auto headless = Add("db", Protocol::kTcp, 5432, {"0.0.0.0"});
  headless->resolution = Resolution::kPassthrough;
  AddPod(headless, PodOfBoth("10.1.0.5", "fd00:1::5"));
  Release("istio-1.30+dual-stack");
  EXPECT_THAT(MoreAddresses().at("10.1.0.5_5432"), ElementsAre("fd00:1::5"));
}

// istiod 1.18.2: pilot/pkg/networking/core/v1alpha3/listener.go, listenerOpts lives as long as its egress listener.
TEST_F(DualStack, Before121AHeadlessPodsListenerTakesTheAddressOfTheServiceBeforeIt) {
  Add("a", Protocol::kTcp, 5432, {"10.96.0.8", "fd00:96::8"});
  const auto headless = Add("b", Protocol::kTcp, 5433, {"0.0.0.0"});
  headless->resolution = Resolution::kPassthrough;
  AddPod(headless, GenWorld::Endpoint("10.1.0.5", GenWorld::Workload("c1")));
  Release("istio-1.18+dual-stack");
  EXPECT_THAT(MoreAddresses().at("10.1.0.5_5433"), ElementsAre("fd00:96::8"));
  Release("istio-1.24+dual-stack");
  EXPECT_THAT(MoreAddresses().at("10.1.0.5_5433"), IsEmpty());
}

TEST_F(DualStack, InboundClustersDialFromBothFamiliesWithTheFlag) {
  const auto service = Add("web", Protocol::kHttp, 80, {"10.96.0.7"});
  instances_.push_back({service, service->ports[0], GenWorld::Endpoint("10.1.0.9", GenWorld::Workload("c1"))});
  Release("istio-1.30");
  EXPECT_EQ(ClusterNamed("inbound|8080||").upstream_bind_config().extra_source_addresses_size(), 0);
  world_.profile.Set(Change::kDualStack);
  const Cluster inbound = ClusterNamed("inbound|8080||");
  EXPECT_EQ(inbound.upstream_bind_config().source_address().address(), "127.0.0.6");
  ASSERT_EQ(inbound.upstream_bind_config().extra_source_addresses_size(), 1);
  EXPECT_EQ(inbound.upstream_bind_config().extra_source_addresses(0).address().address(), "::6");
}

TEST_F(DualStack, AnEndpointHasTheOtherAddressesOfItsPodInItsAssignment) {
  world_.AddService("web");  // whose port has the name that Workload() says
  world_.SetEndpoints("c1", "web", {PodOfBoth("10.1.0.5", "fd00:1::5")});
  Release("istio-1.30+dual-stack");
  const Proxy proxy = Connect();
  const std::string cluster = "outbound|80||" + GenWorld::Host("web");
  LoadAssignment built;
  LoadAssignmentBuilder(cluster, proxy, *push_).Build(built, nullptr);
  ::envoy::config::endpoint::v3::ClusterLoadAssignment read;
  ASSERT_TRUE(read.ParseFromString(built.Encode(cluster)));
  const auto& endpoint = read.endpoints(0).lb_endpoints(0).endpoint();
  EXPECT_EQ(endpoint.address().socket_address().address(), "10.1.0.5");
  ASSERT_EQ(endpoint.additional_addresses_size(), 1);
  EXPECT_EQ(endpoint.additional_addresses(0).address().socket_address().address(), "fd00:1::5");
  EXPECT_EQ(endpoint.additional_addresses(0).address().socket_address().port_value(), 8080u);
}

TEST_F(DualStack, NameTablesKnowTheOtherFamilyWithTheFlagSince123) {
  Add("web", Protocol::kHttp, 80, {"10.96.0.7", "fd00:96::7"});
  const auto ips = [&](const char* release) {
    Release(release);
    const Proxy proxy = Connect();
    return BuildNameTable(proxy, *push_).hosts.at(GenWorld::Host("web")).ips;
  };
  EXPECT_THAT(ips("istio-1.18+dual-stack"), ElementsAre("10.96.0.7"));
  EXPECT_THAT(ips("istio-1.30"), ElementsAre("10.96.0.7"));
  EXPECT_THAT(ips("istio-1.30+dual-stack"), ElementsAre("10.96.0.7", "fd00:96::7"));
}

TEST_F(DualStack, AHeadlessServicesNamesLeadToAllAddressesOfItsPods) {
  const auto headless = Add("db", Protocol::kTcp, 5432, {"0.0.0.0"});
  headless->resolution = Resolution::kPassthrough;
  AddPod(headless, PodOfBoth("10.1.0.5", "fd00:1::5"));
  Release("istio-1.30+dual-stack");
  const Proxy proxy = Connect();
  EXPECT_THAT(BuildNameTable(proxy, *push_).hosts.at(GenWorld::Host("db")).ips, ElementsAre("10.1.0.5", "fd00:1::5"));
}

}  // namespace
}  // namespace wavetank::pilot
