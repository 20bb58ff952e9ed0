// Flows whose clients speak WebSocket, and applications that send trailers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"

namespace wavetank::scenario {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

std::string ReplicasOf(const std::string& app, int replicas) {
  return fmt::format(
      "          - {{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {0}, namespace: sample}}, "
      "spec: {{replicas: {1}, selector: {{matchLabels: {{app: {0}}}}}, template: {{metadata: {{labels: "
      "{{app: {0}}}}}, spec: {{containers: [{{name: {0}, image: {0}, ports: [{{containerPort: "
      "5000}}]}}]}}}}}}}}\n",
      app, replicas);
}

// sleep asks hello, of which there are two pods behind a port of that name. `more`: further objects.
absl::StatusOr<Scenario> SocketMesh(const std::string& flow, const std::string& step, const std::string& more = "",
                                    const std::string& port = "http") {
  return ParseScenario(
      "upgrades.yaml",
      "name: n\nmeshConfig: {accessLogFile: /dev/stdout, accessLogFormat: \"%RESPONSE_CODE% %RESPONSE_FLAGS% "
      "%TRAILER(X-SUM)%\\n\"}\nclusters:\n  - name: c1\n    manifests:\n      - objects:\n"
      "          - {apiVersion: v1, kind: Namespace, metadata: {name: sample, labels: {istio-injection: enabled}}}\n"
      "          - {apiVersion: v1, kind: Service, metadata: {name: hello, namespace: sample}, spec: {selector: {app: "
      "hello}, ports: [{name: " +
          port + ", port: 5000}]}}\n" + ReplicasOf("hello", 2) + ReplicasOf("sleep", 1) + more +
          "flows:\n  - {name: f, from: {cluster: c1, namespace: sample, app: sleep}, to: 'hello.sample:5000', rate: "
          "100/s, " +
          flow + "}\nsteps:\n  - " + step + "\n");
}

absl::StatusOr<TrafficResult> SendBySocket(const std::string& flow, const std::string& step,
                                           const std::string& more = "") {
  absl::StatusOr<Scenario> scenario = SocketMesh(flow, step, more);
  if (!scenario.ok()) return scenario.status();
  absl::StatusOr<RunResult> result = Run(*scenario, {});
  if (!result.ok()) return result.status();
  return result->steps.back().traffic.at(0);
}

TEST(WebSocket, AConnectionPerMessageIsBalancedByConnection) {
  const auto result = SendBySocket("protocol: websocket", "{name: s, then: [{flow: f, requests: 40}]}");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->failed, 0);
  EXPECT_THAT(result->by_pod, SizeIs(2));
}

TEST(WebSocket, AStreamStaysWithThePodThatAnsweredItsHandshake) {
  const auto result =
      SendBySocket("protocol: websocket, connections: keep-alive", "{name: s, then: [{flow: f, requests: 40}]}");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->failed, 0);
  EXPECT_THAT(result->by_pod, SizeIs(1));
}

TEST(WebSocket, AnApplicationThatDoesNotUpgradeIsAFailedHandshake) {
  const auto result =
      SendBySocket("protocol: websocket",
                   "{name: s, do: [{behaviour: {app: hello, namespace: sample, answers: [{code: 404, share: "
                   "100%}]}}], then: [{flow: f, requests: 10}]}");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->by_code, (std::map<int, int64_t>{{404, 10}}));
}

TEST(WebSocket, WhatAPolicyDeniesIsNoStream) {
  const auto result =
      SendBySocket("protocol: websocket", "{name: s, then: [{flow: f, requests: 10}]}",
                   "          - {apiVersion: security.istio.io/v1beta1, kind: AuthorizationPolicy, metadata: "
                   "{name: none, namespace: sample}, spec: {}}\n");
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
  const auto lines =
      LinesOfSleep(SocketMesh("protocol: websocket", "{name: s, then: [{flow: f, requests: 3}], linger: 1s}"));
  EXPECT_THAT(lines, testing::ElementsAre("101 DC -", "101 DC -", "101 DC -"));
}

TEST(WebSocket, HasNoPatienceOfHttp) {
  const auto result = SendBySocket("protocol: websocket, timeout: 1s", "{name: s, then: [{flow: f, requests: 1}]}");
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("is of HTTP"));
}

TEST(Trailers, OfApplicationsComeOverHttp2AndNotOverHttp1) {
  const std::string step =
      "{name: s, do: [{behaviour: {app: hello, namespace: sample, trailers: {x-sum: abc}}}], then: [{flow: f, "
      "requests: 2}]}";
  EXPECT_THAT(LinesOfSleep(SocketMesh("protocol: http2", step, "", "http2")),
              testing::ElementsAre("200 - abc", "200 - abc"));
  EXPECT_THAT(LinesOfSleep(SocketMesh("protocol: http2", step, "", "http")),
              testing::ElementsAre("200 - -", "200 - -"));
}

}  // namespace
}  // namespace wavetank::scenario
