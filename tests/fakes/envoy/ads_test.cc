// Message sequences of the ADS client: docs/real-envoy.md 7, measured on real Envoy 1.40.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "envoy/config/listener/v3/listener.pb.h"
#include "fakes/envoy/config/config_store.h"
#include "tests/fakes/envoy/lab.h"

namespace wavetank::envoysim::lab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class AdsTest : public ::testing::Test {
 protected:
  AdsTest() : lab(1, Instant()), p(lab.AddProxy("p", "10.0.0.1")) {}

  // A first configuration with clusters c1, c2 and a listener on 10.9.0.1:80 with routes r1, all acknowledged.
  void Settle() {
    p.envoy->Start();
    lab.RunFor(1ms);
    p.ads->Send(XdsType::kCds, "1", {EdsCluster("c1"), EdsCluster("c2")});
    lab.RunFor(1ms);
    p.ads->Send(XdsType::kEds, "1", {Assignment("c1", {{"10.0.0.2:80"}}), Assignment("c2", {{"10.0.0.3:80"}})});
    lab.RunFor(1ms);
    p.ads->Send(XdsType::kLds, "1", {HttpListener("l1", "10.9.0.1:80", "r1")});
    lab.RunFor(1ms);
    p.ads->Send(XdsType::kRds, "1", {RoutesTo("r1", "*", "c1")});
    lab.RunFor(1ms);
    p.ads->log.clear();
  }

  Lab lab;
  Lab::Proxy& p;
};

TEST_F(AdsTest, SotwStartAsksForListenersOnlyWhenClustersAreWarm) {
  p.envoy->Start();
  lab.RunFor(1ms);
  EXPECT_THAT(p.ads->Log(), ElementsAre("CDS v='' n='' [] node"));
  p.ads->log.clear();

  p.ads->Send(XdsType::kCds, "1", {EdsCluster("c1"), EdsCluster("c2")});
  lab.RunFor(1ms);
  EXPECT_THAT(p.ads->Log(), ElementsAre("EDS v='' n='' [c1 c2]", "CDS v='1' n='n1' []"))
      << "the first clusters hold no acknowledgement back";
  p.ads->log.clear();

  p.ads->Send(XdsType::kEds, "1", {Assignment("c1", {{"10.0.0.2:80"}}), Assignment("c2", {{"10.0.0.3:80"}})});
  lab.RunFor(1ms);
  EXPECT_THAT(p.ads->Log(), ElementsAre("LDS v='' n='' []", "EDS v='1' n='n2' [c1 c2]"));
  p.ads->log.clear();

  EXPECT_FALSE(p.envoy->live());
  p.ads->Send(XdsType::kLds, "1", {HttpListener("l1", "10.9.0.1:80", "r1")});
  lab.RunFor(1ms);
  EXPECT_THAT(p.ads->Log(), ElementsAre("RDS v='' n='' [r1]", "LDS v='1' n='n3' []"));
  p.ads->log.clear();
  EXPECT_FALSE(p.envoy->live()) << "the listener waits for its routes";

  p.ads->Send(XdsType::kRds, "1", {RoutesTo("r1", "*", "c1")});
  lab.RunFor(1ms);
  EXPECT_THAT(p.ads->Log(), ElementsAre("RDS v='1' n='n4' [r1]"));
  EXPECT_TRUE(p.envoy->live());
}

TEST_F(AdsTest, EmptyClustersAndListenersAreEnoughToBeLive) {
  p.envoy->Start();
  lab.RunFor(1ms);
  p.ads->Send(XdsType::kCds, "1", {});
  lab.RunFor(1ms);
  EXPECT_THAT(p.ads->Log(), ElementsAre("CDS v='' n='' [] node", "LDS v='' n='' []", "CDS v='1' n='n1' []"));
  p.ads->Send(XdsType::kLds, "1", {});
  lab.RunFor(1ms);
  EXPECT_TRUE(p.envoy->live());
}

TEST_F(AdsTest, NewClusterRepeatsLastEdsVersionAndNonceWithAllNames) {
  Settle();
  p.ads->Send(XdsType::kCds, "2", {EdsCluster("c1"), EdsCluster("c2"), EdsCluster("c3")});
  lab.RunFor(1ms);
  EXPECT_THAT(p.ads->Log(), ElementsAre("EDS v='1' n='n2' [c1 c2 c3]"));
  p.ads->log.clear();
  p.ads->Send(XdsType::kEds, "2", {Assignment("c3", {{"10.0.0.4:80"}})});
  lab.RunFor(1ms);
  EXPECT_THAT(p.ads->Log(), ElementsAre("CDS v='2' n='n5' []", "EDS v='2' n='n6' [c1 c2 c3]"));
  EXPECT_THAT(p.envoy->ClusterNames(), ElementsAre("c1", "c2", "c3"));
}

TEST_F(AdsTest, RemovedClusterShrinksTheNames) {
  Settle();
  p.ads->Send(XdsType::kCds, "2", {EdsCluster("c1")});
  lab.RunFor(1ms);
  EXPECT_THAT(p.ads->Log(), ElementsAre("EDS v='1' n='n2' [c1]", "CDS v='2' n='n5' []"));
  EXPECT_THAT(p.envoy->ClusterNames(), ElementsAre("c1"));
}

TEST_F(AdsTest, UnchangedClustersAreAcknowledgedAtOnceAndAskForNothing) {
  Settle();
  p.ads->Send(XdsType::kCds, "2", {EdsCluster("c1"), EdsCluster("c2")});
  lab.RunFor(1ms);
  EXPECT_THAT(p.ads->Log(), ElementsAre("CDS v='2' n='n5' []"));
}

TEST_F(AdsTest, ChangedClusterWarmsAgainAndKeepsServingMeanwhile) {
  Settle();
  p.ads->Send(XdsType::kCds, "2", {EdsCluster("c1", R"("lb_policy": "RANDOM")"), EdsCluster("c2")});
  lab.RunFor(1ms);
  // Looks like a duplicate acknowledgement.
  EXPECT_THAT(p.ads->Log(), ElementsAre("EDS v='1' n='n2' [c1 c2]"));
  EXPECT_THAT(p.envoy->ClusterNames(), ElementsAre("c1", "c2"));
  p.ads->log.clear();
  // Later CDS acknowledgements are held back as well; one request stands for all of them.
  p.ads->Send(XdsType::kCds, "3", {EdsCluster("c1", R"("lb_policy": "RANDOM")"), EdsCluster("c2")});
  lab.RunFor(1ms);
  EXPECT_THAT(p.ads->Log(), IsEmpty());
  p.ads->Send(XdsType::kEds, "2", {Assignment("c1", {{"10.0.0.2:80"}})});
  lab.RunFor(1ms);
  EXPECT_THAT(p.ads->Log(), ElementsAre("CDS v='3' n='n6' []", "EDS v='2' n='n7' [c1 c2]"));
}

TEST_F(AdsTest, ChangedClusterGoesOnWithKnownEndpointsAfterInitialFetchTimeout) {
  Settle();
  p.ads->Send(XdsType::kCds, "2", {EdsCluster("c1", R"("lb_policy": "RANDOM")"), EdsCluster("c2")});
  lab.RunFor(14900ms);
  EXPECT_THAT(p.ads->Log(), ElementsAre("EDS v='1' n='n2' [c1 c2]"));
  lab.RunFor(200ms);
  // The old cluster's subscription ends, which repeats the request.
  EXPECT_THAT(p.ads->Log(), ElementsAre("EDS v='1' n='n2' [c1 c2]", "EDS v='1' n='n2' [c1 c2]", "CDS v='2' n='n5' []"));
  const auto endpoints = p.envoy->Endpoints();
  ASSERT_EQ(endpoints.size(), 2u);
  EXPECT_EQ(endpoints[0].address, "10.0.0.2:80");
}

TEST_F(AdsTest, AddedClusterWithoutEndpointsIsUnknownForFifteenSecondsThenEmpty) {
  Settle();
  p.ads->Send(XdsType::kCds, "2", {EdsCluster("c1"), EdsCluster("c2"), EdsCluster("c3")});
  p.ads->Send(XdsType::kRds, "2", {RoutesTo("r1", "*", "c3")});
  lab.network.pod("10.0.0.1");
  p.ads->Send(XdsType::kLds, "2", {HttpListener("l1", "10.9.0.1:80", "r1"), VirtualOutbound()});
  lab.RunFor(1s);
  RequestSpec spec;
  spec.authority = "x";
  auto r = lab.Ask(p, "10.9.0.1:80", spec);
  EXPECT_EQ(r.record.code, 503);
  EXPECT_EQ(r.body, "");
  EXPECT_EQ(r.flags, "NC");
  EXPECT_EQ(r.details, "cluster_not_found");
  lab.RunFor(15s);
  r = lab.Ask(p, "10.9.0.1:80", spec);
  EXPECT_EQ(r.record.code, 503);
  EXPECT_EQ(r.body, "no healthy upstream");
  EXPECT_EQ(r.flags, "UH");
  EXPECT_EQ(r.details, "no_healthy_upstream");
}

TEST_F(AdsTest, NackRepeatsTheLastAcceptedVersionWithTheRejectedNonce) {
  Settle();
  p.ads->Send(XdsType::kCds, "2",
              {EdsCluster("c1"), EdsCluster("c2"), StaticCluster("c4", {{"not.an.ip:80"}}),
               StaticCluster("c5", {{"10.0.0.5:80"}})});
  lab.RunFor(1ms);
  ASSERT_EQ(p.ads->log.size(), 1u);
  const AdsScript::Message& nack = p.ads->log[0];
  EXPECT_EQ(nack.ToString(), "CDS v='1' n='n5' [] error 13");
  EXPECT_EQ(nack.error,
            "Error adding/updating cluster(s) c4: malformed IP address: not.an.ip. Consider setting resolver_name or "
            "setting cluster type to 'STRICT_DNS' or 'LOGICAL_DNS'");
  // The good one beside it is in use.
  EXPECT_THAT(p.envoy->ClusterNames(), ElementsAre("c1", "c2", "c5"));
  lab.RunFor(60s);
  EXPECT_EQ(p.ads->log.size(), 1u) << "no request follows a NACK";
}

TEST_F(AdsTest, AListenerWithOneMatchTwiceIsRefused) {
  Settle();
  envoy::config::listener::v3::Listener listener;
  ASSERT_TRUE(listener.ParseFromString(PassthroughGateway({"a.example", "b.example"})));
  *listener.add_filter_chains() = listener.filter_chains(0);
  listener.mutable_filter_chains(1)->set_name("again");
  p.ads->Send(XdsType::kLds, "2", {listener.SerializeAsString()});
  lab.RunFor(1ms);
  ASSERT_FALSE(p.ads->log.empty());
  EXPECT_THAT(p.ads->log.back().error,
              HasSubstr("filter chain 'again' has the same matching rules defined as 'passthrough'"));
}

TEST_F(AdsTest, ListenersAreAppliedPartially) {
  Settle();
  p.ads->Send(XdsType::kLds, "2", {TcpListenerTo("l1", "10.9.0.1:81", "c1"), TcpListenerTo("l3", "10.9.0.3:80", "")});
  lab.RunFor(1ms);
  ASSERT_FALSE(p.ads->log.empty());
  const AdsScript::Message& nack = p.ads->log.back();
  EXPECT_EQ(nack.ToString(), "LDS v='1' n='n5' [] error 13");
  EXPECT_THAT(nack.error, HasSubstr("Error adding/updating listener(s) l3: "));
  EXPECT_THAT(nack.error, HasSubstr("TcpProxyValidationError.StatPrefix"));
  EXPECT_THAT(p.envoy->ListenerNames(), ElementsAre("l1"));
  EXPECT_THAT(p.envoy->RouteNames(), ElementsAre("r1")) << "the new l1 needs no routes, but the old one drains";
  lab.RunFor(46s);
  EXPECT_THAT(p.envoy->RouteNames(), IsEmpty());
}

TEST_F(AdsTest, RejectedEndpointsLeaveTheOldOnes) {
  Settle();
  p.ads->Send(XdsType::kEds, "2", {Assignment("c1", {{"bad.name:80"}}), Assignment("c2", {{"10.0.0.9:80"}})});
  lab.RunFor(1ms);
  ASSERT_EQ(p.ads->log.size(), 1u);
  EXPECT_EQ(p.ads->log[0].ToString(), "EDS v='1' n='n5' [c1 c2] error 13");
  EXPECT_EQ(p.envoy->Endpoints()[0].address, "10.0.0.2:80");
}

TEST_F(AdsTest, MissingNameInAnEdsResponseKeepsItsEndpoints) {
  Settle();
  p.ads->Send(XdsType::kEds, "2", {Assignment("c2", {{"10.0.0.9:80"}})});
  lab.RunFor(1ms);
  const auto endpoints = p.envoy->Endpoints();
  ASSERT_EQ(endpoints.size(), 2u);
  EXPECT_EQ(endpoints[0].address, "10.0.0.2:80");
  EXPECT_EQ(endpoints[1].address, "10.0.0.9:80");
  p.ads->Send(XdsType::kEds, "3", {Assignment("c1", std::vector<EndpointSpec>{})});
  lab.RunFor(1ms);
  EXPECT_EQ(p.envoy->Endpoints().size(), 1u) << "an empty assignment empties";
}

TEST_F(AdsTest, ListenerWithoutRoutesIsRefusedThenAnswersNotFound) {
  Settle();
  p.ads->Send(XdsType::kLds, "2",
              {HttpListener("l1", "10.9.0.1:80", "r1"), HttpListener("l2", "10.9.0.2:80", "r2"), VirtualOutbound()});
  lab.RunFor(1s);
  EXPECT_THAT(p.envoy->ListenerNames(), ElementsAre("l1", "virtualOutbound"));
  lab.RunFor(15s);
  EXPECT_THAT(p.envoy->ListenerNames(), ElementsAre("l1", "l2", "virtualOutbound"));
  RequestSpec spec;
  spec.authority = "x";
  const auto r = lab.Ask(p, "10.9.0.2:80", spec);
  EXPECT_EQ(r.record.code, 404);
  EXPECT_EQ(r.flags, "NR");
  EXPECT_EQ(r.details, "route_not_found");
}

TEST_F(AdsTest, RefusedEndpointsEndTheWaitingOfEveryCluster) {
  p.envoy->Start();
  lab.RunFor(1ms);
  p.ads->Send(XdsType::kCds, "1", {EdsCluster("c1"), EdsCluster("c2")});
  lab.RunFor(1ms);
  p.ads->log.clear();
  p.ads->Send(XdsType::kEds, "1", {Assignment("c1", {{"nowhere:80"}})});
  lab.RunFor(1ms);
  EXPECT_THAT(p.ads->Log(), ElementsAre("LDS v='' n='' []", "EDS v='' n='n2' [c1 c2] error 13"))
      << "nothing is waited for";
}

TEST_F(AdsTest, RefusedRoutesEndTheWaitingOfEveryListener) {
  Settle();
  p.ads->Send(XdsType::kLds, "2",
              {HttpListener("l1", "10.9.0.1:80", "r1"), HttpListener("l2", "10.9.0.2:80", "r2"),
               HttpListener("l3", "10.9.0.3:80", "r3"), VirtualOutbound()});
  lab.RunFor(1s);
  p.ads->Send(XdsType::kRds, "2", {RoutesTo("r2", "*", "")});  // a route to nowhere
  lab.RunFor(1ms);
  EXPECT_THAT(p.envoy->ListenerNames(), ElementsAre("l1", "l2", "l3", "virtualOutbound")) << "r3 never came";
}

TEST_F(AdsTest, ReconnectSendsEverythingAgainWithLastVersionsAndNoNonce) {
  Settle();
  p.ads->Break();
  lab.RunFor(1s);
  EXPECT_THAT(p.ads->Log(), ElementsAre("CDS v='1' n='' [] node", "EDS v='1' n='' [c1 c2]", "LDS v='1' n='' []",
                                        "RDS v='1' n='' [r1]"));
  p.ads->log.clear();
  // An identical answer is acknowledged without warming again.
  p.ads->Send(XdsType::kCds, "1", {EdsCluster("c1"), EdsCluster("c2")});
  lab.RunFor(1ms);
  EXPECT_THAT(p.ads->Log(), ElementsAre("CDS v='1' n='n5' []"));
}

TEST_F(AdsTest, ReconnectBacksOffWithFullJitterUpToThirtySeconds) {
  Settle();
  p.ads->refusing = true;
  p.ads->opened.clear();
  const Time begin = lab.kernel.Now();
  p.ads->Break();
  lab.RunFor(600s);
  ASSERT_GT(p.ads->opened.size(), 10u);
  Duration limit = 500ms;
  Time before = begin;
  Duration longest{};
  for (Time t : p.ads->opened) {
    EXPECT_LE(t - before, limit);
    longest = std::max(longest, t - before);
    before = t;
    limit = std::min<Duration>(30s, 2 * limit);
  }
  EXPECT_GT(longest, 10s) << "of the many gaps below 30 s some are long";
  // A stream that works makes the next gap short again.
  p.ads->refusing = false;
  lab.RunFor(31s);
  p.ads->Send(XdsType::kCds, "1", {EdsCluster("c1"), EdsCluster("c2")});
  lab.RunFor(1ms);
  p.ads->opened.clear();
  const Time broken = lab.kernel.Now();
  p.ads->Break();
  lab.RunFor(1s);
  ASSERT_FALSE(p.ads->opened.empty());
  EXPECT_LE(p.ads->opened[0] - broken, 500ms);
}

TEST_F(AdsTest, WithoutServerAndWithoutTimeoutItNeverGetsLive) {
  p.ads->refusing = true;
  p.envoy->Start();
  lab.RunFor(1h);
  EXPECT_FALSE(p.envoy->live());
}

TEST(AdsTimeoutTest, WithDefaultTimeoutItIsLiveAfterThirtySeconds) {
  Lab lab(1, Instant());
  Lab::Proxy& p = lab.AddProxy("p", "10.0.0.1", true, AdsTransport::Protocol::kSotw, 15s);
  p.ads->refusing = true;
  p.envoy->Start();
  lab.RunFor(29900ms);
  EXPECT_FALSE(p.envoy->live());
  lab.RunFor(200ms);
  EXPECT_TRUE(p.envoy->live());
}

TEST(AdsDeltaTest, StartSubscribesByTypeAndAcknowledgesEachResponseOnItsOwn) {
  Lab lab(1, Instant());
  Lab::Proxy& p = lab.AddProxy("p", "10.0.0.1", true, AdsTransport::Protocol::kDelta);
  p.envoy->Start();
  lab.RunFor(1ms);
  p.ads->SendDelta(XdsType::kCds, {{"c1", EdsCluster("c1")}, {"c2", EdsCluster("c2")}}, "1");
  lab.RunFor(1ms);
  p.ads->SendDelta(XdsType::kEds,
                   {{"c1", Assignment("c1", {{"10.0.0.2:80"}})}, {"c2", Assignment("c2", {{"10.0.0.3:80"}})}}, "1");
  lab.RunFor(1ms);
  p.ads->SendDelta(XdsType::kLds, {{"l1", HttpListener("l1", "10.9.0.1:80", "r1")}}, "1");
  lab.RunFor(1ms);
  p.ads->SendDelta(XdsType::kRds, {{"r1", RoutesTo("r1", "*", "c1")}}, "1");
  lab.RunFor(1ms);
  EXPECT_THAT(p.ads->Log(),
              ElementsAre("CDS v='' n='' [] node", "EDS v='' n='' [c1 c2]", "CDS v='' n='n1' []", "LDS v='' n='' []",
                          "EDS v='' n='n2' []", "RDS v='' n='' [r1]", "LDS v='' n='n3' []", "RDS v='' n='n4' []"));
  EXPECT_TRUE(p.envoy->live());
  p.ads->log.clear();

  // A new cluster subscribes its name alone; a changed one says nothing; a removed one unsubscribes.
  p.ads->SendDelta(XdsType::kCds, {{"c3", EdsCluster("c3")}}, "2");
  lab.RunFor(1ms);
  EXPECT_THAT(p.ads->Log(), ElementsAre("EDS v='' n='' [c3]"));
  p.ads->log.clear();
  p.ads->SendDelta(XdsType::kEds, {{"c3", Assignment("c3", {{"10.0.0.4:80"}})}}, "2");
  lab.RunFor(1ms);
  p.ads->log.clear();
  p.ads->SendDelta(XdsType::kCds, {{"c1", EdsCluster("c1", R"("lb_policy": "RANDOM")")}}, "3");
  lab.RunFor(1ms);
  EXPECT_THAT(p.ads->Log(), IsEmpty());
  p.ads->SendDelta(XdsType::kEds, {{"c1", Assignment("c1", {{"10.0.0.2:80"}})}}, "3");
  lab.RunFor(1ms);
  p.ads->log.clear();
  p.ads->SendDelta(XdsType::kCds, {}, "4", {"c2"});
  lab.RunFor(1ms);
  ASSERT_FALSE(p.ads->log.empty());
  EXPECT_EQ(p.ads->log[0].ToString(), "EDS v='' n='' [] -[c2]");

  // removed_resources of EDS leaves the endpoints.
  p.ads->SendDelta(XdsType::kEds, {}, "5", {"c1"});
  lab.RunFor(1ms);
  EXPECT_EQ(p.envoy->Endpoints().size(), 2u);

  // Reconnection tells what it has.
  p.ads->log.clear();
  p.ads->Break();
  lab.RunFor(1s);
  ASSERT_EQ(p.ads->log.size(), 4u);
  EXPECT_EQ(p.ads->log[0].ToString(), "CDS v='' n='' [] node");
  EXPECT_THAT(p.ads->log[0].initial_versions, ElementsAre(Pair("c1", "3"), Pair("c3", "2")));
  EXPECT_EQ(p.ads->log[1].ToString(), "EDS v='' n='' [c1 c3]");
  EXPECT_EQ(p.ads->log[3].ToString(), "RDS v='' n='' [r1]");
}

TEST_F(AdsTest, ManyEnvoysShareOneCopyOfTheirConfiguration) {
  std::vector<Lab::Proxy*> many;
  for (int i = 0; i < 50; ++i) {
    Lab::Proxy& q = lab.AddProxy("q" + std::to_string(i), "10.1.0." + std::to_string(i + 1));
    q.ads->automatic = true;
    for (int c = 0; c < 20; ++c) {
      const std::string name = "c" + std::to_string(c);
      q.ads->world[XdsType::kCds][name] = EdsCluster(name);
      q.ads->world[XdsType::kEds][name] = Assignment(name, {{"10.2.0.1:80"}});
    }
    q.ads->world[XdsType::kLds]["virtualOutbound"] = VirtualOutbound();
    q.envoy->Start();
    many.push_back(&q);
  }
  lab.RunFor(1s);
  for (Lab::Proxy* q : many) ASSERT_TRUE(q->envoy->live());
  EXPECT_EQ(lab.plane.configs().resources(), 41u);
  EXPECT_LE(lab.plane.configs().sets(), 12u);
}

TEST(EndpointCacheTest, Before132AChangedClusterWhoseEndpointsDoNotComeIsEmpty) {
  for (const uint32_t minor : {31u, 32u}) {
    DataPlane::Options options = Instant();
    options.release = EnvoyRelease{minor};
    Lab lab(1, options);
    Lab::Proxy& p = lab.AddProxy("p", "10.0.0.1");
    p.envoy->Start();
    lab.RunFor(1ms);
    p.ads->Send(XdsType::kCds, "1", {EdsCluster("c")});
    lab.RunFor(1ms);
    p.ads->Send(XdsType::kEds, "1", {Assignment("c", {{"10.0.0.2:80"}})});
    lab.RunFor(1ms);
    ASSERT_EQ(p.envoy->Endpoints().size(), 1u);
    p.ads->Send(XdsType::kCds, "2", {EdsCluster("c", R"("alt_stat_name": "other")")});
    lab.RunFor(10s);
    EXPECT_EQ(p.envoy->Endpoints().size(), 1u) << "until it is given up";
    lab.RunFor(10s);
    EXPECT_EQ(p.envoy->Endpoints().size(), minor >= 32 ? 1u : 0u) << minor;
  }
}

}  // namespace
}  // namespace wavetank::envoysim::lab
