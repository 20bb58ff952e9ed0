// Clients that are more than a rate: loops, ramps, streams, retries of their own, and applications that call others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"
#include "sim/world.h"

namespace wavetank::scenario {
namespace {

constexpr const char* kTwoHelloworlds = R"(name: n
extends: scenarios/multi-primary-one-network/scenario.yaml
)";
constexpr const char* kTwoNetworks = R"(name: n
extends: scenarios/multi-primary-multi-network/scenario.yaml
)";

absl::StatusOr<RunResult> RunClients(const std::string& flow, const std::string& steps,
                                     const char* mesh = kTwoHelloworlds) {
  const std::string text = std::string(mesh) +
                           "flows:\n  - {name: f, from: {cluster: cluster1, namespace: sample, app: sleep}, "
                           "to: 'helloworld.sample:5000', " +
                           flow + "}\nsteps:\n" + steps;
  // Beside the repository's own scenarios, whose paths count from there.
  absl::StatusOr<Scenario> scenario = ParseScenario(WAVETANK_SOURCE_DIR "/clients.yaml", text);
  if (!scenario.ok()) return scenario.status();
  for (ClusterSpec& cluster : scenario->clusters) {
    for (ManifestSpec& manifest : cluster.manifests) manifest.path = WAVETANK_SOURCE_DIR "/" + manifest.path;
  }
  return Run(*scenario, {});
}

// A pod of IPv4 has no way to IPv6 addresses: connect(2) says so at once, and another of the name's is taken if there
// is one.
TEST(Clients, DialNoAddressOfAFamilyThatTheirPodIsNotIn) {
  const std::string mesh = std::string(kTwoHelloworlds) +
                           "flows: [{name: f, from: {cluster: cluster1, namespace: sample, app: sleep}, to: "
                           "'ext.example:80', rate: 10/s}]\n"
                           "steps: [{name: s, do: [{dns: {name: ext.example, addresses: ['fd00::1']}}], then: [{flow: "
                           "f, requests: 3}]}]\n";
  absl::StatusOr<Scenario> scenario = ParseScenario(WAVETANK_SOURCE_DIR "/family.yaml", mesh);
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  for (ClusterSpec& cluster : scenario->clusters) {
    for (ManifestSpec& manifest : cluster.manifests) manifest.path = WAVETANK_SOURCE_DIR "/" + manifest.path;
  }
  const absl::StatusOr<RunResult> result = scenario::Run(*scenario, {});
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->steps[0].traffic[0].failures.size(), 1u);
  EXPECT_THAT(result->steps[0].traffic[0].failures[0].cause, testing::HasSubstr("of an IP family alone"));
}

TEST(Clients, OfAClosedLoopSendAsFastAsTheyAreAnswered) {
  // Each of two users takes 100 ms for a request and 400 ms to think: four requests a second.
  const auto result =
      RunClients("closedLoop: {users: 2, think: 400ms}",
                 "  - {name: s, do: [{behaviour: {app: helloworld, latency: {p50: 100ms, max: 100ms}}}], "
                 "settle: 0s, meanwhile: [{flow: f}], linger: 20s}\n");
  ASSERT_TRUE(result.ok()) << result.status();
  const TrafficResult& t = result->steps[0].traffic[0];
  EXPECT_GE(t.sent, 78);
  EXPECT_LE(t.sent, 110);  // some are answered in less than 100 ms
  EXPECT_EQ(t.failed, 0);
}

// A rule's timeout begins when the whole request was read. Envoy: source/common/router/router.cc, onRequestComplete
TEST(Clients, SendBodiesOverTimeForWhichNoRoutesTimeoutCounts) {
  const std::string rule =
      "{apply: {cluster: cluster1, objects: [{apiVersion: networking.istio.io/v1beta1, kind: VirtualService, metadata: "
      "{name: h, namespace: sample}, spec: {hosts: [helloworld], http: [{timeout: 200ms, route: [{destination: {host: "
      "helloworld}}]}]}}]}}";
  const auto result = RunClients("rate: 20/s, body: {bytes: 1000, over: 500ms, pieces: 5}",
                                 "  - {name: at once, do: [" + rule +
                                     "], then: [{flow: f, requests: 20}]}\n"
                                     "  - {name: slow, do: [{behaviour: {app: helloworld, latency: {p50: 100s, max: "
                                     "100s}}}], then: [{flow: f, requests: 20}]}\n");
  ASSERT_TRUE(result.ok()) << result.status();
  const TrafficResult& well = result->steps[0].traffic[0];
  EXPECT_EQ(well.failed, 0);
  EXPECT_GE(well.p50, 500ms);
  EXPECT_LT(well.p50, 550ms);
  const TrafficResult& slow = result->steps[1].traffic[0];
  EXPECT_EQ(slow.by_code.at(504), 20);
  EXPECT_GE(slow.p50, 700ms);
}

// Of an answer, the timeout of its rule is over with its last byte. Envoy: source/common/router/router.cc,
// onResponseTimeout, onUpstreamAbort
TEST(Clients, GetAnswersThatComeOverTimeAndBreakOffWhenTheRulesTimeIsOver) {
  const std::string rule =
      "{apply: {cluster: cluster1, objects: [{apiVersion: networking.istio.io/v1beta1, kind: VirtualService, metadata: "
      "{name: h, namespace: sample}, spec: {hosts: [helloworld], http: [{timeout: 400ms, route: [{destination: {host: "
      "helloworld}}]}]}}]}}";
  const auto result = RunClients("rate: 20/s",
                                 "  - {name: slow, do: [{behaviour: {app: helloworld, body: {over: 300ms}}}], then: "
                                 "[{flow: f, requests: 20}]}\n"
                                 "  - {name: within, do: [" +
                                     rule +
                                     "], then: [{flow: f, requests: 20}]}\n"
                                     "  - {name: too slow, do: [{behaviour: {app: helloworld, body: {over: 500ms}}}], "
                                     "then: [{flow: f, requests: 20}]}\n");
  ASSERT_TRUE(result.ok()) << result.status();
  for (size_t step : {0, 1}) {
    const TrafficResult& well = result->steps[step].traffic[0];
    EXPECT_EQ(well.failed, 0);
    EXPECT_GE(well.p50, 300ms);
    EXPECT_LT(well.p50, 350ms);
  }
  const TrafficResult& broken = result->steps[2].traffic[0];
  EXPECT_EQ(broken.failed, 20);
  EXPECT_EQ(broken.by_flags.at("UT"), 20);
  EXPECT_LT(broken.max, 450ms);
}

TEST(Clients, OfARampChangeTheirRateEvenly) {
  const auto result =
      RunClients("rate: 10/s, ramp: {to: 90/s, over: 10s}",
                 "  - {name: s, do: [{behaviour: {app: helloworld}}], settle: 0s, meanwhile: [{flow: f}], "
                 "linger: 10s}\n");
  ASSERT_TRUE(result.ok()) << result.status();
  // 500 in ten seconds; what comes before and after them is at the last rate.
  const TrafficResult& t = result->steps[0].traffic[0];
  const double more = std::chrono::duration<double>(t.end - t.start).count() - 10;
  EXPECT_NEAR(static_cast<double>(t.sent), 500 + more * 90, 60);
}

TEST(Clients, ThatArriveByChanceKeepTheirRate) {
  const auto result =
      RunClients("rate: 100/s, arrivals: poisson", "  - {name: s, then: [{flow: f, requests: 2000}]}\n");
  ASSERT_TRUE(result.ok()) << result.status();
  const TrafficResult& t = result->steps[0].traffic[0];
  EXPECT_EQ(t.sent, 2000);
  // The sum of 2,000 waits has a standard deviation of 0.45 s.
  EXPECT_NEAR(std::chrono::duration<double>(t.end - t.start).count(), 20, 2);
}

// A gateway sees connections, not requests: of those that come evenly, and end before the next, one connection is
// enough.
TEST(Clients, ThatArriveByChanceSpreadOverThePodsBehindAGateway) {
  const auto pods_behind_the_gateway = [](const std::string& arrivals) {
    const auto result = RunClients("connections: keep-alive, rate: 60/s, arrivals: " + arrivals,
                                   "  - {name: s, do: [{scale: {cluster: cluster2, deployment: sample/helloworld-v2, "
                                   "replicas: 3}}], then: [{flow: f, requests: 1000}]}\n",
                                   kTwoNetworks);
    EXPECT_TRUE(result.ok()) << result.status();
    size_t pods = 0;
    for (const auto& [pod, requests] : result->steps[0].traffic[0].by_pod)
      pods += pod.find("helloworld-v2") != std::string::npos ? 1 : 0;
    return pods;
  };
  EXPECT_EQ(pods_behind_the_gateway("even"), 1u);
  EXPECT_EQ(pods_behind_the_gateway("poisson"), 3u);
}

TEST(Clients, OfTcpWithKeptConnectionsStayWithTheirPod) {
  const auto result = RunClients("protocol: tcp, connections: keep-alive, rate: 20/s",
                                 "  - {name: s, then: [{flow: f, requests: 60}]}\n");
  ASSERT_TRUE(result.ok()) << result.status();
  const TrafficResult& t = result->steps[0].traffic[0];
  EXPECT_EQ(t.sent, 60);
  EXPECT_EQ(t.failed, 0);
  EXPECT_EQ(t.by_pod.size(), 1u);
}

TEST(Clients, TryAgainByThemselvesWhatTheirProxyGaveUp) {
  const auto result =
      RunClients("rate: 50/s, retries: {attempts: 3, backOff: 5ms, on: [418]}",
                 "  - {name: s, do: [{behaviour: {app: helloworld, answers: [{code: 418}]}}], then: "
                 "[{flow: f, requests: 50}], expect: [{requests: {failed: 100%, clientAttempts: 150}}]}\n");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->steps[0].expectations[0].held) << result->steps[0].expectations[0].explanation;
}

TEST(Clients, GiveUpAfterTheirOwnPatience) {
  const auto result =
      RunClients("rate: 50/s, timeout: 200ms",
                 "  - {name: s, do: [{behaviour: {app: helloworld, latency: {p50: 5s, max: 6s}}}], then: "
                 "[{flow: f, requests: 20}]}\n");
  ASSERT_TRUE(result.ok()) << result.status();
  const TrafficResult& t = result->steps[0].traffic[0];
  EXPECT_GE(t.failed, 18);
  EXPECT_LE(t.p99, 210ms);
}

// A client that dies answers to nobody: what it was waiting for ends then and there, not when a step loses patience.
TEST(Clients, ThatDieEndTheirRequestsAtOnceAndStreamsOutliveThem) {
  for (const char* flow : {"rate: 20/s", "protocol: tcp, connections: keep-alive, closedLoop: {users: 3, think: 50ms}",
                           "connections: keep-alive, closedLoop: {users: 3, think: 50ms}"}) {
    const auto result = RunClients(
        flow,
        "  - {name: slow, do: [{behaviour: {app: helloworld, latency: {p50: 3s, max: 3s}}}]}\n"
        "  - {name: die, do: [{kill: {cluster: cluster1, namespace: sample, app: sleep}}], settle: 20s, meanwhile: "
        "[{flow: f}], linger: 5s}\n");
    ASSERT_TRUE(result.ok()) << result.status();
    int64_t gone = 0;
    for (const TrafficResult::Failure& failure : result->steps[1].traffic[0].failures) {
      EXPECT_THAT(failure.cause, testing::Not(testing::HasSubstr("no answer yet"))) << flow;
      if (failure.cause.find("the client's pod was gone") != std::string::npos) gone += failure.count;
    }
    EXPECT_GT(gone, 0) << flow;
  }
}

TEST(Clients, TriesThatFarProxiesAnsweredSayWhyAsRequestsDo) {
  std::string wrong;
  for (const char* cluster : {"cluster1", "cluster2"}) {
    wrong += std::string("{apply: {cluster: ") + cluster +
             ", objects: [{apiVersion: v1, kind: Service, metadata: {name: helloworld, namespace: sample}, spec: "
             "{selector: {app: helloworld}, ports: [{name: http, port: 5000, targetPort: 5999}]}}]}}, ";
  }
  const auto result = RunClients("rate: 50/s", "  - {name: s, do: [" + wrong + "], then: [{flow: f, requests: 50}]}\n");
  ASSERT_TRUE(result.ok()) << result.status();
  const TrafficResult& t = result->steps[0].traffic[0];
  EXPECT_EQ(t.failed, 50);
  ASSERT_FALSE(t.failures.empty());
  bool tries = false;
  for (const TrafficResult::Failure& failure : t.failures) {
    EXPECT_THAT(failure.cause, testing::HasSubstr("connection refused: nothing listens there")) << failure.flags;
    tries = tries || failure.retried;
  }
  EXPECT_TRUE(tries);
}

TEST(Clients, ACircleOfCallsEndsWithAnError) {
  const auto result =
      RunClients("rate: 5/s",
                 "  - {name: s, do: [{behaviour: {app: helloworld, calls: [{to: 'helloworld.sample:5000'}]}}], then: "
                 "[{flow: f, requests: 10}], expect: [{requests: {flow: f, failed: 100%}}, "
                 "{requests: {call: 'helloworld.sample:5000', sent: 160}}]}\n");
  ASSERT_TRUE(result.ok()) << result.status();
  for (const auto& each : result->steps[0].expectations) EXPECT_TRUE(each.held) << each.explanation;
}

}  // namespace
}  // namespace wavetank::scenario
