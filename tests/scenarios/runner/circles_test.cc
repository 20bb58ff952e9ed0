// Gateways that send to themselves, as wrong labels and routes make them: a circle ends, and is told as one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"

namespace wavetank::scenario {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

absl::StatusOr<RunResult> RunMesh(const std::string& mesh, const std::string& rest) {
  absl::StatusOr<Scenario> scenario = ParseScenario(WAVETANK_SOURCE_DIR "/circles.yaml",
                                                    "name: n\nextends: scenarios/" + mesh + "/scenario.yaml\n" + rest);
  if (!scenario.ok()) return scenario.status();
  for (ClusterSpec& cluster : scenario->clusters) {
    for (ManifestSpec& manifest : cluster.manifests) manifest.path = WAVETANK_SOURCE_DIR "/" + manifest.path;
  }
  return Run(*scenario, {});
}

// The pods of cluster2's gateway say that they are of network1, so they take cluster2's own pods for those of another
// network, whose gateway they are themselves.
constexpr char kGatewayOfTheWrongNetwork[] = R"(steps:
  - name: wrong network
    do:
      - scale: {cluster: cluster1, deployment: sample/helloworld-v1, replicas: 0}  # which the gateway could not reach
      - apply:
          cluster: cluster2
          objects:
            - apiVersion: apps/v1
              kind: Deployment
              metadata: {name: istio-eastwestgateway, namespace: istio-system, labels: {istio: eastwestgateway, topology.istio.io/network: network2}}
              spec:
                replicas: 1
                selector: {matchLabels: {istio: eastwestgateway}}
                template:
                  metadata:
                    labels: {app: istio-eastwestgateway, istio: eastwestgateway, topology.istio.io/network: network1, sidecar.istio.io/inject: "true"}
                    annotations: {inject.istio.io/templates: gateway}
                  spec:
                    serviceAccountName: eastwest
                    containers: [{name: istio-proxy, image: auto}]
    then: [{flow: from-cluster1, requests: 20}]
)";

TEST(Circles, OfConnectionsThroughAGatewayEndAndAreToldAsThat) {
  const auto result = RunMesh("multi-primary-multi-network", kGatewayOfTheWrongNetwork);
  ASSERT_TRUE(result.ok()) << result.status();
  const TrafficResult& t = result->steps[0].traffic[0];
  EXPECT_EQ(t.sent, 20);
  EXPECT_EQ(t.by_cluster.count("cluster2"), 0u);
  EXPECT_THAT(t.failures, Contains(Field(&TrafficResult::Failure::cause, HasSubstr("goes in a circle of proxies"))));
}

constexpr char kGatewayRoutedToItself[] = R"(flows:
  - {name: edge, from: {cluster: cluster1, namespace: sample, app: sleep}, to: "edge.sample:80", rate: 10/s}
steps:
  - name: routed to itself
    do:
      - apply:
          cluster: cluster1
          objects:
            - {apiVersion: v1, kind: ServiceAccount, metadata: {name: edge, namespace: sample}}
            - apiVersion: apps/v1
              kind: Deployment
              metadata: {name: edge, namespace: sample}
              spec:
                replicas: 1
                selector: {matchLabels: {app: edge}}
                template:
                  metadata: {labels: {app: edge, istio: edge, sidecar.istio.io/inject: "true"}, annotations: {inject.istio.io/templates: gateway}}
                  spec: {serviceAccountName: edge, containers: [{name: istio-proxy, image: auto}]}
            - apiVersion: v1
              kind: Service
              metadata: {name: edge, namespace: sample}
              spec: {selector: {app: edge}, ports: [{name: http, port: 80, targetPort: 8080}]}
            - apiVersion: networking.istio.io/v1beta1
              kind: Gateway
              metadata: {name: edge, namespace: sample}
              spec: {selector: {istio: edge}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}
            - apiVersion: networking.istio.io/v1beta1
              kind: VirtualService
              metadata: {name: edge, namespace: sample}
              spec: {hosts: ["*"], gateways: [edge], http: [{route: [{destination: {host: edge.sample.svc.cluster.local, port: {number: 80}}}]}]}
    then: [{flow: edge, requests: 5}]
)";

TEST(Circles, OfRequestsThroughAGatewayAreAnsweredAsHeadersThatHaveGrownTooLarge) {
  const auto result = RunMesh("multi-primary-one-network", kGatewayRoutedToItself);
  ASSERT_TRUE(result.ok()) << result.status();
  const TrafficResult& t = result->steps[0].traffic[0];
  EXPECT_EQ(t.by_code, (std::map<int, int64_t>{{431, 5}}));
}

constexpr char kAuthorizerThatAsksItself[] = R"(meshConfig:
  extensionProviders: [{name: gate, envoyExtAuthzHttp: {service: gate.sample.svc.cluster.local, port: 8000}}]
steps:
  - name: asks itself
    do:
      - scale: {cluster: cluster2, deployment: sample/helloworld-v2, replicas: 0}  # to which the policy does not apply
      - apply:
          cluster: cluster1
          objects:
            - apiVersion: v1
              kind: Service
              metadata: {name: gate, namespace: sample}
              spec: {selector: {app: gate}, ports: [{name: http, port: 8000}]}
            - apiVersion: apps/v1
              kind: Deployment
              metadata: {name: gate, namespace: sample}
              spec:
                selector: {matchLabels: {app: gate}}
                template:
                  metadata: {labels: {app: gate}}
                  spec: {containers: [{name: ext-authz, image: gcr.io/istio-testing/ext-authz:latest, ports: [{containerPort: 8000}]}]}
            - apiVersion: security.istio.io/v1beta1
              kind: AuthorizationPolicy
              metadata: {name: ask-always, namespace: istio-system}
              spec: {action: CUSTOM, provider: {name: gate}, rules: [{}]}
    then: [{flow: from-cluster1, requests: 5}]
)";

// A real one's time-out is ten minutes, in which each check asks for another.
TEST(Circles, OfChecksOfAnAuthorizerThatHasToAskItselfEnd) {
  const auto result = RunMesh("multi-primary-one-network", kAuthorizerThatAsksItself);
  ASSERT_TRUE(result.ok()) << result.status();
  const TrafficResult& t = result->steps[0].traffic[0];
  EXPECT_EQ(t.by_code, (std::map<int, int64_t>{{431, 5}}));
}

}  // namespace
}  // namespace wavetank::scenario
