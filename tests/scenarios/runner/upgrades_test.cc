// Flows whose clients speak WebSocket, and applications that send trailers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/scenarios/runner/hello_mesh.h"

namespace wavetank::scenario {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr const char* kHttp = "name: http, port: 5000";
constexpr const char* kLog =
    "meshConfig: {accessLogFile: /dev/stdout, accessLogFormat: \"%RESPONSE_CODE% %RESPONSE_FLAGS% "
    "%TRAILER(X-SUM)%\\n\"}\n";

TEST(WebSocket, AConnectionPerMessageIsBalancedByConnection) {
  const auto result = AskHello({.port = kHttp}, "protocol: websocket", "{name: s, then: [{flow: f, requests: 40}]}");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->failed, 0);
  EXPECT_THAT(result->by_pod, SizeIs(2));
}

TEST(WebSocket, AStreamStaysWithThePodThatAnsweredItsHandshake) {
  const auto result = AskHello({.port = kHttp}, "protocol: websocket, connections: keep-alive",
                               "{name: s, then: [{flow: f, requests: 40}]}");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->failed, 0);
  EXPECT_THAT(result->by_pod, SizeIs(1));
}

TEST(WebSocket, AnApplicationThatDoesNotUpgradeIsAFailedHandshake) {
  const auto result =
      AskHello({.port = kHttp}, "protocol: websocket",
               "{name: s, do: [{behaviour: {app: hello, namespace: sample, answers: [{code: 404, share: "
               "100%}]}}], then: [{flow: f, requests: 10}]}");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->by_code, (std::map<int, int64_t>{{404, 10}}));
}

TEST(WebSocket, WhatAPolicyDeniesIsNoStream) {
  const auto result = AskHello(
      {.port = kHttp,
       .objects = "          - {apiVersion: security.istio.io/v1beta1, kind: AuthorizationPolicy, metadata: {name: "
                  "none, namespace: sample}, spec: {}}\n"},
      "protocol: websocket", "{name: s, then: [{flow: f, requests: 10}]}");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->by_code, (std::map<int, int64_t>{{403, 10}}));
}

// The lines of sleep's proxy, without what stands before each.
std::vector<std::string> LinesOfSleep(const absl::StatusOr<Scenario>& scenario) {
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  if (!scenario.ok()) return {};
  const std::string path = testing::TempDir() + "/upgrades-test.txt";
  RunOptions options;
  options.access_log = path;
  const absl::StatusOr<RunResult> result = Run(*scenario, options);
  EXPECT_TRUE(result.ok()) << result.status();
  std::vector<std::string> out;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("c1/sample/sleep")) out.push_back(line.substr(line.find(' ') + 1));
  }
  return out;
}

TEST(WebSocket, AConnectionIsOneLineOfTheLogWhenItsClientHasLeft) {
  const auto lines = LinesOfSleep(HelloScenario({.port = kHttp, .settings = kLog}, "protocol: websocket",
                                                "{name: s, then: [{flow: f, requests: 3}], linger: 1s}"));
  EXPECT_THAT(lines, testing::ElementsAre("101 DC -", "101 DC -", "101 DC -"));
}

TEST(WebSocket, HasNoPatienceOfHttp) {
  const auto result =
      AskHello({.port = kHttp}, "protocol: websocket, timeout: 1s", "{name: s, then: [{flow: f, requests: 1}]}");
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("is of HTTP"));
}

TEST(Trailers, OfApplicationsComeOverHttp2AndNotOverHttp1) {
  const std::string step =
      "{name: s, do: [{behaviour: {app: hello, namespace: sample, trailers: {x-sum: abc}}}], then: [{flow: f, "
      "requests: 2}]}";
  EXPECT_THAT(
      LinesOfSleep(HelloScenario({.port = "name: http2, port: 5000", .settings = kLog}, "protocol: http2", step)),
      testing::ElementsAre("200 - abc", "200 - abc"));
  EXPECT_THAT(LinesOfSleep(HelloScenario({.port = kHttp, .settings = kLog}, "protocol: http2", step)),
              testing::ElementsAre("200 - -", "200 - -"));
}

// Sidecars that speak HTTP/2 to one another.
constexpr char kUpgradedToHttp2[] =
    "          - {apiVersion: networking.istio.io/v1beta1, kind: DestinationRule, metadata: {name: d, namespace: "
    "sample}, "
    "spec: {host: hello.sample.svc.cluster.local, trafficPolicy: {connectionPool: {http: {h2UpgradePolicy: "
    "UPGRADE}}}}}\n";
constexpr char kAllowConnect[] =
    "          - {apiVersion: networking.istio.io/v1alpha3, kind: EnvoyFilter, metadata: {name: c, namespace: sample}, "
    "spec: {configPatches: [{applyTo: NETWORK_FILTER, match: {context: SIDECAR_INBOUND, listener: {filterChain: "
    "{filter: "
    "{name: envoy.filters.network.http_connection_manager}}}}, patch: {operation: MERGE, value: {typed_config: "
    "{'@type': type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, "
    "http2_protocol_options: {allow_connect: true}}}}}]}}\n";

TEST(WebSocketOverHttp2, FailsAsIstioAllowsNoConnect) {
  const auto result = AskHello({.port = "name: http, port: 5000", .objects = kUpgradedToHttp2}, "protocol: websocket");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->failed, 40);
  EXPECT_EQ(result->by_code, (std::map<int, int64_t>{{503, 40}}));
}

TEST(WebSocketOverHttp2, GoesThroughWhereAnEnvoyFilterAllowsConnect) {
  const auto result =
      AskHello({.port = "name: http, port: 5000", .objects = std::string(kUpgradedToHttp2) + kAllowConnect},
               "protocol: websocket");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->failed, 0);
}

}  // namespace
}  // namespace wavetank::scenario
