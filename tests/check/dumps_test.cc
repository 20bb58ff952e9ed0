// What `kubectl get -o yaml` prints is a mesh again (issue U4).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "check/lint/lint.h"

namespace wavetank::check {
namespace {

using nlohmann::json;

std::string Write(const std::string& name, const json& content) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << content.dump(1);
  return path;
}

absl::StatusOr<SettledMesh> SettledMainMesh() {
  MeshSource source;
  source.scenario = WAVETANK_SOURCE_DIR "/scenarios/multi-primary-multi-network";
  return BringToRest(source);
}

// As `kubectl get ns,svc,deploy,rs,pods,... -A -o json`: everything, with what the server added.
json Dump(const Mesh& mesh, const MeshCluster& cluster) {
  json out{{"apiVersion", "v1"}, {"kind", "List"}, {"items", json::array()}};
  for (const char* kind : {"Namespace", "Node", "Service", "ServiceAccount", "Deployment", "ReplicaSet", "Pod",
                           "EndpointSlice", "ConfigMap", "Gateway.networking.istio.io"}) {
    for (const kube::ObjectRef& object : mesh.List(cluster, kind)) out["items"].push_back(object->body);
  }
  return out;
}

TEST(Dumps, OfTheMainMeshAreAMeshWithoutFindings) {
  absl::StatusOr<SettledMesh> settled = SettledMainMesh();
  ASSERT_TRUE(settled.ok()) << settled.status();
  const Mesh mesh(*std::move(settled));
  MeshSource source;
  for (const auto& cluster : mesh.clusters()) {
    scenario::SurveyCluster dump;
    dump.name = cluster->name;
    dump.paths = {Write(cluster->name + ".json", Dump(mesh, *cluster))};
    source.clusters.push_back(dump);
  }
  absl::StatusOr<SettledMesh> again = BringToRest(source);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_GT(again->brought.size(), 10u);
  for (const BroughtObject& b : again->brought) {
    EXPECT_TRUE(b.dumped) << b.object.dump();
    EXPECT_FALSE(b.object["metadata"].contains("resourceVersion"));
    EXPECT_NE(b.object["kind"], "Pod") << "its Deployment makes it";
  }
  const Mesh copy(*std::move(again));
  EXPECT_EQ(copy.world().Pods().size(), mesh.world().Pods().size());
  const absl::StatusOr<LintResult> result = Lint(copy, {});
  ASSERT_TRUE(result.ok()) << result.status();
  for (const Finding& f : result->findings) ADD_FAILURE() << f.rule->code << " " << f.object << " " << f.message;
}

TEST(Dumps, APendingAddressIsTold) {
  absl::StatusOr<SettledMesh> settled = SettledMainMesh();
  ASSERT_TRUE(settled.ok()) << settled.status();
  const Mesh mesh(*std::move(settled));
  MeshSource source;
  for (const auto& cluster : mesh.clusters()) {
    json dump = Dump(mesh, *cluster);
    for (json& item : dump["items"]) {
      if (item["kind"] == "Service" && cluster->name == "cluster2") item["status"] = {{"loadBalancer", json::object()}};
    }
    scenario::SurveyCluster part;
    part.name = cluster->name;
    part.paths = {Write("pending-" + cluster->name + ".json", dump)};
    source.clusters.push_back(part);
  }
  absl::StatusOr<SettledMesh> again = BringToRest(source);
  ASSERT_TRUE(again.ok()) << again.status();
  const absl::StatusOr<LintResult> result = Lint(Mesh(*std::move(again)), {});
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->findings.size(), 1u);
  EXPECT_EQ(result->findings[0].rule->code, "WT102");
  EXPECT_GT(result->findings[0].place.line, 1) << "an item of a List has a line of its own";
}

// As people give dumps of an installation away: what Secrets hold is cut out. The mesh is judged all the same, and it
// is told once what stands in.
TEST(Dumps, WhoseSecretsWereCutOutAreAMeshWithAStandInOfTheCa) {
  absl::StatusOr<SettledMesh> settled = SettledMainMesh();
  ASSERT_TRUE(settled.ok()) << settled.status();
  const Mesh mesh(*std::move(settled));
  for (const char* cut : {"", "<redacted>", "UkVEQUNURUQ="}) {
    MeshSource source;
    for (const auto& cluster : mesh.clusters()) {
      json dump = Dump(mesh, *cluster);
      for (const char* kind : {"MutatingWebhookConfiguration", "Secret"}) {
        for (const kube::ObjectRef& object : mesh.List(*cluster, kind)) dump["items"].push_back(object->body);
      }
      bool roots = false, kubeconfig = false;
      for (json& item : dump["items"]) {
        const std::string name = item["metadata"]["name"];
        if (item["kind"] == "Deployment" && name == "istiod") {
          item["spec"]["template"]["spec"]["containers"][0]["env"] = {
              {{"name", "CLUSTER_ID"}, {"value", cluster->name}}};
        }
        if (item["kind"] != "Secret") continue;
        roots = roots || name == "cacerts";
        kubeconfig = kubeconfig || name.starts_with("istio-remote-secret");
        if (name == "cacerts" || name.starts_with("istio-remote-secret")) {
          for (auto& value : item["data"]) value = cut;
        }
      }
      ASSERT_TRUE(roots && kubeconfig) << "the main mesh has both";
      scenario::SurveyCluster part;
      part.name = cluster->name;
      part.paths = {Write("cut-" + cluster->name + ".json", dump)};
      source.clusters.push_back(part);
    }
    absl::StatusOr<SettledMesh> again = BringToRest(source);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_THAT(again->notes,
                testing::Contains(testing::HasSubstr("cluster1, cluster2: what Secret cacerts holds was cut")));
    EXPECT_THAT(again->notes,
                testing::Contains(testing::HasSubstr("kubeconfigs of cluster2 in cluster1, cluster1 in cluster2")));
    const absl::StatusOr<LintResult> result = Lint(Mesh(*std::move(again)), {});
    ASSERT_TRUE(result.ok()) << result.status();
    for (const Finding& f : result->findings) ADD_FAILURE() << f.rule->code << " " << f.object << " " << f.message;
  }
}

TEST(DefinedTwice, AnObjectThatIsDefinedTwiceIsToldWithBothPlaces) {
  const auto space = [](const json& labels) {
    return json{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "shop"}, {"labels", labels}}}};
  };
  MeshSource source;
  scenario::SurveyCluster cluster;
  cluster.name = "c1";
  cluster.paths = {Write("first.json", space({{"istio-injection", "enabled"}})),
                   Write("second.json", space({{"a", "b"}}))};
  source.clusters.push_back(cluster);
  const auto findings = [&] {
    std::vector<std::string> out;
    absl::StatusOr<SettledMesh> settled = BringToRest(source);
    EXPECT_TRUE(settled.ok()) << settled.status();
    if (!settled.ok()) return out;
    const absl::StatusOr<LintResult> result = Lint(Mesh(*std::move(settled)), {});
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return out;
    for (const Finding& finding : result->findings) {
      if (finding.rule->code == "WT712") out.push_back(finding.place.file + " " + finding.message);
    }
    return out;
  };
  EXPECT_THAT(findings(), testing::ElementsAre(testing::AllOf(testing::StartsWith(cluster.paths[0]),
                                                              testing::HasSubstr(cluster.paths[1] + ":1, which counts"),
                                                              testing::HasSubstr("metadata.labels"))));
  source.clusters[0].paths.pop_back();
  source.with = {{"c1", cluster.paths[1]}};  // in its place, on purpose
  EXPECT_THAT(findings(), testing::IsEmpty());
}

}  // namespace
}  // namespace wavetank::check
