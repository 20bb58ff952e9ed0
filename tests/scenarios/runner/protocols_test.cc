// What a flow's clients speak: HTTP/1.0, HTTP/1.1, HTTP/2, gRPC.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"

namespace wavetank::scenario {
namespace {

using testing::HasSubstr;

// sleep of cluster1 asks helloworld, of which there are `pods` pods behind a port of that name; with sidecars or
// without.
struct Mesh {
  std::string port = "grpc";
  bool sidecars = true;
  std::string istiod;  // environment of istiod, YAML
};

std::string MeshText(const Mesh& mesh) {
  return std::string("name: n\nclusters:\n  - name: c1\n    objects:\n") +
         "      - {apiVersion: v1, kind: Namespace, metadata: {name: sample, labels: {istio-injection: " +
         (mesh.sidecars ? "enabled" : "disabled") +
         "}}}\n"
         "      - {apiVersion: v1, kind: Service, metadata: {name: hello, namespace: sample}, spec: {selector: {app: "
         "hello}, ports: [{name: " +
         mesh.port +
         ", port: 5000}]}}\n"
         "      - {apiVersion: apps/v1, kind: Deployment, metadata: {name: hello, namespace: sample}, spec: {replicas: "
         "2, selector: {matchLabels: {app: hello}}, template: {metadata: {labels: {app: hello}}, spec: {containers: "
         "[{name: hello, image: hello, ports: [{containerPort: 5000}]}]}}}}\n"
         "      - {apiVersion: apps/v1, kind: Deployment, metadata: {name: sleep, namespace: sample}, spec: {selector: "
         "{matchLabels: {app: sleep}}, template: {metadata: {labels: {app: sleep}}, spec: {containers: [{name: sleep, "
         "image: sleep}]}}}}\n";
}

absl::StatusOr<RunResult> RunFlow(const Mesh& mesh, const std::string& flow, const std::string& steps) {
  absl::StatusOr<Scenario> scenario =
      ParseScenario(WAVETANK_SOURCE_DIR "/protocols.yaml",
                    MeshText(mesh) +
                        "flows:\n  - {name: f, from: {cluster: c1, namespace: sample, app: sleep}, to: "
                        "'hello.sample:5000', " +
                        flow + "}\nsteps:\n" + steps);
  if (!scenario.ok()) return scenario.status();
  return Run(*scenario, {});
}

}  // namespace
}  // namespace wavetank::scenario
