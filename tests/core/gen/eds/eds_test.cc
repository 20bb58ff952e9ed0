#include "core/gen/eds/eds.h"

#include <algorithm>

#include "core/gen/eds/load_assignment_builder.h"
#include "core/profile/changes.h"
#include "core/xds/cache.h"
#include "envoy/config/endpoint/v3/endpoint.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/gen/gen_world.h"

namespace wavetank::pilot {
namespace {

using ::envoy::config::endpoint::v3::ClusterLoadAssignment;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const std::string kWebCluster = "outbound|80||" + GenWorld::Host("web");
const std::string kWebClusterSni = "outbound_.80_._." + GenWorld::Host("web");

ClusterLoadAssignment Parse(const Resource& resource) {
  ClusterLoadAssignment out;
  EXPECT_TRUE(out.ParseFromString(std::string(*resource.bytes)));
  return out;
}

// "address*weight" of every endpoint, localities separated by "|"; a locality without weight ends with "!".
std::string Summary(const ClusterLoadAssignment& cla) {
  std::string out;
  for (const auto& group : cla.endpoints()) {
    if (!out.empty()) out += " | ";
    std::string line;
    for (const auto& e : group.lb_endpoints()) {
      if (!line.empty()) line += " ";
      line +=
          e.endpoint().address().socket_address().address() + "*" + std::to_string(e.load_balancing_weight().value());
    }
    out += line;
    if (!group.has_load_balancing_weight()) out += "!";
  }
  return out;
}

class EdsTest : public testing::Test {
 protected:
  ClusterLoadAssignment Get(const std::string& cluster_name, const std::string& proxy_cluster = "c1",
                            NodeType type = NodeType::kSidecarProxy, Labels labels = {}) {
    const PushContextRef push = world_.Push();
    const Proxy proxy = GenWorld::Connect(*push, proxy_cluster, type, std::move(labels));
    WatchedResource watched;
    watched.type = XdsType::kEds;
    watched.resource_names = std::vector<std::string>{cluster_name};
    const auto generator = MakeEdsGenerator({});
    const GeneratedResources out = generator->Generate(proxy, watched, GenWorld::Request(push));
    EXPECT_EQ(out.resources.size(), 1u);
    return out.resources.empty() ? ClusterLoadAssignment() : Parse(out.resources[0]);
  }

  void WebInTwoClusters() {
    world_.AddService("web");
    world_.SetEndpoints("c1", "web", {GenWorld::Endpoint("10.1.0.1", GenWorld::Workload("c1"))});
    world_.SetEndpoints("c2", "web",
                        {GenWorld::Endpoint("10.2.0.1", GenWorld::Workload("c2")),
                         GenWorld::Endpoint("10.2.0.2", GenWorld::Workload("c2"))});
  }

  GenWorld world_;
};

TEST_F(EdsTest, OnOneNetworkAllEndpointsAreReachedDirectlyShardByShard) {
  WebInTwoClusters();
  EXPECT_EQ(Summary(Get(kWebCluster)), "10.1.0.1*1 10.2.0.1*1 10.2.0.2*1");
}

TEST_F(EdsTest, EndpointsOfAnotherNetworkHideBehindItsGateways) {
  WebInTwoClusters();
  world_.AddGateway("c1", "1.1.1.1");
  world_.AddGateway("c2", "2.2.2.2");
  EXPECT_EQ(Summary(Get(kWebCluster, "c1")), "10.1.0.1*1 2.2.2.2*2");
  EXPECT_EQ(Summary(Get(kWebCluster, "c2")), "10.2.0.1*1 10.2.0.2*1 1.1.1.1*1");
}

TEST_F(EdsTest, WeightsGrowByTheLeastCommonMultipleSoThatGatewaysShareThem) {
  WebInTwoClusters();
  world_.AddGateway("c2", "2.2.2.2");
  world_.AddGateway("c2", "2.2.2.3");
  EXPECT_EQ(Summary(Get(kWebCluster)), "10.1.0.1*2 2.2.2.2*2 2.2.2.3*2");
}

TEST_F(EdsTest, GatewayEndpointsCarryTheProxysClusterAndAskForMtls) {
  WebInTwoClusters();
  world_.AddGateway("c2", "2.2.2.2");
  const auto cla = Get(kWebCluster);
  const auto& gateway = cla.endpoints(0).lb_endpoints(1);
  EXPECT_EQ(gateway.endpoint().address().socket_address().port_value(), 15443u);
  EXPECT_EQ(gateway.health_status(), ::envoy::config::core::v3::UNKNOWN);
  const auto& metadata = gateway.metadata().filter_metadata();
  EXPECT_EQ(metadata.at("istio").fields().at("workload").string_value(), ";;;;c1");
  EXPECT_EQ(metadata.at("envoy.transport_socket_match").fields().at("tlsMode").string_value(), "istio");
}

TEST_F(EdsTest, NetworkWithoutGatewayIsReachedDirectly) {
  WebInTwoClusters();
  world_.AddGateway("c3", "3.3.3.3");
  EXPECT_EQ(Summary(Get(kWebCluster)), "10.1.0.1*1 10.2.0.1*1 10.2.0.2*1");
}

TEST_F(EdsTest, ProxyOrEndpointWithoutNetworkReachesEverything) {
  world_.AddService("web");
  EndpointProfile nowhere = GenWorld::Workload("c2");
  nowhere.network = NetworkId();
  world_.SetEndpoints("c2", "web", {GenWorld::Endpoint("10.2.0.1", nowhere)});
  world_.AddGateway("c2", "2.2.2.2");
  EXPECT_EQ(Summary(Get(kWebCluster)), "10.2.0.1*1");
}

TEST_F(EdsTest, GatewaysOfTheEndpointsOwnClusterArePreferred) {
  world_.AddService("web");
  world_.SetEndpoints("c2", "web", {GenWorld::Endpoint("10.2.0.1", GenWorld::Workload("c2"))});
  world_.AddGateway("c2", "2.2.2.2");
  world_.gateways.push_back({NetworkId("network-c2"), ClusterId("c3"), "3.3.3.3", 15443});
  EXPECT_EQ(Summary(Get(kWebCluster)), "2.2.2.2*2");
}

TEST_F(EdsTest, EndpointsWithoutMtlsDoNotPassGatewaysAndLeaveAnEmptyLocality) {
  world_.AddService("web");
  EndpointProfile plain = GenWorld::Workload("c2", "eu");
  plain.tls_mode = kDisabledTlsMode;
  world_.SetEndpoints("c1", "web", {GenWorld::Endpoint("10.1.0.1", GenWorld::Workload("c1", "us"))});
  world_.SetEndpoints("c2", "web", {GenWorld::Endpoint("10.2.0.1", plain)});
  world_.AddGateway("c2", "2.2.2.2");
  EXPECT_EQ(Summary(Get(kWebCluster)), "! | 10.1.0.1*1");
}

TEST_F(EdsTest, EndpointCountsAsPlainTextIfAnotherOfItsAddressIs) {
  world_.AddService("web");
  EndpointProfile plain = GenWorld::Workload("c2");
  plain.tls_mode = kDisabledTlsMode;
  world_.SetEndpoints("c2", "web",
                      {GenWorld::Endpoint("10.2.0.1", GenWorld::Workload("c2")), GenWorld::Endpoint("10.2.0.1", plain),
                       GenWorld::Endpoint("10.2.0.2", GenWorld::Workload("c2"))});
  world_.AddGateway("c2", "2.2.2.2");
  EXPECT_EQ(Summary(Get(kWebCluster)), "2.2.2.2*1");
}

TEST_F(EdsTest, RuleWithTlsSimpleDropsCrossNetworkEndpointsOnlyByProfile) {
  WebInTwoClusters();
  world_.AddGateway("c2", "2.2.2.2");
  config::DestinationRule rule;
  rule.host = GenWorld::Host("web");
  rule.traffic_policy.emplace().tls.emplace().mode = config::ClientTlsSettings::Mode::kSimple;
  world_.AddRule("web", rule);
  EXPECT_EQ(Summary(Get(kWebCluster)), "10.1.0.1*1 2.2.2.2*2");
  world_.profile.Set(Change::kTlsSimpleDropsCrossNetwork);
  EXPECT_EQ(Summary(Get(kWebCluster)), "10.1.0.1*1");
}

TEST_F(EdsTest, GatewayEndpointsCarryTheirOwnClusterByProfile) {
  WebInTwoClusters();
  world_.AddGateway("c2", "2.2.2.2");
  world_.profile.Set(Change::kGatewaysKeepTheirCluster);
  const auto cla = Get(kWebCluster);
  const auto& gateway = cla.endpoints(0).lb_endpoints(1);
  EXPECT_EQ(gateway.metadata().filter_metadata().at("istio").fields().at("workload").string_value(), ";;;;c2");
}

TEST_F(EdsTest, IstioMutualOfTheClustersPolicyAloneAsksForMtlsByProfile) {
  WebInTwoClusters();
  world_.AddGateway("c2", "2.2.2.2");
  config::DestinationRule rule;
  rule.host = GenWorld::Host("web");
  rule.traffic_policy.emplace().tls.emplace().mode = config::ClientTlsSettings::Mode::kMutual;
  world_.AddRule("web", rule);
  EXPECT_EQ(Summary(Get(kWebCluster)), "10.1.0.1*1 2.2.2.2*2");
  world_.profile.Set(Change::kMtlsByClusterPolicy);
  EXPECT_EQ(Summary(Get(kWebCluster)), "10.1.0.1*1");
}

TEST_F(EdsTest, EndpointsThatAreNotReadyOrTerminateAreNotSent) {
  world_.AddService("web");
  std::vector<IstioEndpoint> endpoints;
  for (const HealthStatus health : {HealthStatus::kHealthy, HealthStatus::kUnhealthy, HealthStatus::kTerminating}) {
    endpoints.push_back(GenWorld::Endpoint("10.1.0." + std::to_string(endpoints.size() + 1), GenWorld::Workload("c1")));
    endpoints.back().health = health;
  }
  world_.SetEndpoints("c1", "web", endpoints);
  EXPECT_EQ(Summary(Get(kWebCluster)), "10.1.0.1*1");
}

TEST_F(EdsTest, AServiceThatPrefersItsZoneOrdersEndpointsByLabelsAndSendsThoseNotReady) {
  const auto service = world_.AddService("web");
  const auto at = [](const std::string& address, const std::string& zone, HealthStatus health) {
    EndpointProfile profile = GenWorld::Workload("c1", "r/" + zone);
    profile.labels["topology.kubernetes.io/region"] = "r";
    profile.labels["topology.kubernetes.io/zone"] = zone;
    profile.labels["topology.istio.io/network"] = "network-c1";
    IstioEndpoint out = GenWorld::Endpoint(address, profile);
    out.health = health;
    return out;
  };
  world_.SetEndpoints("c1", "web",
                      {at("10.1.0.1", "far", HealthStatus::kHealthy), at("10.1.0.2", "near", HealthStatus::kHealthy),
                       at("10.1.0.3", "near", HealthStatus::kUnhealthy)});
  const Labels labels = {{"topology.kubernetes.io/region", "r"},
                         {"topology.kubernetes.io/zone", "near"},
                         {"topology.istio.io/network", "network-c1"}};
  const auto priorities = [&] {
    std::map<std::string, uint32_t> out;
    const ClusterLoadAssignment assignment = Get(kWebCluster, "c1", NodeType::kSidecarProxy, labels);
    for (const auto& group : assignment.endpoints()) {
      for (const auto& e : group.lb_endpoints()) {
        out[e.endpoint().address().socket_address().address()] = group.priority();
      }
    }
    return out;
  };
  EXPECT_EQ(priorities(), (std::map<std::string, uint32_t>{{"10.1.0.1", 0}, {"10.1.0.2", 0}}));
  service->attributes.traffic_distribution = TrafficDistribution::kPreferSameZone;
  EXPECT_EQ(priorities(), (std::map<std::string, uint32_t>{{"10.1.0.1", 1}, {"10.1.0.2", 0}, {"10.1.0.3", 0}}));
}

TEST_F(EdsTest, RuleWithTlsDisableDropsCrossNetworkEndpointsAndTheTlsMode) {
  WebInTwoClusters();
  world_.AddGateway("c2", "2.2.2.2");
  config::DestinationRule rule;
  rule.host = GenWorld::Host("web");
  rule.traffic_policy.emplace().tls.emplace().mode = config::ClientTlsSettings::Mode::kDisable;
  world_.AddRule("web", rule);
  const auto cla = Get(kWebCluster);
  EXPECT_EQ(Summary(cla), "10.1.0.1*1");
  EXPECT_EQ(cla.endpoints(0).lb_endpoints(0).metadata().filter_metadata().count("envoy.transport_socket_match"), 0u);
}

TEST_F(EdsTest, PeerAuthenticationThatDisablesMtlsTakesTheTlsMode) {
  WebInTwoClusters();
  config::PeerAuthentication policy;
  policy.mtls = config::PeerAuthentication::Mode::kDisable;
  world_.AddPeerAuthentication(policy);
  const auto cla = Get(kWebCluster);
  EXPECT_EQ(cla.endpoints(0).lb_endpoints(0).metadata().filter_metadata().count("envoy.transport_socket_match"), 0u);
}

TEST_F(EdsTest, SniClustersHoldMtlsEndpointsOnly) {
  world_.AddService("web");
  EndpointProfile plain = GenWorld::Workload("c1");
  plain.tls_mode = kDisabledTlsMode;
  world_.SetEndpoints(
      "c1", "web", {GenWorld::Endpoint("10.1.0.1", GenWorld::Workload("c1")), GenWorld::Endpoint("10.1.0.2", plain)});
  EXPECT_EQ(Summary(Get(kWebClusterSni, "c1", NodeType::kRouter)), "10.1.0.1*1");
  EXPECT_EQ(Summary(Get(kWebCluster, "c1", NodeType::kRouter)), "10.1.0.1*1 10.1.0.2*1");
}

TEST_F(EdsTest, EveryLocalityNamesTheGatewayUnlessTheProfileSaysOnce) {
  world_.AddService("web");
  world_.SetEndpoints("c2", "web",
                      {GenWorld::Endpoint("10.2.0.1", GenWorld::Workload("c2", "r/z1")),
                       GenWorld::Endpoint("10.2.0.2", GenWorld::Workload("c2", "r/z2")),
                       GenWorld::Endpoint("10.2.0.3", GenWorld::Workload("c2", "r/z2"))});
  world_.AddGateway("c2", "2.2.2.2");
  EXPECT_EQ(Summary(Get(kWebCluster)), "2.2.2.2*1 | 2.2.2.2*2");
  world_.profile.Set(Change::kGatewayOncePerCla);
  EXPECT_EQ(Summary(Get(kWebCluster)), "2.2.2.2*3 | !");
}

TEST_F(EdsTest, WhatTheNetworkViewHidesLeavesAnEmptyLocalityUnlessTheProfileFiltersFirst) {
  world_.AddService("web");
  world_.SetEndpoints("c2", "web", {GenWorld::Endpoint("10.2.0.1", GenWorld::Workload("c2", "r/z2"))});
  world_.AddGateway("c2", "2.2.2.2");
  const auto seen_from_own_network = [&] {
    const PushContextRef push = world_.Push();
    Proxy proxy = GenWorld::Connect(*push, "c1", NodeType::kRouter);
    proxy.metadata.requested_network_view = {"network-c1"};
    LoadAssignment out;
    LoadAssignmentBuilder(kWebCluster, proxy, *push).Build(out, nullptr);
    return out.localities.size();
  };
  EXPECT_EQ(seen_from_own_network(), 1u);
  world_.profile.Set(Change::kHiddenEndpointsUngrouped);
  EXPECT_EQ(seen_from_own_network(), 0u);
}

TEST_F(EdsTest, GatewaysOfAFamilyThatTheProxyLacksAreLeftOutByProfile) {
  world_.AddService("web");
  world_.SetEndpoints("c2", "web", {GenWorld::Endpoint("10.2.0.1", GenWorld::Workload("c2"))});
  world_.AddGateway("c2", "2.2.2.2");
  world_.AddGateway("c2", "fd00::2");
  EXPECT_EQ(Summary(Get(kWebCluster)), "2.2.2.2*1 fd00::2*1");
  world_.profile.Set(Change::kGatewaysByFamily);
  EXPECT_EQ(Summary(Get(kWebCluster)), "2.2.2.2*2");
  world_.gateways.erase(world_.gateways.begin());
  EXPECT_EQ(Summary(Get(kWebCluster)), "!") << "not reached directly for want of one of its family";
}

TEST_F(EdsTest, SubsetTakesEndpointsWithItsLabels) {
  world_.AddService("web");
  EndpointProfile v2 = GenWorld::Workload("c1");
  v2.labels["version"] = "v2";
  world_.SetEndpoints("c1", "web",
                      {GenWorld::Endpoint("10.1.0.1", GenWorld::Workload("c1")), GenWorld::Endpoint("10.1.0.2", v2)});
  config::DestinationRule rule;
  rule.host = GenWorld::Host("web");
  config::Subset subset;
  subset.name = "v2";
  subset.labels = {{"version", "v2"}};
  rule.subsets.push_back(subset);
  world_.AddRule("web", rule);
  EXPECT_EQ(Summary(Get("outbound|80|v2|" + GenWorld::Host("web"))), "10.1.0.2*1");
}

TEST_F(EdsTest, EndpointsOfOtherPortNamesAreNotOfTheCluster) {
  world_.AddService("web");
  EndpointProfile other = GenWorld::Workload("c1");
  other.service_port_name = "http-other";
  world_.SetEndpoints("c1", "web", {GenWorld::Endpoint("10.1.0.1", other)});
  EXPECT_EQ(Summary(Get(kWebCluster)), "");
}

TEST_F(EdsTest, NodeLocalServiceHasEndpointsOfTheProxysNodeOnly) {
  auto service = world_.AddService("web");
  service->attributes.node_local = true;
  EndpointProfile here = GenWorld::Workload("c1"), there = GenWorld::Workload("c1");
  here.node_name = "n1";
  there.node_name = "n2";
  world_.SetEndpoints("c1", "web", {GenWorld::Endpoint("10.1.0.1", here), GenWorld::Endpoint("10.1.0.2", there)});
  EXPECT_EQ(Summary(Get(kWebCluster, "c1", NodeType::kSidecarProxy, {{"kubernetes.io/hostname", "n1"}})), "10.1.0.1*1");
}

TEST_F(EdsTest, DrainingEndpointsAreForPersistentSessionsOnly) {
  auto service = world_.AddService("web");
  EndpointProfile draining = GenWorld::Workload("c1");
  draining.labels["istio.io/draining"] = "yes";
  world_.SetEndpoints("c1", "web", {GenWorld::Endpoint("10.1.0.1", draining)});
  EXPECT_EQ(Summary(Get(kWebCluster)), "");
  service->attributes.labels["istio.io/persistent-session"] = "cookie";
  const auto cla = Get(kWebCluster);
  EXPECT_EQ(Summary(cla), "10.1.0.1*1");
  EXPECT_EQ(cla.endpoints(0).lb_endpoints(0).health_status(), ::envoy::config::core::v3::DRAINING);
}

TEST_F(EdsTest, UnknownServiceAndDnsServiceGetAnEmptyAssignment) {
  WebInTwoClusters();
  EXPECT_EQ(Summary(Get("outbound|80||nobody.example")), "");
  std::const_pointer_cast<Service>(world_.discovery.services[0])->resolution = Resolution::kDnsLb;
  const auto cla = Get(kWebCluster);
  EXPECT_EQ(cla.cluster_name(), kWebCluster);
  EXPECT_EQ(cla.endpoints_size(), 0);
}

class EdsPushTest : public EdsTest {
 protected:
  EdsPushTest() {
    WebInTwoClusters();
    world_.AddService("api");
    world_.SetEndpoints("c1", "api", {GenWorld::Endpoint("10.1.0.7", GenWorld::Workload("c1"))});
    push_ = world_.Push();
    proxy_ = GenWorld::Connect(*push_, "c1");
    watched_.resource_names = std::vector<std::string>{kApi, kWebCluster};
  }
  std::vector<std::string> Names(const GeneratedResources& out) {
    std::vector<std::string> names;
    for (const Resource& r : out.resources) names.emplace_back(r.name);
    return names;
  }

  const std::string kApi = "outbound|80||" + GenWorld::Host("api");
  PushContextRef push_;
  Proxy proxy_;
  WatchedResource watched_;
  XdsCache cache_;
  std::unique_ptr<Generator> generator_ = MakeEdsGenerator({&cache_});
};

// Whole answers are remembered; who sees something else, or later, must not get them.
TEST_F(EdsPushTest, ARememberedAnswerGoesOnlyToWhoSeesTheSame) {
  const PushRequest request = GenWorld::Request(push_);
  generator_->Generate(proxy_, watched_, request);                     // fills the cache
  const auto first = generator_->Generate(proxy_, watched_, request);  // remembered
  const uint64_t hits = cache_.hits();
  const auto again = generator_->Generate(proxy_, watched_, request);
  EXPECT_EQ(again.cached, 2);
  EXPECT_EQ(cache_.hits(), hits + 2);
  EXPECT_EQ(&again.resources.list(), &first.resources.list()) << "not shared";

  Proxy elsewhere = proxy_;
  elsewhere.locality = {"far", "away", ""};
  EXPECT_EQ(generator_->Generate(elsewhere, watched_, request).cached, 0);
  Proxy router = proxy_;
  router.type = NodeType::kRouter;
  EXPECT_EQ(generator_->Generate(router, watched_, request).cached, 0);
  WatchedResource fewer = watched_;
  fewer.resource_names = std::vector<std::string>{kWebCluster};
  EXPECT_THAT(Names(generator_->Generate(proxy_, fewer, request)), ElementsAre(kWebCluster));

  generator_->Generate(proxy_, watched_, request);
  world_.SetEndpoints("c1", "api", {GenWorld::Endpoint("10.1.0.99", GenWorld::Workload("c1"))});
  cache_.Clear({{ConfigKind::kServiceEntry, GenWorld::Host("api"), "shop"}}, Time{});
  const auto changed = generator_->Generate(proxy_, watched_, request);
  EXPECT_EQ(changed.cached, 1);
  EXPECT_EQ(Summary(Parse(changed.resources[0])), "10.1.0.99*1");
}

TEST_F(EdsPushTest, IncrementalPushCoversTheNamedServicesOnly) {
  PushRequest request = GenWorld::Request(push_);
  request.full = false;
  request.configs_updated = {{ConfigKind::kServiceEntry, GenWorld::Host("web"), "shop"}};
  const auto out = generator_->Generate(proxy_, watched_, request);
  EXPECT_TRUE(out.incremental);
  EXPECT_THAT(Names(out), ElementsAre(kWebCluster));
}

TEST_F(EdsPushTest, FewServicesAreFoundAmongManyClustersOfAllPortsAndSubsets) {
  std::vector<std::string> names, expected;
  for (const char* form :
       {"outbound|80||", "outbound|80|v1|", "outbound|8080||", "outbound_.80_._.", "outbound_.80_.v1_."}) {
    for (const char* host : {"api", "web"}) {
      expected.push_back(form + GenWorld::Host(host));
      names.push_back(expected.back());
    }
    for (int i = 0; i < 40; ++i) names.push_back(form + GenWorld::Host("svc-" + std::to_string(i)));
  }
  names.push_back("BlackHoleCluster");
  std::sort(names.begin(), names.end());
  watched_.resource_names = std::move(names);
  std::sort(expected.begin(), expected.end());
  PushRequest request = GenWorld::Request(push_);
  request.full = false;
  request.configs_updated = {{ConfigKind::kServiceEntry, GenWorld::Host("api"), "shop"},
                             {ConfigKind::kServiceEntry, GenWorld::Host("web"), "shop"},
                             {ConfigKind::kServiceEntry, GenWorld::Host("nobody"), "shop"}};
  EXPECT_EQ(Names(generator_->Generate(proxy_, watched_, request)), expected);
  for (int i = 0; i < 40; ++i) {  // too many to search for one by one
    request.configs_updated.insert({ConfigKind::kServiceEntry, "x" + std::to_string(i), "shop"});
  }
  EXPECT_EQ(Names(generator_->Generate(proxy_, watched_, request)), expected);
}

TEST_F(EdsPushTest, FullPushForServicesAloneCoversThemOnlyOthersCoverAll) {
  PushRequest request = GenWorld::Request(push_);
  request.configs_updated = {{ConfigKind::kServiceEntry, GenWorld::Host("api"), "shop"},
                             {ConfigKind::kVirtualService, "v", "shop"}};
  EXPECT_THAT(Names(generator_->Generate(proxy_, watched_, request)), ElementsAre(kApi));
  request.configs_updated.insert({ConfigKind::kDestinationRule, "d", "shop"});
  EXPECT_THAT(Names(generator_->Generate(proxy_, watched_, request)), ElementsAre(kApi, kWebCluster));
}

TEST_F(EdsPushTest, NothingIsSentForConfigurationThatNoEndpointDependsOn) {
  PushRequest request = GenWorld::Request(push_);
  request.configs_updated = {{ConfigKind::kGateway, "g", "shop"}, {ConfigKind::kSecret, "s", "shop"}};
  EXPECT_FALSE(generator_->Generate(proxy_, watched_, request).send);
  request.configs_updated = {{ConfigKind::kServiceEntry, "other.example", "shop"}};
  EXPECT_FALSE(generator_->Generate(proxy_, watched_, request).send);
}

// istiod: skippedEdsConfigs. So a port that a Sidecar no longer shows keeps its endpoints.
TEST_F(EdsPushTest, ASidecarAloneIsNoPushOfEndpointsWhereTheReleaseSaysSo) {
  PushRequest request = GenWorld::Request(push_);
  request.configs_updated = {{ConfigKind::kSidecar, "s", "shop"}};
  EXPECT_THAT(Names(generator_->Generate(proxy_, watched_, request)), ElementsAre(kApi, kWebCluster));
  world_.profile.Set(Change::kDeltasOfScopes);
  push_ = world_.Push();
  request.push = push_;
  EXPECT_FALSE(generator_->Generate(proxy_, watched_, request).send);
  EXPECT_FALSE(generator_->GenerateDeltas(proxy_, watched_, request).send);
  request.configs_updated.insert({ConfigKind::kDestinationRule, "d", "shop"});
  EXPECT_TRUE(generator_->Generate(proxy_, watched_, request).send);
}

TEST_F(EdsPushTest, DeltaRemovesClustersOfServicesThatAreGone) {
  world_.discovery.services.pop_back();
  push_ = world_.Push();
  proxy_ = GenWorld::Connect(*push_, "c1");
  PushRequest request = GenWorld::Request(push_);
  request.configs_updated = {{ConfigKind::kServiceEntry, GenWorld::Host("api"), "shop"}};
  const auto out = generator_->GenerateDeltas(proxy_, watched_, request);
  EXPECT_TRUE(out.used_delta);
  EXPECT_THAT(out.removed, ElementsAre(kApi));
  EXPECT_THAT(out.resources, IsEmpty());
  EXPECT_TRUE(out.send);
}

TEST_F(EdsPushTest, CachedAssignmentIsSharedUntilItsServiceChanges) {
  const PushRequest request = GenWorld::Request(push_);
  const auto first = generator_->Generate(proxy_, watched_, request);
  const auto second = generator_->Generate(proxy_, watched_, request);
  EXPECT_EQ(second.cached, 2);
  EXPECT_EQ(first.resources[1].bytes, second.resources[1].bytes);

  world_.SetEndpoints("c1", "web", {GenWorld::Endpoint("10.1.0.99", GenWorld::Workload("c1"))});
  cache_.Clear({{ConfigKind::kServiceEntry, GenWorld::Host("web"), "shop"}}, Time(1s));
  const auto third = generator_->Generate(proxy_, watched_, request);
  EXPECT_EQ(third.cached, 1);
  EXPECT_EQ(Summary(Parse(third.resources[1])), "10.1.0.99*1 10.2.0.1*1 10.2.0.2*1");
}

TEST_F(EdsPushTest, ProxiesOfDifferentClustersShareNothing) {
  const PushRequest request = GenWorld::Request(push_);
  generator_->Generate(proxy_, watched_, request);
  const Proxy other = GenWorld::Connect(*push_, "c2");
  EXPECT_EQ(generator_->Generate(other, watched_, request).cached, 0);
}

}  // namespace
}  // namespace wavetank::pilot
