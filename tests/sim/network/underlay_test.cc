#include "sim/network/underlay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/status.h"
#include "sim/network/mesh_network.h"
#include "sim/world_options.h"

namespace wavetank::sim {
namespace {

using Outcome = envoysim::Route::Outcome;
using testing::HasSubstr;

class Listener final : public envoysim::Acceptor {
 public:
  envoysim::ConnectionHandler* Accept(envoysim::ConnectionId, const envoysim::AcceptInfo&) override { return nullptr; }
};

IpAddress AddressOf(std::string_view text) { return *IpAddress::Parse(text); }

// A pod in each of two clusters, which call their networks by one name; cluster2 has a load balancer at 192.168.7.7 and
// one at 203.0.113.2.
class UnderlayTest : public testing::Test {
 protected:
  UnderlayTest() {
    options_.clusters = {{"cluster1", "flat", "cluster1"}, {"cluster2", "flat", "cluster2"}};
    options_.sites = {{"east", {"cluster1"}, {}}, {"west", {"cluster2"}, {"192.168.0.0/16"}}};
  }

  void Build() {
    absl::StatusOr<Underlay> underlay = Underlay::Create(options_.Physical());
    ASSERT_TRUE(underlay.ok()) << underlay.status();
    network_.SetUnderlay(*std::move(underlay));
    east_ = AddPod(SiteId(0), "10.1.0.5");
    west_ = AddPod(SiteId(1), "10.2.0.5");
    MeshNetwork::ServiceAddresses service;
    service.load_balancers = {AddressOf("192.168.7.7"), AddressOf("203.0.113.2")};
    service.ports = {{15443, {{{AddressOf("10.2.0.5"), 15443}}, {NodeIndex{}}}}};
    network_.SetService(SiteId(1), network_.underlay()->SiteOf(SiteId(1)), "istio-system/gateway", std::move(service));
  }

  WorkloadId AddPod(SiteId cluster, std::string_view ip) {
    Workload workload;
    workload.site = cluster;
    workload.network = network_.underlay()->SiteOf(cluster);
    workload.ip = AddressOf(ip);
    workload.direct = &listener_;
    return network_.Add(std::move(workload));
  }

  envoysim::Route From(WorkloadId pod, std::string_view address, uint16_t port = 5000) {
    return network_.Resolve({pod, envoysim::Origin::Who::kProxy, {}}, {AddressOf(address), port}, 1);
  }
  std::string WhyNot(WorkloadId pod, std::string_view address, uint16_t port = 5000) {
    return network_.WhyNot({pod, envoysim::Origin::Who::kProxy, {}}, {AddressOf(address), port}).why;
  }
  bool Stands(WorkloadId pod, std::string_view address, const envoysim::Route& route, uint16_t port = 5000) {
    return network_.StillPasses({pod, envoysim::Origin::Who::kProxy, {}}, {AddressOf(address), port}, route.info);
  }
  Underlay& underlay() { return *network_.underlay(); }

  WorldOptions options_;
  Links links_{1, {}, {}};
  MeshNetwork network_{links_};
  SiteId first_ = links_.AddSite("cluster1"), second_ = links_.AddSite("cluster2");
  Listener listener_;
  WorkloadId east_{}, west_{};
};

TEST_F(UnderlayTest, PodsOfOneNetworkInTwoSitesReachEachOtherWhereRoutesLeadBothWays) {
  options_.routes = {{"east", "west", {"10.2.0.0/16"}}, {"west", "east", {}}};
  Build();
  EXPECT_EQ(From(east_, "10.2.0.5").outcome, Outcome::kAccepting);
  EXPECT_EQ(From(west_, "10.1.0.5").outcome, Outcome::kAccepting);
  EXPECT_EQ(WhyNot(east_, "10.2.0.5"), "");
}

TEST_F(UnderlayTest, WithoutARouteAPodOfAnotherSiteGetsNoAnswer) {
  Build();
  EXPECT_EQ(From(east_, "10.2.0.5").outcome, Outcome::kBlackholed);
  EXPECT_EQ(WhyNot(east_, "10.2.0.5"), "no route leads from east to 10.2.0.5, which is in west");
}

TEST_F(UnderlayTest, WithoutARouteBackNoAnswerComes) {
  options_.routes = {{"east", "west", {}}};
  Build();
  EXPECT_EQ(From(east_, "10.2.0.5").outcome, Outcome::kBlackholed);
  EXPECT_THAT(WhyNot(east_, "10.2.0.5"), HasSubstr("no route leads back from west to 10.1.0.5 in east"));
}

TEST_F(UnderlayTest, TranslatedSourcesNeedNoRouteBackAndAreWhatTheOtherSideSees) {
  options_.routes = {{"east", "west", {}}};
  options_.nat = {{.site = "east", .as = "198.51.100.1"}};
  Build();
  const envoysim::Route route = From(east_, "10.2.0.5");
  EXPECT_EQ(route.outcome, Outcome::kAccepting);
  EXPECT_EQ(route.info.source.ip.ToString(), "198.51.100.1");
}

TEST_F(UnderlayTest, SourcesAreTheirOwnWithinTheSite) {
  options_.nat = {{.site = "west", .as = "198.51.100.1"}};
  Build();
  EXPECT_EQ(From(west_, "192.168.7.7", 15443).info.source.ip.ToString(), "10.2.0.5");
}

TEST_F(UnderlayTest, APrivateLoadBalancerIsReachedFromItsSiteAlone) {
  Build();
  EXPECT_EQ(From(west_, "192.168.7.7", 15443).outcome, Outcome::kAccepting);
  EXPECT_EQ(From(east_, "192.168.7.7", 15443).outcome, Outcome::kBlackholed);
  EXPECT_EQ(From(east_, "203.0.113.2", 15443).outcome, Outcome::kAccepting);
  EXPECT_THAT(WhyNot(east_, "192.168.7.7", 15443), HasSubstr("which is in west"));
}

TEST_F(UnderlayTest, DestinationsAreTranslatedToWhatIsBehindTheSitesRouter) {
  options_.nat = {{.site = "west", .address = "198.51.100.9", .to = "192.168.7.7", .port = 443, .to_port = 15443}};
  Build();
  const envoysim::Route route = From(east_, "198.51.100.9", 443);
  EXPECT_EQ(route.outcome, Outcome::kAccepting);
  EXPECT_EQ(route.info.destination.ToString(), "10.2.0.5:15443");
  EXPECT_EQ(From(east_, "198.51.100.9", 80).outcome, Outcome::kBlackholed);
}

TEST_F(UnderlayTest, ATranslationToWhatNobodyHasIsToldWithBothAddresses) {
  options_.nat = {{.site = "west", .address = "198.51.100.9", .to = "192.168.7.8", .port = 443, .to_port = 15443}};
  Build();
  EXPECT_EQ(From(east_, "198.51.100.9", 443).outcome, Outcome::kBlackholed);
  EXPECT_EQ(WhyNot(east_, "198.51.100.9", 443),
            "NAT of west leads 198.51.100.9:443 to 192.168.7.8:15443, which nothing there has");
}

TEST_F(UnderlayTest, TheFirstFirewallRuleThatFitsDecides) {
  options_.firewalls = {{.name = "but that", .from = {"10.1.0.5"}, .to = {"west"}, .ports = {15443}, .allow = true},
                        {.name = "closed", .to = {"cluster2"}, .ports = {15443, 5000}}};
  options_.routes = {{"east", "west", {}}, {"west", "east", {}}};
  Build();
  EXPECT_EQ(From(east_, "203.0.113.2", 15443).outcome, Outcome::kAccepting);
  EXPECT_EQ(From(east_, "10.2.0.5", 5000).outcome, Outcome::kBlackholed);
  EXPECT_EQ(From(east_, "10.2.0.5", 5001).outcome, Outcome::kAccepting);
  EXPECT_EQ(WhyNot(east_, "10.2.0.5", 5000), "dropped by a firewall (closed): 10.1.0.5 to 10.2.0.5:5000");
}

TEST_F(UnderlayTest, ARejectedConnectionIsRefusedAtOnce) {
  options_.firewalls = {{.from = {"10.1.0.0/16"}, .to = {"203.0.113.0/24"}, .reject = true}};
  Build();
  EXPECT_EQ(From(east_, "203.0.113.2", 15443).outcome, Outcome::kRefused);
}

TEST_F(UnderlayTest, AFirewallInOneDirectionLetsConnectionsOfTheOtherThrough) {
  options_.routes = {{"east", "west", {}}, {"west", "east", {}}};
  options_.firewalls = {{.from = {"cluster1"}, .to = {"cluster2"}}};
  Build();
  EXPECT_EQ(From(east_, "10.2.0.5").outcome, Outcome::kBlackholed);
  EXPECT_EQ(From(west_, "10.1.0.5").outcome, Outcome::kAccepting);
}

TEST_F(UnderlayTest, ConnectionsThatStandOutliveARuleUnlessItIsForThemToo) {
  Build();
  const envoysim::Route route = From(east_, "203.0.113.2", 15443);
  WorldFirewall rule{.name = "closed", .from = {"cluster1"}};
  ASSERT_TRUE(underlay().SetFirewall(rule).ok());
  EXPECT_EQ(From(east_, "203.0.113.2", 15443).outcome, Outcome::kBlackholed);
  EXPECT_TRUE(Stands(east_, "203.0.113.2", route, 15443));
  rule.established = true;
  ASSERT_TRUE(underlay().SetFirewall(rule).ok());
  EXPECT_FALSE(Stands(east_, "203.0.113.2", route, 15443));
  ASSERT_TRUE(underlay().RemoveFirewall("closed").ok());
  EXPECT_EQ(From(east_, "203.0.113.2", 15443).outcome, Outcome::kAccepting);
}

TEST_F(UnderlayTest, ALostRouteTakesBothDirectionsOfAConnectionAndThoseThatStand) {
  Build();
  const envoysim::Route route = From(east_, "203.0.113.2", 15443);
  const absl::StatusOr<Underlay::Road> back = underlay().ReadRoad("west", "east", {});
  ASSERT_TRUE(back.ok());
  underlay().Lose(*back);
  EXPECT_EQ(From(east_, "203.0.113.2", 15443).outcome, Outcome::kBlackholed);
  EXPECT_FALSE(Stands(east_, "203.0.113.2", route, 15443));
  EXPECT_THAT(WhyNot(east_, "203.0.113.2", 15443), HasSubstr("the route back from west to east is lost"));
  EXPECT_TRUE(underlay().Restore(*back));
  EXPECT_EQ(From(east_, "203.0.113.2", 15443).outcome, Outcome::kAccepting);
}

TEST_F(UnderlayTest, AnApiServerBehindAFirewallIsNotReached) {
  options_.firewalls = {{.from = {"cluster1"}, .to = {"cluster2/kube-apiserver"}, .ports = {6443}}};
  Build();
  const NetworkIndex east = underlay().SiteOf(SiteId(0)), west = underlay().SiteOf(SiteId(1));
  EXPECT_FALSE(network_.ReachesApiServer(east_, SiteId(1), west));
  EXPECT_TRUE(network_.ReachesApiServer(east_, SiteId(0), east));
  EXPECT_TRUE(network_.ReachesApiServer(west_, SiteId(1), west));
}

TEST_F(UnderlayTest, WithoutSitesEveryNetworkIsOne) {
  options_.sites.clear();
  Build();
  EXPECT_EQ(From(east_, "10.2.0.5").outcome, Outcome::kAccepting);
}

TEST_F(UnderlayTest, WhatDoesNotFitIsRefusedWithWhatThereIs) {
  const auto error = [](const WorldOptions& options) {
    return std::string(Message(Underlay::Create(options.Physical()).status()));
  };
  WorldOptions wrong = options_;
  wrong.sites[1].clusters = {"cluster1"};
  EXPECT_THAT(error(wrong), HasSubstr("cluster cluster1 is in site east and in site west"));
  wrong = options_;
  wrong.routes = {{"east", "south", {}}};
  EXPECT_THAT(error(wrong), HasSubstr("no site is named 'south'; there are east, west"));
  wrong.routes = {{"east", "west", {"10.2.0.0/99"}}};
  EXPECT_THAT(error(wrong), HasSubstr("'10.2.0.0/99' is no range of addresses"));
  wrong.routes.clear();
  wrong.firewalls = {{.from = {"cluster9"}}};
  EXPECT_THAT(error(wrong), HasSubstr("'cluster9' is no range of addresses"));
  wrong.firewalls = {{.ports = {70000}}};
  EXPECT_THAT(error(wrong), HasSubstr("70000 is no port"));
  wrong.firewalls.clear();
  wrong.nat = {{.site = "east"}};
  EXPECT_THAT(error(wrong), HasSubstr("give one of both"));
}

}  // namespace
}  // namespace wavetank::sim
