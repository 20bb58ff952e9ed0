// What is inferred of istiod's log. The lines are of the form that istiod 1.18.2 prints; the mesh is nobody's.
#include "import/istiod/istiod_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fmt/format.h"
#include "import/text/line_splitter.h"

namespace wavetank::importing {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

// Lines without their times, one each; a line is told as "01.250000 info<TAB>..." with the seconds of one minute.
Evidence Read(const std::string& lines) {
  Evidence evidence;
  IstiodLog log("istiod", evidence);
  RecordReader reader("istiod.log", evidence.refusals, [&](const LogRecord& record) { log.Add(record, "istiod.log"); });
  LineSplitter splitter([&](std::string_view line, uint64_t number, bool cut) {
    const bool timed = line.size() > 10 && line[2] == '.' && line[9] == ' ';
    std::string whole(line);
    if (timed) whole = "2024-05-06T07:08:" + std::string(line.substr(0, 9)) + "Z\t" + std::string(line.substr(10));
    reader.Line(whole, number, cut);
  });
  splitter.Feed(lines);
  splitter.Finish();
  reader.Finish();
  log.Finish();
  return evidence;
}

double SecondsOf(WallNs at) { return static_cast<double>(at % 60'000'000'000) / 1e9; }

std::vector<std::string> Kinds(const Evidence& evidence) {
  std::vector<std::string> out;
  for (const InferredInput& input : evidence.inputs) {
    if (!input.initial) out.emplace_back(NameOf(input.kind));
  }
  return out;
}

TEST(IstiodLog, OneEventIsKnownExactly) {
  const Evidence found = Read(
      "01.100200 info\tads\tPush debounce stable[2] 1 for config PeerAuthentication/shop/strict: 100.2ms since last "
      "change, "
      "100.3ms since last push, full=true\n"
      "01.100400 info\tads\tXDS: Pushing:2024-05-06T07:08:01Z/2 Services:4 ConnectedEndpoints:2 "
      "Version:2024-05-06T07:08:01Z/2\n"
      "01.100900 info\tads\tCDS: PUSH for node:web.shop resources:11 size:4.7kB cached:0/8\n"
      "01.101900 info\tads\tCDS: PUSH for node:api.shop resources:11 size:4.7kB cached:0/8\n"
      "01.102900 info\tads\tEDS: PUSH request for node:api.shop resources:8 size:2.4kB empty:0 cached:0/8\n");
  ASSERT_THAT(Kinds(found), ElementsAre("config"));
  const InferredInput& input = found.inputs[0];
  EXPECT_EQ(input.object_kind, "PeerAuthentication");
  EXPECT_EQ(input.ns, "shop");
  EXPECT_EQ(input.name, "strict");
  EXPECT_DOUBLE_EQ(SecondsOf(input.at), 0.9999);
  ASSERT_THAT(found.claims, SizeIs(1));
  EXPECT_EQ(found.claims[0].events, 1);
  EXPECT_TRUE(found.claims[0].full);
  EXPECT_EQ(found.claims[0].services, 4);
  EXPECT_THAT(found.claims[0].sent, ElementsAre(Pair("CDS", 2)));  // the answer to a request is no push
}

// Two services without endpoints, where istiod knew two others before.
std::string TwoEmptyServices(int64_t known, bool full) {
  return fmt::format(
      "01.000100 info\tads\tPush debounce stable[2] 1 for config DestinationRule/shop/web: 100ms since last change, "
      "100ms since last push, full=true\n"
      "01.000200 info\tads\tXDS: Pushing:2024-05-06T07:08:01Z/2 Services:2 ConnectedEndpoints:1 Version:x\n"
      "05.000100 info\tads\tIncremental push, service web.shop.svc.cluster.local at shard Kubernetes/east has no "
      "endpoints\n"
      "05.000200 info\tads\tIncremental push, service api.shop.svc.cluster.local at shard Kubernetes/east has no "
      "endpoints\n"
      "05.100200 info\tads\tPush debounce stable[3] 4 for config ServiceEntry/shop/web.shop.svc.cluster.local and 1 "
      "more configs: 100ms since last change, 120ms since last push, full={}\n"
      "05.100300 info\tads\tXDS: Pushing:2024-05-06T07:08:05Z/3 Services:{} ConnectedEndpoints:1 Version:x\n",
      full, known);
}

TEST(IstiodLog, ServicesThatCameWithoutEndpointsAreCounted) {
  const Evidence found = Read(TwoEmptyServices(4, true));
  EXPECT_THAT(Kinds(found), ElementsAre("config", "endpoints", "endpoints", "service", "service"));
  EXPECT_EQ(found.inputs.back().change, "added");
  EXPECT_LT(found.inputs.back().at, found.inputs[2].at) << "its slice follows it";
  EXPECT_EQ(Read(TwoEmptyServices(0, true)).inputs.back().change, "removed");
}

TEST(IstiodLog, ServicesWhoseNumberSaysNothingAreNoInputs) {
  EXPECT_THAT(Kinds(Read(TwoEmptyServices(2, true))), ElementsAre("config", "endpoints", "endpoints"));
  EXPECT_THAT(Kinds(Read(TwoEmptyServices(3, true))), ElementsAre("config", "endpoints", "endpoints"));
}

TEST(IstiodLog, ALineThatIsToldTwiceCountsOnce) {
  const std::string line = "01.000100 info\tads\tADS: new connection for node:web-1.shop-1\n";
  const Evidence found = Read(line + "01.000200 info\tads\tADS: new connection for node:web-2.shop-2\n" + line);
  EXPECT_THAT(Kinds(found), ElementsAre("proxyConnected", "proxyConnected"));
  EXPECT_EQ(found.refusals.reasons().at("line that was told before").count, 1u);
}

TEST(IstiodLog, EndpointsAloneAreNoFullPush) {
  const Evidence found = Read(
      "01.000100 info\tads\tIncremental push, service web.shop.svc.cluster.local at shard Kubernetes/east has no "
      "endpoints\n"
      "01.100200 info\tads\tPush debounce stable[2] 1 for config ServiceEntry/shop/web.shop.svc.cluster.local: 100.1ms "
      "since "
      "last change, 100.1ms since last push, full=false\n"
      "02.100200 info\tads\tPush debounce stable[3] 1 for config ServiceEntry/shop/web.shop.svc.cluster.local: 100.1ms "
      "since "
      "last change, 100.1ms since last push, full=false\n");
  ASSERT_THAT(Kinds(found), ElementsAre("endpoints", "endpoints"));
  EXPECT_EQ(found.inputs[0].cluster, "east");
  EXPECT_EQ(found.inputs[0].change, "toZero");
  EXPECT_EQ(found.inputs[0].ns, "shop");
  EXPECT_EQ(found.inputs[1].change, "");
}

TEST(IstiodLog, TheNumberOfServicesTellsWhatBecameOfOne) {
  const auto push = [](int second, int number, int services) {
    return "0" + std::to_string(second) + ".100200 info\tads\tPush debounce stable[" + std::to_string(number) +
           "] 1 for config ServiceEntry/shop/web.shop.svc.cluster.local: 100ms since last change, 100ms since last "
           "push, "
           "full=true\n0" +
           std::to_string(second) + ".100400 info\tads\tXDS: Pushing:v Services:" + std::to_string(services) +
           " ConnectedEndpoints:0 Version:v\n";
  };
  const Evidence found = Read(push(1, 2, 4) + push(2, 3, 5) + push(3, 4, 5) + push(4, 5, 4));
  ASSERT_THAT(Kinds(found), ElementsAre("service", "service", "service", "service"));
  EXPECT_EQ(found.inputs[0].change, "");  // how many there were before, no line told
  EXPECT_EQ(found.inputs[1].change, "added");
  EXPECT_EQ(found.inputs[2].change, "changed");
  EXPECT_EQ(found.inputs[3].change, "removed");
}

TEST(IstiodLog, FirstEndpointsThatComeWithTheirServiceAreTheService) {
  const std::string first = " info\tads\tFull push, new service shop/web.shop.svc.cluster.local\n";
  const auto push = [](const std::string& second, int services) {
    return second +
           ".100200 info\tads\tPush debounce stable[2] 1 for config ServiceEntry/shop/web.shop.svc.cluster.local: "
           "100ms since "
           "last change, 100ms since last push, full=true\n" +
           second + ".100400 info\tads\tXDS: Pushing:v Services:" + std::to_string(services) +
           " ConnectedEndpoints:0 Version:v\n";
  };
  const Evidence found =
      Read(push("01", 4) + "02.000000" + first + push("02", 5) + "03.000000" + first + push("03", 5));
  ASSERT_THAT(Kinds(found), ElementsAre("service", "service", "endpoints"));
  EXPECT_EQ(found.inputs[1].change, "added");
  EXPECT_EQ(found.inputs[2].change, "first");
}

// A burst of `events` whose first is at .080 of that second, and of which its line names `what`; then as many services.
std::string BurstOf(const std::string& second, int events, const std::string& what, int services) {
  return second + ".200000 info\tads\tPush debounce stable[2] " + std::to_string(events) + " for config " + what +
         ": 100ms since last change, 120ms since last push, full=true\n" + second +
         ".200400 info\tads\tXDS: Pushing:v Services:" + std::to_string(services) + " ConnectedEndpoints:0 Version:v\n";
}
std::string None(const std::string& at, const std::string& name) {
  return at + " info\tads\tIncremental push, service " + name +
         ".shop.svc.cluster.local at shard Kubernetes/west has no endpoints\n";
}

TEST(IstiodLog, AServiceAndItsEmptySliceAreOneOfEach) {
  const std::string web = "ServiceEntry/shop/web.shop.svc.cluster.local";
  const Evidence found = Read(BurstOf("01", 1, "DestinationRule/shop/x", 4) + None("02.099000", "web") +
                              BurstOf("02", 2, web, 5) + None("03.081000", "web") + BurstOf("03", 2, web, 4));
  ASSERT_THAT(Kinds(found), ElementsAre("config", "endpoints", "service", "endpoints", "service"));
  EXPECT_EQ(found.inputs[2].change, "added");
  EXPECT_EQ(found.inputs[2].cluster, "west");
  EXPECT_NEAR(SecondsOf(found.inputs[2].at), 2.080, 1e-6);
  EXPECT_EQ(found.inputs[4].change, "removed");
}

TEST(IstiodLog, MoreEndpointsSoonAfterTheFirstOfAllAreNoService) {
  const std::string web = "ServiceEntry/shop/web.shop.svc.cluster.local";
  const std::string first = ".080000 info\tads\tFull push, new service shop/web.shop.svc.cluster.local\n";
  const Evidence found = Read(BurstOf("01", 1, "DestinationRule/shop/x", 4) + "02" + first + BurstOf("02", 2, web, 4) +
                              "03" + first + BurstOf("03", 2, web, 5));
  ASSERT_THAT(Kinds(found), ElementsAre("config", "endpoints", "endpoints", "endpoints", "service"));
  EXPECT_EQ(found.inputs[1].change, "first");
  EXPECT_EQ(found.inputs[2].object_kind, "EndpointSlice");
}

// istiod: endpointcontroller.go pushes a headless Service's endpoints twice, the second time in full.
TEST(IstiodLog, EndpointsOfAHeadlessServiceAreOneInputThoughTheyAreTwoEvents) {
  const std::string web = "ServiceEntry/shop/web.shop.svc.cluster.local";
  const auto twice = [&](const std::string& second, int services) {
    return second + ".200000 info\tads\tPush debounce stable[2] 2 for config " + web +
           ": 100ms since last change, 100.4ms since last push, full=true\n" + second +
           ".200400 info\tads\tXDS: Pushing:v Services:" + std::to_string(services) +
           " ConnectedEndpoints:0 Version:v\n";
  };
  const Evidence found =
      Read(BurstOf("01", 1, "DestinationRule/shop/x", 4) + None("02.099600", "web") + twice("02", 4) + twice("03", 4));
  EXPECT_THAT(Kinds(found), ElementsAre("config", "endpoints", "endpoints"));
  // With one service fewer it went with its slice.
  EXPECT_THAT(Kinds(Read(BurstOf("01", 1, "DestinationRule/shop/x", 4) + None("02.099600", "web") + twice("02", 3))),
              ElementsAre("config", "endpoints", "service"));
  // Of another, as many events at once as an overloaded istiod takes from its queues.
  EXPECT_THAT(Kinds(Read(BurstOf("01", 1, "DestinationRule/shop/x", 4) + twice("02", 4))),
              ElementsAre("config", "service", "endpoints"));
}

TEST(IstiodLog, AServiceOfPodsThatAreThereComesBeforeItsFirstEndpoints) {
  const Evidence found = Read(BurstOf("01", 1, "DestinationRule/shop/x", 4) +
                              "02.099000 info\tads\tFull push, new service shop/web.shop.svc.cluster.local\n" +
                              BurstOf("02", 4, "DestinationRule/shop/x and 1 more configs", 5));
  ASSERT_THAT(Kinds(found), ElementsAre("config", "endpoints", "config", "service"));
  EXPECT_EQ(found.inputs[3].change, "added");
  EXPECT_LT(found.inputs[3].at, found.inputs[1].at);
}

// Among other changes its slice's line is all that tells of it.
TEST(IstiodLog, AnEmptySliceOfAHostThatNoLineHasNamedIsOfANewService) {
  const std::string begins =
      "00.000000 info\tinitializing mesh configuration\n"
      "00.500000 info\tads\tAll caches have been synced up in 1s, marking server ready\n";
  const std::string among = "DestinationRule/shop/x and 2 more configs";
  const Evidence found =
      Read(begins + None("01.099000", "web") + BurstOf("01", 4, among, 5) + None("02.099000", "web") +
           BurstOf("02", 4, among, 5) + None("03.099000", "web") + BurstOf("03", 4, among, 4));
  ASSERT_THAT(Kinds(found),
              ElementsAre("endpoints", "service", "config", "endpoints", "config", "endpoints", "config", "service"));
  std::vector<std::string> changes;
  for (const InferredInput& input : found.inputs) {
    if (input.kind == InputKind::kService) changes.push_back(input.change);
  }
  EXPECT_THAT(changes, ElementsAre("added", "removed")) << "the second time it was scaled to none";
  // A burst of as many events as lines told has no more in it.
  EXPECT_THAT(Kinds(Read(begins + None("01.099000", "web") + BurstOf("01", 1, among, 5))),
              ElementsAre("endpoints", "config"));
}

constexpr std::string_view kAdding =
    "01.000000 info\tprocessing secret event for secret istio-system/remote-west\n"
    "01.000100 info\tAdding cluster\tcluster=west secret=istio-system/remote-west\n"
    "01.000500 info\tkube\tInitializing Kubernetes service registry \"west\"\n"
    "01.000600 info\tfinished callback for cluster and starting to sync\tcluster=west secret=istio-system/remote-west\n"
    "01.000700 info\tNumber of remote clusters: 1\n"
    "01.300000 info\tkube\tkube controller for west synced after 299.4ms\n"
    "01.300100 info\tads\tFull push, new service shop/web.shop.svc.cluster.local\n"
    "01.300200 info\tads\tIncremental push, service api.shop.svc.cluster.local at shard Kubernetes/west has no "
    "endpoints\n"
    "01.300300 info\tmodel\treloading network gateways\n"
    "01.300400 info\tmodel\tgateways changed, triggering push\n"
    "01.401000 info\tads\tPush debounce stable[2] 18 for reason secret and 17 more reasons: 100.5ms since last change, "
    "401ms "
    "since last push, full=true\n";

TEST(IstiodLog, WhatASyncedClusterHadIsNoInputOfItsOwn) {
  const Evidence found = Read(std::string(kAdding));
  ASSERT_THAT(Kinds(found), ElementsAre("remoteSecret"));
  EXPECT_EQ(found.inputs[0].name, "remote-west");
  EXPECT_THAT(found.inputs[0].clusters, ElementsAre(Pair("west", "added")));
}

TEST(IstiodLog, AfterItsSyncAClusterChangesByItself) {
  const Evidence found =
      Read(std::string(kAdding) +
           "05.000000 info\tads\tIncremental push, service api.shop.svc.cluster.local at shard "
           "Kubernetes/west has no endpoints\n"
           "05.100200 info\tads\tPush debounce stable[3] 1 for config "
           "ServiceEntry/shop/api.shop.svc.cluster.local: 100ms since last change, 100ms since last push, "
           "full=false\n");
  EXPECT_THAT(Kinds(found), ElementsAre("remoteSecret", "endpoints"));
}

TEST(IstiodLog, AClusterThatNeverSaysItHasSyncedChangesByItselfWhenItsTimeIsOver) {
  const auto after = [](const std::string& seconds, const std::string& complaint) {
    return Kinds(Read(
        "01.000000 info\tprocessing secret event for secret istio-system/remote-west\n"
        "01.000100 info\tAdding cluster\tcluster=west secret=istio-system/remote-west\n" +
        complaint + seconds +
        ".100000 info\tads\tPush debounce stable[2] 1 for config ServiceEntry/shop/web.shop.svc.cluster.local: 100ms "
        "since last change, 100ms since last push, full=false\n"));
  };
  EXPECT_THAT(after("20", ""), ElementsAre("remoteSecret"));
  EXPECT_THAT(after("40", ""), ElementsAre("remoteSecret", "endpoints"));
  EXPECT_THAT(after("40", "31.000100 error\tkube\tkube controller for west initial sync timed out\n"),
              ElementsAre("remoteSecret", "clusterUnreachable"));
}

TEST(IstiodLog, ASecretThatFailsComesAgainByItself) {
  // Its retries after 5 ms and 10 ms are no inputs; what comes between two retries is one.
  const auto failing = [](const std::string& at, int retry) {
    return at + " info\tprocessing secret event for secret istio-system/s\n" + at +
           " info\tAdding cluster\tcluster=west secret=istio-system/s\n" + at +
           " error\tAdding cluster: create remote cluster failed: kubeconfig cannot be loaded\tcluster=west "
           "secret=istio-system/s\n" +
           at + " error\tcontrollers\terror handling istio-system/s, retrying (retry count: " + std::to_string(retry) +
           "): error adding secret\tcontroller=multicluster secret\n";
  };
  std::string log;
  log += failing("01.000000", 1) + failing("01.005100", 2) + failing("01.015200", 3) + failing("01.035300", 4) +
         failing("01.075400", 5) + failing("01.155500", 6) + failing("01.315600", 7);
  log +=
      "01.400000 info\tprocessing secret event for secret istio-system/s\n"
      "01.400100 info\tskipping update (kubeconfig are identical)\tcluster=west secret=istio-system/s\n";
  log += "01.635700 info\tprocessing secret event for secret istio-system/s\n";
  const Evidence found = Read(log);
  ASSERT_THAT(Kinds(found), ElementsAre("remoteSecret", "remoteSecret"));
  EXPECT_EQ(found.inputs[0].change, "failed");
  EXPECT_EQ(found.inputs[1].change, "unchanged");
  EXPECT_DOUBLE_EQ(SecondsOf(found.inputs[1].at), 1.4);
}

TEST(IstiodLog, ARetryOfABusyIstiodComesLate) {
  const Evidence found = Read(
      "01.000000 info\tprocessing secret event for secret istio-system/s\n"
      "01.000100 info\tUpdating cluster\tcluster=west secret=istio-system/s\n"
      "01.000200 error\tcontrollers\terror handling istio-system/s, retrying (retry count: 1): error adding "
      "secret\tcontroller=multicluster secret\n"
      "01.016200 info\tprocessing secret event for secret istio-system/s\n");
  EXPECT_THAT(Kinds(found), ElementsAre("remoteSecret"));
}

TEST(IstiodLog, GatewaysAndNodesAreToldByTheReasons) {
  const Evidence found = Read(
      "01.000000 info\tmodel\treloading network gateways\n"
      "01.000100 info\tmodel\tgateways changed, triggering push\n"
      "01.100500 info\tads\tPush debounce stable[2] 2 for reason networks and service: 100ms since last change, "
      "100.1ms since "
      "last push, full=true\n"
      "02.000000 info\tmodel\treloading network gateways\n"
      "02.000100 info\tmodel\tgateways changed, triggering push\n"
      "02.100500 info\tads\tPush debounce stable[3] 3 for reason networks and 2 more reasons: 100ms since last change, "
      "100.1ms "
      "since last push, full=true\n"
      "03.000000 info\tmodel\treloading network gateways\n"
      "03.000100 info\tmodel\tgateways changed, triggering push\n"
      "03.100500 info\tads\tPush debounce stable[4] 1 for reason networks: 100ms since last change, 100.1ms since last "
      "push, "
      "full=true\n");
  EXPECT_THAT(Kinds(found), ElementsAre("node", "gateway", "gatewayDns"));
}

// istiod since 1.20 (pilot/pkg/xds/discovery.go, reasonsUpdated) counts events by reason, each reason once.
TEST(IstiodLog, ReasonsWithTheirCountsTellTheSame) {
  const auto of = [](const std::string& what) {
    const Evidence found = Read(
        "01.000000 info\tmodel\treloading network gateways\n"
        "01.100000 info\tads\tPush debounce stable[2] " +
        what + ": 100ms since last change, 100ms since last push, full=true\n");
    std::vector<std::string> out = Kinds(found);
    for (const Claim& claim : found.claims) {
      if (claim.kind == ClaimKind::kPush) out.push_back(claim.reason);
    }
    return out;
  };
  EXPECT_THAT(of("1 for reason networks:1"), ElementsAre("gatewayDns", "networks"));
  EXPECT_THAT(of("2 for reason service:1 and networks:1"), ElementsAre("node", "networks and service"));
  EXPECT_THAT(of("3 for reason networks:2 and service:1"), ElementsAre("gateway", "networks and service"));
  EXPECT_THAT(of("9 for reason networks:2 and 3(7) more reasons"), ElementsAre("gateway", "networks"));
}

TEST(IstiodLog, PushesOfLaterReleasesAreRead) {
  const Evidence found = Read(
      "01.100200 info\tads\tPush debounce stable[2] 1 for config DestinationRule/shop/web: 100.2ms since last change, "
      "100.3ms since last push, full=true\n"
      "01.100400 info\tads\tXDS: Pushing Services:4 ConnectedEndpoints:2 Version:2024-05-06T07:08:01Z/2\n"
      "02.100200 info\tads\tPush debounce stable[3] 1 for config ServiceEntry/shop/web.shop.svc.cluster.local: 100.1ms "
      "since last change, 100.1ms since last push, full=false\n"
      "02.100400 info\tads\tXDS: Incremental Pushing ConnectedEndpoints:3 Version:2024-05-06T07:08:01Z/2\n"
      "03.000000 info\tdelta\tADS: new delta connection for node:web-1.shop-4\n");
  ASSERT_THAT(Kinds(found), ElementsAre("config", "endpoints", "proxyConnected"));
  ASSERT_THAT(found.claims, SizeIs(2));
  EXPECT_EQ(found.claims[0].services, 4);
  EXPECT_EQ(found.claims[0].connected, 2);
  EXPECT_EQ(found.claims[0].version, "2024-05-06T07:08:01Z/2");
  EXPECT_EQ(found.claims[1].connected, 3);
}

// istiod 1.30: pkg/kube/multicluster/secretcontroller.go
TEST(IstiodLog, RemoteSecretsOfLaterReleasesAreRead) {
  const std::string key = "istio-system/remote-west";
  const Evidence found = Read(
      "01.000000 info\tprocessing remote config event for " + key +
      "\n01.000100 info\tAdd cluster\tcluster=west config=" + key + "\n01.000200 info\tNumber of remote clusters: 1\n" +
      "01.090100 info\tmodel\tFull push, new service shop/web.shop.svc.cluster.local\n"
      "01.090300 info\tmodel\treloading network gateways\n" +
      BurstOf("01", 4, "ServiceEntry/shop/web.shop.svc.cluster.local and 2 more configs", 3) +
      "05.000000 info\tprocessing remote config event for " + key +
      "\n05.000100 info\tUpdate cluster\tcluster=west config=" + key +
      "\n05.000200 error\tUpdate cluster: create remote cluster failed: no kubeconfig\tcluster=west config=" + key +
      "\n" + "09.000000 info\tprocessing remote config event for " + key +
      "\n09.000100 info\tDeleting cluster_id=west configured by secret=" + key + "\n");
  ASSERT_THAT(Kinds(found), ElementsAre("remoteSecret", "remoteSecret", "remoteSecret"));
  EXPECT_THAT(found.inputs[0].clusters, ElementsAre(Pair("west", "added")));
  EXPECT_THAT(found.inputs[1].clusters, ElementsAre(Pair("west", "failed")));
  EXPECT_THAT(found.inputs[2].clusters, ElementsAre(Pair("west", "removed")));
}

// Their pushes for networks name the configuration that came with them.
TEST(IstiodLog, GatewaysOfLaterReleasesAreOneServiceAndTheirLabelIsOneNetwork) {
  const std::string reload = ".080000 info\tmodel\treloading network gateways\n";
  const std::string changed = ".080050 info\tmodel\tgateways changed, triggering push\n";
  const std::string gateway = "ServiceEntry/istio-system/eastwest.istio-system.svc.cluster.local";
  const std::string all = "ServiceEntry/default/kubernetes.default.svc.cluster.local and 1 more configs";
  EXPECT_THAT(Kinds(Read("01" + reload + "01" + changed + BurstOf("01", 3, gateway, 4))), ElementsAre("gateway"));
  // All slices are read again, those without addresses with a line; then gateways are looked at.
  EXPECT_THAT(Kinds(Read(None("01.079900", "web") + "01" + reload + BurstOf("01", 2, all, 4))), ElementsAre("network"));
  EXPECT_THAT(Kinds(Read("01" + reload + "01" + changed + BurstOf("01", 3, all, 4))), ElementsAre("network"));
  EXPECT_THAT(Kinds(Read("01" + reload + BurstOf("01", 4, "DestinationRule/shop/x and 3 more configs", 4))),
              ElementsAre("network", "config"));
  // Two slices without addresses are read again with all others, whatever else comes.
  EXPECT_THAT(Kinds(Read(None("01.079900", "web") + None("01.079950", "api") + "01" + reload + "01" + changed +
                         BurstOf("01", 9, "ServiceEntry/shop/x.shop.svc.cluster.local and 6 more configs", 4))),
              ElementsAre("network"));
}

TEST(IstiodLog, AKeyOfDnsNamesIsItsServices) {
  const std::string name = "DNSName/shop/web.shop.svc.cluster.local and 1 more configs";
  EXPECT_THAT(
      Kinds(Read(BurstOf("01", 1, "DestinationRule/shop/x", 4) + None("02.099000", "web") + BurstOf("02", 3, name, 5))),
      ElementsAre("config", "endpoints", "service"));
}

// A pod stands behind several Services, of which one is headless; as fast as a label's, and yet none.
TEST(IstiodLog, SlicesThatChangeTogetherAreNoNetworkLabel) {
  EXPECT_THAT(Kinds(Read("01.100500 info\tads\tPush debounce stable[2] 4 for config "
                         "ServiceEntry/shop/web.shop.svc.cluster.local and 2 more configs: 100.44ms since last change, "
                         "100.47ms since last push, full=true\n")),
              ElementsAre("endpoints"));
}

TEST(IstiodLog, AServiceEntryOfLaterReleasesIsOneThoughItIsThreeEvents) {
  const Evidence found = Read(
      "01.099000 info\tmodel\tFull push, new service shop/ext.example.com\n"
      "01.200000 info\tads\tPush debounce stable[2] 3 for config ServiceEntry/shop/ext.example.com: 100ms since last "
      "change, 101ms since last push, full=true\n");
  ASSERT_THAT(Kinds(found), ElementsAre("service"));
  EXPECT_EQ(found.inputs[0].object_kind, "ServiceEntry");
}

TEST(IstiodLog, EventsThatNoLineDatesLieEvenlyInTheirBurst) {
  const Evidence found = Read(
      "01.500000 info\tads\tPush debounce stable[2] 5 for config ServiceEntry/shop/web.shop.svc.cluster.local: 100ms "
      "since last change, 300ms since last push, full=false\n");
  ASSERT_THAT(found.inputs, SizeIs(5));
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(SecondsOf(found.inputs[i].at), 1.2 + 0.05 * static_cast<double>(i), 1e-6);
}

// What istiod keys pushes by for ztunnels are addresses and names of its own, which nobody writes.
// istiod 1.9: pilot/pkg/xds/discovery.go and eds.go name neither what a push is for nor the shard.
TEST(IstiodLog, PushesOfEarlierReleasesAreReadAsFarAsTheyTell) {
  const Evidence found = Read(
      "01.000000 info\tads\tIncremental push, service web.shop.svc.cluster.local has no endpoints\n"
      "01.100000 info\tads\tPush debounce stable[2] 1: 100ms since last change, 100ms since last push, full=false\n"
      "05.100000 info\tads\tPush debounce stable[3] 1: 100ms since last change, 100ms since last push, full=true\n");
  EXPECT_TRUE(found.refusals.empty());
  ASSERT_THAT(Kinds(found), ElementsAre("endpoints"));
  EXPECT_EQ(found.inputs[0].host, "web.shop.svc.cluster.local");
  EXPECT_EQ(found.inputs[0].change, "toZero");
  ASSERT_THAT(found.claims, SizeIs(2));
  EXPECT_EQ(found.claims[1].more, 1) << "a change that no line names";
}

// As `kubectl logs --tail` cuts it, or a rotation.
TEST(IstiodLog, ALogThatBeginsWhileIstiodStartsTellsWhatWasThere) {
  const std::string lines =
      "01.000000 info\tprocessing secret event for secret istio-system/remote-west\n"
      "01.000100 info\tAdding cluster\tcluster=west secret=istio-system/remote-west\n"
      "01.000200 info\tNumber of remote clusters: 1\n";
  EXPECT_THAT(Kinds(Read(lines)), ElementsAre("remoteSecret"));
  Evidence found = Read(lines + "02.000000 info\tads\tAll caches have been synced up in 1.2s, marking server ready\n");
  MarkWhatWasThere(found);
  EXPECT_THAT(Kinds(found), IsEmpty());
  EXPECT_THAT(found.inputs, SizeIs(1));
}

// A collector may have lost the line that says that it is ready.
TEST(IstiodLog, AnIstiodThatProxiesConnectWithIsReady) {
  const Evidence found = Read(
      "01.000000 info\tinitializing mesh configuration ./etc/istio/config/mesh\n"
      "02.000000 info\tads\tADS: new connection for node:web-1.shop-1\n"
      "05.100000 info\tads\tPush debounce stable[3] 1 for config Sidecar/shop/x: 100ms since last change, 100ms since "
      "last push, full=true\n");
  EXPECT_THAT(Kinds(found), ElementsAre("proxyConnected", "config"));
}

TEST(IstiodLog, AddressesOfAnAmbientMeshAreNoConfiguration) {
  const Evidence found = Read(
      "01.100200 info\tads\tPush debounce stable[2] 2 for config Address//network1/10.1.0.7 and 1 more configs: "
      "100.2ms "
      "since last change, 100.3ms since last push, full=false\n");
  EXPECT_THAT(Kinds(found), IsEmpty());
  EXPECT_THAT(found.claims, SizeIs(1));
}

TEST(IstiodLog, OneConfigMapPrintsBothOfItsHalves) {
  const Evidence found = Read(
      "01.000000 info\tmesh configuration: {\n    \"trustDomain\": \"a\"\n}\n"
      "02.000000 info\tmesh networks configuration updated to: {\n    \"networks\": {}\n}\n"
      "02.000100 info\tmesh configuration updated to: {\n    \"trustDomain\": \"a\"\n}\n"
      "03.000000 info\tmesh configuration updated to: {\n    \"trustDomain\": \"b\"\n}\n"
      "04.000000 warn\tfailed to read mesh config from ConfigMap: failed reading MeshNetworks config: 1 error "
      "occurred:\n"
      "\t* bad\n");
  ASSERT_THAT(Kinds(found), ElementsAre("meshNetworks", "meshConfig", "meshNetworks"));
  EXPECT_EQ(found.inputs[0].detail, "{\n    \"networks\": {}\n}");
  EXPECT_EQ(found.inputs[2].change, "refused");
  EXPECT_TRUE(found.refusals.empty());
}

TEST(IstiodLog, ProxiesComeGoAndAreRefused) {
  const Evidence found = Read(
      "01.000000 info\tads\tADS: new connection for node:web-1.2.shop-17\n"
      "02.000000 warn\tads\tADS: \"10.0.0.1:4711\" exceeded rate limit: rate: Wait(n=1) would exceed context deadline\n"
      "03.000000 info\tads\tADS: \"10.0.0.1:4710\" web-1.2.shop-17 terminated\n"
      "04.000000 warn\tads\tADS:LDS: ACK ERROR web.shop-18 Internal:Error adding/updating listener(s) 0.0.0.0_80\n");
  ASSERT_THAT(Kinds(found), ElementsAre("proxyConnected", "proxyRefused", "proxyDisconnected"));
  EXPECT_EQ(found.inputs[0].name, "web-1.2");
  EXPECT_EQ(found.inputs[0].ns, "shop");
  EXPECT_EQ(found.inputs[2].name, "web-1.2");
  ASSERT_THAT(found.claims, SizeIs(1));
  EXPECT_EQ(found.claims[0].name, "web.shop");
  EXPECT_EQ(found.claims[0].detail, "Internal:Error adding/updating listener(s) 0.0.0.0_80");
}

TEST(IstiodLog, WhatWasThereAtTheStartIsNoChange) {
  const Evidence found = Read(
      "01.000000 info\tinitializing mesh configuration\n"
      "01.000100 info\tversion: 1.18.2-abc-Clean\n"
      "01.000200 info\tflags: {\n   \"PodName\": \"istiod-1\"\n}\n"
      "01.000300 info\tStarting Istiod Server with primary cluster east\n" +
      std::string(kAdding) + "02.000000 info\tads\tAll caches have been synced up in 1s, marking server ready\n");
  EXPECT_THAT(Kinds(found), IsEmpty());
  ASSERT_THAT(found.runs, SizeIs(1));
  EXPECT_EQ(found.runs[0].version, "1.18.2-abc-Clean");
  EXPECT_EQ(found.runs[0].cluster, "east");
  EXPECT_EQ(found.runs[0].pod, "istiod-1");
}

TEST(IstiodLog, ManyServicesAtOnceAreOneNetworkLabel) {
  const Evidence found = Read(
      "01.100500 info\tads\tPush debounce stable[2] 5 for config ServiceEntry/shop/web.shop.svc.cluster.local and 4 "
      "more "
      "configs: 100.44ms since last change, 100.47ms since last push, full=false\n"
      "02.100500 info\tads\tPush debounce stable[3] 5 for config ServiceEntry/shop/web.shop.svc.cluster.local and 4 "
      "more "
      "configs: 100ms since last change, 130ms since last push, full=false\n");
  EXPECT_THAT(Kinds(found), ElementsAre("network", "endpoints"));
}

}  // namespace
}  // namespace wavetank::importing
