// AuthorizationPolicies of action CUSTOM, from the mesh config's provider over the generated filters to an authorizer
// in a pod of the mesh, which the sidecars ask over mutual TLS.
#include <gtest/gtest.h>

#include "fmt/format.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"

namespace wavetank::scenario {
namespace {

const std::string kManifestFolder = WAVETANK_SOURCE_DIR "/scenarios/manifests/";

// Providers: `plain` and `grpc` show the request as it is, `friend` adds what the authorizer wants to see, `open` does
// the same as plain and lets pass what nobody answers.
std::string WithAuthorizer(const std::string& steps) {
  return fmt::format(R"(
name: authorizer
meshConfig:
  extensionProviders:
    - name: plain
      envoyExtAuthzHttp: {{service: ext-authz.sample.svc.cluster.local, port: 8000, includeRequestHeadersInCheck: [x-ext-authz]}}
    - name: friend
      envoyExtAuthzHttp: {{service: ext-authz.sample.svc.cluster.local, port: 8000, includeAdditionalHeadersInCheck: {{x-ext-authz: allow}}}}
    - name: open
      envoyExtAuthzHttp: {{service: ext-authz.sample.svc.cluster.local, port: 8000, failOpen: true}}
    - name: grpc
      envoyExtAuthzGrpc: {{service: ext-authz.sample.svc.cluster.local, port: 9000}}
    - name: grpc-open
      envoyExtAuthzGrpc: {{service: ext-authz.sample.svc.cluster.local, port: 9000, failOpen: true}}
clusters:
  - name: cluster1
    network: network1
    manifests: [{0}one-network.yaml, {0}istiod.yaml, {0}sample.yaml, {0}helloworld-service.yaml, {0}helloworld-v1.yaml, {0}sleep.yaml]
flows:
  - {{name: hello, from: {{cluster: cluster1, namespace: sample, app: sleep}}, to: "helloworld.sample:5000", path: /hello, rate: 100/s}}
  - {{name: other, from: {{cluster: cluster1, namespace: sample, app: sleep}}, to: "helloworld.sample:5000", path: /other, rate: 100/s}}
steps:
  - name: an authorizer is there
    do:
      - apply:
          cluster: cluster1
          objects:
            - {{apiVersion: v1, kind: Service, metadata: {{name: ext-authz, namespace: sample}},
               spec: {{ports: [{{name: http, port: 8000}}, {{name: grpc, port: 9000}}], selector: {{app: ext-authz}}}}}}
            - apiVersion: apps/v1
              kind: Deployment
              metadata: {{name: ext-authz, namespace: sample}}
              spec:
                selector: {{matchLabels: {{app: ext-authz}}}}
                template:
                  metadata: {{labels: {{app: ext-authz}}}}
                  spec:
                    containers: [{{name: ext-authz, image: "example/ext-authz:1.18", ports: [{{containerPort: 8000}}, {{containerPort: 9000}}]}}]
    then: [{{flow: hello, requests: 50}}]
    expect: [requests: {{failed: 0}}]
{1})",
                     kManifestFolder, steps);
}

// A connection that was open when the policy changed serves one more request by the old one, as with a real Envoy,
// which drains it: so of 50 requests 2 may go the other way.
//
// A step that makes the policy ask `provider` about what goes to /hello, and what is expected of both flows.
std::string Policy(const std::string& provider, const std::string& hello_failed) {
  return fmt::format(R"(
  - name: by {0}
    do:
      - apply:
          cluster: cluster1
          objects:
            - apiVersion: security.istio.io/v1beta1
              kind: AuthorizationPolicy
              metadata: {{name: ask, namespace: sample}}
              spec:
                selector: {{matchLabels: {{app: helloworld}}}}
                action: CUSTOM
                provider: {{name: {0}}}
                rules: [{{to: [{{operation: {{paths: [/hello]}}}}]}}]
    then: [{{flow: hello, requests: 50}}, {{flow: other, requests: 50}}]
    expect:
      - requests: {{flow: hello, failed: "{1}"}}
      - requests: {{flow: other, failed: "0"}}
)",
                     provider, hello_failed);
}

std::string ScaleAuthorizer(int replicas) {
  return fmt::format(R"(
  - name: authorizers {0}
    do: [{{scale: {{cluster: cluster1, deployment: sample/ext-authz, replicas: {0}}}}}]
    then: [{{flow: other, requests: 10}}]
    expect: [requests: {{failed: 0}}]
)",
                     replicas);
}

void ExpectAllHold(const std::string& text) {
  const absl::StatusOr<Scenario> scenario = ParseScenario("test.yaml", text);
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  const absl::StatusOr<RunResult> result = Run(*scenario, {});
  ASSERT_TRUE(result.ok()) << result.status();
  for (const auto& step : result->steps) {
    for (const auto& expectation : step.expectations) {
      EXPECT_TRUE(expectation.held) << step.name << ": " << expectation.explanation;
    }
  }
}

TEST(Authorizer, DecidesAboutWhatThePolicyNamesAndNothingElse) {
  ExpectAllHold(WithAuthorizer(Policy("plain", ">= 96%") + Policy("friend", "<= 4%") + Policy("grpc", ">= 96%")));
}

TEST(Authorizer, WhereNobodyAnswersThePolicyDeniesUnlessItFailsOpen) {
  ExpectAllHold(WithAuthorizer(ScaleAuthorizer(0) + Policy("friend", ">= 96%") + Policy("open", "<= 4%") +
                               Policy("grpc", ">= 96%") + Policy("grpc-open", "<= 4%") + ScaleAuthorizer(1) +
                               Policy("friend", "<= 4%") + Policy("open", ">= 96%")));
}

}  // namespace
}  // namespace wavetank::scenario
