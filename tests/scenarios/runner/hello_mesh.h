// A mesh of one cluster whose clients speak what a test wants them to.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "fmt/format.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"

namespace wavetank::scenario {

// sleep asks hello, of which there are two pods behind port 5000.
struct HelloMesh {
  std::string port = "name: grpc, port: 5000";
  bool sidecars = true;
  std::string environment;  // of istiod, YAML: "{name: A, value: b}"; empty: the world's own istiod
  std::string objects;      // further ones, a line each
  std::string settings;     // of the scenario, before its clusters
};

inline std::string DeploymentText(const std::string& app, int replicas) {
  return fmt::format(
      "          - {{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {0}, namespace: sample}}, "
      "spec: {{replicas: {1}, selector: {{matchLabels: {{app: {0}}}}}, template: {{metadata: {{labels: "
      "{{app: {0}}}}}, spec: {{containers: [{{name: {0}, image: {0}, ports: [{{containerPort: "
      "5000}}]}}]}}}}}}}}\n",
      app, replicas);
}

inline std::string IstiodText(const std::string& environment) {
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

inline std::string MeshText(const HelloMesh& mesh) {
  return "name: n\n" + mesh.settings + "clusters:\n  - name: c1\n    manifests:\n      - objects:\n" +
         IstiodText(mesh.environment) +
         fmt::format(
             "          - {{apiVersion: v1, kind: Namespace, metadata: {{name: sample, labels: {{istio-injection: "
             "{}}}}}}}\n"
             "          - {{apiVersion: v1, kind: Service, metadata: {{name: hello, namespace: sample}}, spec: "
             "{{selector: "
             "{{app: hello}}, ports: [{{{}}}]}}}}\n",
             mesh.sidecars ? "enabled" : "disabled", mesh.port) +
         DeploymentText("hello", 2) + DeploymentText("sleep", 1) + mesh.objects;
}

// `flow` is more of its flow f, `step` the last step.
inline absl::StatusOr<Scenario> HelloScenario(const HelloMesh& mesh, const std::string& flow, const std::string& step) {
  return ParseScenario("hello.yaml",
                       MeshText(mesh) +
                           "flows:\n  - {name: f, from: {cluster: c1, namespace: sample, app: sleep}, to: "
                           "'hello.sample:5000', rate: 100/s, " +
                           flow + "}\nsteps:\n  - " + step + "\n");
}

// What became of one step's requests.
inline absl::StatusOr<TrafficResult> AskHello(const HelloMesh& mesh, const std::string& flow,
                                              const std::string& step = "{name: s, then: [{flow: f, requests: 40}]}") {
  const absl::StatusOr<Scenario> scenario = HelloScenario(mesh, flow, step);
  if (!scenario.ok()) return scenario.status();
  const absl::StatusOr<RunResult> result = Run(*scenario, {});
  if (!result.ok()) return result.status();
  return result->steps.back().traffic.at(0);
}

}  // namespace wavetank::scenario
