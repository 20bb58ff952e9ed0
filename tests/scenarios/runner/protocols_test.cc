// What a flow's clients speak: HTTP/1.0, HTTP/1.1, HTTP/2, gRPC.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fmt/format.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"

namespace wavetank::scenario {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

// sleep asks hello, of which there are two pods behind port 5000.
struct Mesh {
  std::string port = "name: grpc, port: 5000";
  bool sidecars = true;
  std::string environment;  // of istiod, YAML: "{name: A, value: b}"; empty: the world's own istiod
};

std::string DeploymentText(const std::string& app, int replicas) {
  return fmt::format(
      "          - {{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {0}, namespace: sample}}, "
      "spec: {{replicas: {1}, selector: {{matchLabels: {{app: {0}}}}}, template: {{metadata: {{labels: "
      "{{app: {0}}}}}, spec: {{containers: [{{name: {0}, image: {0}, ports: [{{containerPort: "
      "5000}}]}}]}}}}}}}}\n",
      app, replicas);
}

std::string IstiodText(const std::string& environment) {
  if (environment.empty()) return "";
  return "          - {apiVersion: v1, kind: ServiceAccount, metadata: {name: istiod, namespace: istio-system}}\n"
         "          - {apiVersion: v1, kind: Service, metadata: {name: istiod, namespace: istio-system}, spec: "
         "{selector: "
         "{istio: pilot}, ports: [{name: grpc-xds, port: 15010}, {name: https-dns, port: 15012}, {name: https-webhook, "
         "port: 443, targetPort: 15017}]}}\n"
         "          - {apiVersion: apps/v1, kind: Deployment, metadata: {name: istiod, namespace: istio-system}, spec: "
         "{selector: {matchLabels: {istio: pilot}}, template: {metadata: {labels: {app: istiod, istio: pilot, "
         "istio.io/rev: default, sidecar.istio.io/inject: 'false'}}, spec: {serviceAccountName: istiod, containers: "
         "[{name: discovery, image: example/pilot:1.18.2, env: [" +
         environment + "]}]}}}}\n";
}

std::string MeshText(const Mesh& mesh) {
  return "name: n\nclusters:\n  - name: c1\n    manifests:\n      - objects:\n" + IstiodText(mesh.environment) +
         fmt::format(
             "          - {{apiVersion: v1, kind: Namespace, metadata: {{name: sample, labels: {{istio-injection: "
             "{}}}}}}}\n"
             "          - {{apiVersion: v1, kind: Service, metadata: {{name: hello, namespace: sample}}, spec: "
             "{{selector: "
             "{{app: hello}}, ports: [{{{}}}]}}}}\n",
             mesh.sidecars ? "enabled" : "disabled", mesh.port) +
         DeploymentText("hello", 2) + DeploymentText("sleep", 1);
}

// What became of one step's requests.
absl::StatusOr<TrafficResult> Send(const Mesh& mesh, const std::string& flow,
                                   const std::string& step = "{name: s, then: [{flow: f, requests: 40}]}") {
  absl::StatusOr<Scenario> scenario = ParseScenario(
      "protocols.yaml", MeshText(mesh) +
                            "flows:\n  - {name: f, from: {cluster: c1, namespace: sample, app: sleep}, to: "
                            "'hello.sample:5000', rate: 100/s, " +
                            flow + "}\nsteps:\n  - " + step + "\n");
  if (!scenario.ok()) return scenario.status();
  absl::StatusOr<RunResult> result = Run(*scenario, {});
  if (!result.ok()) return result.status();
  return result->steps.back().traffic.at(0);
}

TEST(Grpc, IsBalancedByRequestWithSidecarsAndByConnectionWithout) {
  const auto with = Send({}, "protocol: grpc, path: /hello.Greeter/SayHello");
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ(with->failed, 0);
  EXPECT_THAT(with->by_pod, SizeIs(2));
  const auto without = Send({.sidecars = false}, "protocol: grpc, path: /hello.Greeter/SayHello");
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(without->failed, 0);
  EXPECT_THAT(without->by_pod, SizeIs(1)) << "kube-proxy chooses for the connection, and it is kept";
}

TEST(Grpc, ReachesNobodyBehindAPortThatSaysHttp1) {
  const auto result = Send({.port = "name: http, port: 5000"}, "protocol: grpc");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->failed, 40);
  EXPECT_EQ(result->by_code, (std::map<int, int64_t>{{503, 40}}));
}

TEST(Grpc, GoesThroughAPortWhoseProtocolIsSniffed) {
  const auto result = Send({.port = "port: 5000"}, "protocol: grpc");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->failed, 0);
}

TEST(Grpc, ErrorsOfApplicationsAreStatusesThatCountAsHttps) {
  const auto result = Send({}, "protocol: grpc",
                           "{name: s, do: [{behaviour: {app: hello, namespace: sample, answers: [{code: 403, share: "
                           "100%}]}}], then: [{flow: f, requests: 20}]}");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->failed, 20);
  EXPECT_EQ(result->by_code, (std::map<int, int64_t>{{403, 20}}));
  ASSERT_THAT(result->failures, testing::Not(testing::IsEmpty()));
  EXPECT_THAT(result->failures[0].cause, HasSubstr("the application answered gRPC status 7, PermissionDenied"));
}

TEST(Http2, IsTranslatedForAPortThatSaysHttp1) {
  const auto result = Send({.port = "name: http, port: 5000"}, "protocol: http2");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->failed, 0);
  EXPECT_THAT(result->by_pod, SizeIs(2));
}

TEST(Http10, IsToldToUpgradeBySidecarsAndServedWithout) {
  const auto with = Send({.port = "name: http, port: 5000"}, "protocol: http1.0");
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ(with->by_code, (std::map<int, int64_t>{{426, 40}}));
  // The client's sidecar sees no HTTP that it knows, and passes it on; the server's says no.
  ASSERT_THAT(with->failures, SizeIs(1));
  EXPECT_THAT(with->failures[0].cause, HasSubstr("HTTP/1.0, which proxies do not take"));
  const auto without = Send({.port = "name: http, port: 5000", .sidecars = false}, "protocol: http1.0");
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(without->failed, 0);
}

TEST(Http10, IsServedIfIstiodIsToldTo) {
  const auto result = Send({.port = "name: http, port: 5000", .environment = "{name: PILOT_HTTP10, value: 'true'}"},
                           "protocol: http1.0");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->failed, 0);
}

TEST(Http10, PassesAsBytesWhereTheProtocolIsSniffed) {
  const auto result = Send({.port = "port: 5000"}, "protocol: http1.0");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->failed, 0);
}

TEST(Protocols, ThatCannotBeAreRefusedAtTheirPlace) {
  const auto why = [](const std::string& flow) { return std::string(Send({}, flow).status().message()); };
  EXPECT_THAT(why("protocol: grpc, method: GET"), HasSubstr("'GET' is not gRPC's, whose calls are POSTs"));
  EXPECT_THAT(why("protocol: http1.0, connections: keep-alive"), HasSubstr("HTTP/1.0 ends a connection"));
  EXPECT_THAT(why("protocol: http3"), HasSubstr("http1.0"));
}

}  // namespace
}  // namespace wavetank::scenario
