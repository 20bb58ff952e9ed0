// Remote clusters whose webhook nobody patches: what the primary or the cluster lacks is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "check/lint/lint.h"

namespace wavetank::check {
namespace {

using testing::HasSubstr;

// The finding of the client's Deployment in cluster2 of a primary-remote mesh in which only that is mended, with a
// manifest applied over it.
Finding OfTheClient(const std::string& mended, const std::string& remote_secrets = {}, const std::string& over = {}) {
  const std::string folder = testing::TempDir() + "/remote-webhooks";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/scenario.yaml")
      << "extends: " WAVETANK_SOURCE_DIR "/scenarios/primary-remote-one-network/scenario.yaml\nmend: " << mended << "\n"
      << remote_secrets << "steps: [{name: at rest, settle: 5s}]\n";
  MeshSource source;
  source.scenario = folder;
  if (!over.empty()) {
    std::ofstream(folder + "/over.yaml") << over;
    source.with.emplace_back("cluster2", folder + "/over.yaml");
  }
  absl::StatusOr<SettledMesh> settled = BringToRest(source);
  EXPECT_TRUE(settled.ok()) << settled.status();
  if (!settled.ok()) return {};
  const Mesh mesh(*std::move(settled));
  const absl::StatusOr<LintResult> result = Lint(mesh, LintOptions());
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  for (const Finding& each : result->findings) {
    if ((each.rule->code == "WT700" || each.rule->code == "WT708") && each.cluster == "cluster2" &&
        each.object == "Deployment sample/sleep")
      return each;
  }
  ADD_FAILURE() << "nothing of it does not come up";
  return {};
}

TEST(RemoteWebhooks, APrimaryThatIsNotExternalPatchesThoseOfNoOtherCluster) {
  const Finding found = OfTheClient("istiod, clusterID, controlPlane, address, servers, rbac, roots, tokens");
  EXPECT_THAT(found.cause, HasSubstr("the istiod of cluster1 runs without EXTERNAL_ISTIOD"));
  EXPECT_THAT(found.remedy, HasSubstr("EXTERNAL_ISTIOD=true"));
}

TEST(RemoteWebhooks, ANamespaceThatNamesNoControlPlaneIsLeftAlone) {
  const Finding found = OfTheClient("istiod, clusterID, external, address, servers, rbac, roots, tokens");
  EXPECT_THAT(found.cause, HasSubstr("does not name cluster1 in topology.istio.io/controlPlaneClusters"));
}

TEST(RemoteWebhooks, OfAClusterThatThePrimaryDoesNotReadNobodyPatchesThem) {
  const Finding found =
      OfTheClient("istiod, clusterID, external, controlPlane, address, servers, rbac, roots", "remoteSecrets: []\n");
  EXPECT_THAT(found.cause, HasSubstr("no Secret of cluster1 lets its istiod reach the API server of cluster2"));
}

TEST(RemoteWebhooks, TokensOfAProxyThatNamesAnotherClusterAreReviewedByNobody) {
  const Finding found = OfTheClient("all", {}, R"(
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: istio-sidecar-injector, labels: {istio.io/rev: default}}
webhooks:
  - name: namespace.sidecar-injector.istio.io
    clientConfig:
      service: {name: istiod, namespace: istio-system, path: /inject/cluster/berne/net/network1, port: 443}
    sideEffects: None
    admissionReviewVersions: [v1]
    failurePolicy: Fail
    namespaceSelector: {matchLabels: {istio-injection: enabled}}
    rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
)");
  EXPECT_THAT(found.cause, HasSubstr("its proxy says CLUSTER_ID berne, of which the istiod of cluster1 knows no API"));
  EXPECT_THAT(found.remedy, HasSubstr("the name of the remote Secret, cluster2, in the place of berne"));
}

}  // namespace
}  // namespace wavetank::check
