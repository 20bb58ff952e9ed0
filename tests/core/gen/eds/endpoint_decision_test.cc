#include "core/gen/eds/endpoint_decision.h"

#include <set>
#include <tuple>

#include "core/gen/eds/load_assignment_builder.h"
#include "core/profile/changes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/gen/gen_world.h"

namespace wavetank::pilot {
namespace {

const std::string kDecidedCluster = "outbound|80||" + GenWorld::Host("web");

class EndpointDecisionTest : public testing::Test {
 protected:
  // Of the proxy in c1; checks that what is explained is what was built.
  AssignmentExplanation Explain(const std::string& cluster_name = kDecidedCluster, std::vector<std::string> view = {}) {
    push_ = world_.Push();
    Proxy proxy = GenWorld::Connect(*push_, "c1");
    proxy.metadata.requested_network_view = std::move(view);
    proxy.locality = {"r1", "z1", ""};
    AssignmentExplanation out;
    const LoadAssignmentBuilder builder(cluster_name, proxy, *push_);
    const LoadAssignment told = builder.Build(nullptr, &out);
    EXPECT_EQ(told.Encode(cluster_name), builder.Build(nullptr).Encode(cluster_name)) << "asking changes the answer";
    using Place = std::tuple<std::string, uint32_t, std::string, uint32_t, uint32_t>;
    std::set<Place> built, explained;
    for (const LocalityLbEndpoints& group : told.localities) {
      for (const LbEndpoint& e : group.endpoints) {
        built.insert({*e.address, e.port, std::string(group.locality), group.priority, e.weight});
      }
    }
    for (const EndpointDecision& d : out.endpoints) {
      EXPECT_EQ(d.routes.empty(), d.refused_by != EndpointFilter::kPassed) << d.endpoint->address;
      for (const EndpointRoute& r : d.routes) explained.insert({r.address, r.port, r.locality, r.priority, r.weight});
    }
    EXPECT_EQ(built, explained);
    return out;
  }
  static const EndpointDecision& Of(const AssignmentExplanation& all, const std::string& address) {
    static const EndpointDecision none;
    for (const EndpointDecision& d : all.endpoints) {
      if (d.endpoint->address == address) return d;
    }
    ADD_FAILURE() << "nothing about " << address;
    return none;
  }
  void Web(const std::string& cluster, const std::string& address, EndpointProfile profile) {
    lists_[cluster].push_back(GenWorld::Endpoint(address, std::move(profile)));
    world_.SetEndpoints(cluster, "web", lists_[cluster]);
  }

  GenWorld world_;
  std::map<std::string, EndpointList> lists_;
  PushContextRef push_;
};

TEST_F(EndpointDecisionTest, EachFilterIsNamedByWhatItRefuses) {
  world_.AddService("web");
  config::DestinationRule rule;
  rule.host = GenWorld::Host("web");
  rule.subsets.push_back({});
  rule.subsets.back().name = "v1";
  rule.subsets.back().labels = {{"version", "v1"}};
  world_.AddRule("web", rule);
  world_.AddGateway("c2", "2.2.2.2");

  EndpointProfile v1 = GenWorld::Workload("c1");
  v1.labels["version"] = "v1";
  Web("c1", "10.1.0.1", v1);
  Web("c1", "10.1.0.2", GenWorld::Workload("c1"));
  EndpointProfile other_port = v1;
  other_port.service_port_name = "grpc";
  Web("c1", "10.1.0.3", other_port);
  EndpointProfile draining = v1;
  draining.labels["istio.io/draining"] = "true";
  Web("c1", "10.1.0.4", draining);
  EndpointProfile plain = v1;
  plain.network = NetworkId("network-c2");
  plain.locality.cluster = ClusterId("c2");
  plain.tls_mode = kDisabledTlsMode;
  Web("c2", "10.2.0.1", plain);
  EndpointProfile bound = v1;
  bound.locality.cluster = ClusterId("c2");
  bound.discoverable_in_same_cluster_only = true;
  Web("c2", "10.2.0.2", bound);

  const AssignmentExplanation all = Explain("outbound|80|v1|" + GenWorld::Host("web"));
  EXPECT_EQ(all.endpoints.size(), 6u);
  EXPECT_EQ(all.rule, "shop/web");
  EXPECT_EQ(Of(all, "10.1.0.1").refused_by, EndpointFilter::kPassed);
  EXPECT_EQ(Of(all, "10.1.0.2").refused_by, EndpointFilter::kSubset);
  EXPECT_EQ(Of(all, "10.1.0.3").refused_by, EndpointFilter::kPort);
  EXPECT_EQ(Of(all, "10.1.0.4").refused_by, EndpointFilter::kDraining);
  EXPECT_EQ(Of(all, "10.2.0.1").refused_by, EndpointFilter::kMtls);
  EXPECT_EQ(Of(all, "10.2.0.1").mtls, MtlsVerdict::kNoSidecar);
  EXPECT_EQ(Of(all, "10.2.0.2").refused_by, EndpointFilter::kDiscoverability);
}

TEST_F(EndpointDecisionTest, AGatewayStandsForAllThatIsBehindIt) {
  world_.AddService("web");
  world_.AddGateway("c2", "2.2.2.2");
  world_.AddGateway("c2", "2.2.2.3");
  Web("c1", "10.1.0.1", GenWorld::Workload("c1"));
  Web("c2", "10.2.0.1", GenWorld::Workload("c2"));
  Web("c2", "10.2.0.2", GenWorld::Workload("c2"));
  const AssignmentExplanation all = Explain();
  EXPECT_TRUE(all.multi_network);
  EXPECT_FALSE(Of(all, "10.1.0.1").through_gateways);
  const EndpointDecision& remote = Of(all, "10.2.0.2");
  EXPECT_TRUE(remote.through_gateways);
  EXPECT_FALSE(remote.own_network);
  ASSERT_EQ(remote.routes.size(), 2u);
  EXPECT_EQ(remote.routes[0].address, "2.2.2.2");
  EXPECT_EQ(remote.weight, 2u);            // its own, scaled for two gateways to share
  EXPECT_EQ(remote.routes[0].weight, 2u);  // half of both endpoints'
}

TEST_F(EndpointDecisionTest, NetworksThatTheProxyDoesNotWantToSeeAreRefusedByItsView) {
  world_.AddService("web");
  world_.AddGateway("c2", "2.2.2.2");
  Web("c1", "10.1.0.1", GenWorld::Workload("c1"));
  Web("c2", "10.2.0.1", GenWorld::Workload("c2"));
  const AssignmentExplanation all = Explain(kDecidedCluster, {"network-c1"});
  EXPECT_EQ(Of(all, "10.1.0.1").refused_by, EndpointFilter::kPassed);
  EXPECT_EQ(Of(all, "10.2.0.1").refused_by, EndpointFilter::kNetworkView);
}

TEST_F(EndpointDecisionTest, ShardsOfOtherClustersAreRefusedToAClusterLocalService) {
  world_.AddService("web")->attributes.node_local = true;
  Web("c2", "10.2.0.1", GenWorld::Workload("c2"));
  EXPECT_EQ(Of(Explain(), "10.2.0.1").refused_by, EndpointFilter::kClusterLocal);
}

TEST_F(EndpointDecisionTest, LocalitiesThatDistributeDoesNotNameAreRefusedLast) {
  world_.AddService("web");
  config::LocalityLbSetting setting;
  setting.distribute.push_back({"r1", {{"r1", 100}}});
  world_.mesh.locality_lb_setting = setting;
  Web("c1", "10.1.0.1", GenWorld::Workload("c1", "r1/z1"));
  Web("c1", "10.1.0.2", GenWorld::Workload("c1", "r2/z1"));
  const AssignmentExplanation all = Explain();
  EXPECT_EQ(all.locality_lb, LocalityLbMode::kDistribute);
  EXPECT_EQ(Of(all, "10.1.0.1").routes.at(0).locality_weight, 100u);
  EXPECT_EQ(Of(all, "10.1.0.2").refused_by, EndpointFilter::kLocality);
}

TEST_F(EndpointDecisionTest, AnEmptyAssignmentSaysWhy) {
  EXPECT_EQ(Explain().refusal, AssignmentRefusal::kServiceUnknown);
  const auto web = world_.AddService("web");
  EXPECT_EQ(Explain().refusal, AssignmentRefusal::kNoShards);
  EXPECT_EQ(Explain("outbound|81||" + GenWorld::Host("web")).refusal, AssignmentRefusal::kNoSuchPort);
  web->resolution = Resolution::kDnsLb;
  EXPECT_EQ(Explain().refusal, AssignmentRefusal::kNotEds);
}

// istiod: endpoint_builder.go, BuildClusterLoadAssignment.
TEST_F(EndpointDecisionTest, NamesOfServiceEntriesAreNotSentSinceTheReleaseThatFiltersThem) {
  world_.AddService("web");
  EndpointProfile entry = GenWorld::Workload("c1");
  entry.entry_port = 80;
  Web("c1", "far.example", entry);
  Web("c1", "10.0.0.1", entry);
  EXPECT_EQ(Of(Explain(), "far.example").refused_by, EndpointFilter::kPassed);
  world_.profile.Set(Change::kNamesNotInEds);
  const AssignmentExplanation told = Explain();
  EXPECT_EQ(Of(told, "far.example").refused_by, EndpointFilter::kAddress);
  EXPECT_EQ(Of(told, "10.0.0.1").refused_by, EndpointFilter::kPassed);
}

// istiod: ep_filters.go, EndpointsByNetworkFilter.
TEST_F(EndpointDecisionTest, WorkloadWithoutAddressStandsBehindItsNetworksGatewaysAlone) {
  world_.AddService("web");
  world_.AddGateway("c2", "2.2.2.2");
  world_.profile.Set(Change::kEntriesWithoutAddress);
  Web("c2", "", GenWorld::Workload("c2"));
  const AssignmentExplanation far = Explain();
  EXPECT_EQ(Of(far, "").refused_by, EndpointFilter::kPassed);
  ASSERT_EQ(Of(far, "").routes.size(), 1u);
  EXPECT_EQ(Of(far, "").routes[0].address, "2.2.2.2");
  lists_.clear();
  world_.SetEndpoints("c2", "web", {});
  Web("c1", "", GenWorld::Workload("c1"));
  EXPECT_EQ(Of(Explain(), "").refused_by, EndpointFilter::kAddress) << "of the client's own network";
}

}  // namespace
}  // namespace wavetank::pilot
