#include "tests/fakes/kube/cluster_fixture.h"

#include <gmock/gmock.h>

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/base/status.h"
#include "fakes/kube/client/client.h"
#include "fakes/kube/objects/manifest_folders.h"
#include "tests/left_out.h"

namespace wavetank::fakekube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(ClusterTest, ADeploymentBecomesReadyPodsBehindItsService) {
  ApplyText(kWeb);
  EXPECT_EQ(cluster_->api().List("Pod", "sample").size(), 0u);
  Settle();
  const std::vector<ObjectRef> pods = cluster_->api().List("Pod", "sample");
  ASSERT_EQ(pods.size(), 2u);
  EXPECT_EQ(pods[0]->meta.labels.at("version"), "v1");
  EXPECT_NE(pods[0]->body["spec"]["nodeName"], pods[1]->body["spec"]["nodeName"]);
  EXPECT_EQ(ReadyAddresses("web").size(), 2u);
  const std::vector<ObjectRef> slices = cluster_->api().List("EndpointSlice", "sample");
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ(slices[0]->body["ports"][0]["port"], 8080);
  EXPECT_EQ(slices[0]->body["ports"][0]["name"], "http");
  EXPECT_EQ(cluster_->api().Get("Deployment", {"sample", "web"})->body["status"]["readyReplicas"], 2);
}

TEST_F(ClusterTest, ScalingToNoneEmptiesTheSliceAndBackFillsIt) {
  ApplyText(kWeb);
  Settle();
  ASSERT_TRUE(cluster_->api().Patch("Deployment", {"sample", "web"}, {{"spec", {{"replicas", 0}}}}).ok());
  Settle();
  EXPECT_EQ(cluster_->api().List("Pod", "sample").size(), 0u);
  EXPECT_TRUE(ReadyAddresses("web").empty());
  ASSERT_TRUE(cluster_->api().Patch("Deployment", {"sample", "web"}, {{"spec", {{"replicas", 3}}}}).ok());
  Settle();
  EXPECT_EQ(ReadyAddresses("web").size(), 3u);
}

TEST_F(ClusterTest, ARollingChangeNeverLeavesFewerReadyPodsThanItMay) {
  ApplyText(kWeb);
  Settle();
  size_t least = 100;
  subscriptions_.Add(cluster_->api().Observe(
      "EndpointSlice", [&](const Change&) { least = std::min(least, ReadyAddresses("web").size()); }));
  ASSERT_TRUE(cluster_->api()
                  .Patch("Deployment", {"sample", "web"},
                         {{"spec", {{"template", {{"metadata", {{"labels", {{"version", "v2"}}}}}}}}}})
                  .ok());
  Settle();
  for (const ObjectRef& pod : cluster_->api().List("Pod", "sample")) EXPECT_EQ(pod->meta.labels.at("version"), "v2");
  EXPECT_EQ(ReadyAddresses("web").size(), 2u);
  EXPECT_GE(least, 2u);  // maxUnavailable 25 % of 2 is none
}

TEST_F(ClusterTest, ALoadBalancerGetsAnAddressLosesItAndGetsAnother) {
  ApplyText(kWeb);
  const auto address = [&] {
    const json status = cluster_->api().Get("Service", {"sample", "web"})->body.value("status", json::object());
    const json ingress = status.value("loadBalancer", json::object()).value("ingress", json::array());
    return ingress.empty() ? std::string("none") : ingress[0].value("ip", "");
  };
  EXPECT_EQ(address(), "none");
  Settle();
  EXPECT_EQ(address(), "172.30.1.1");
  ASSERT_TRUE(cluster_->SetLoadBalancerAddress({"sample", "web"}, "none").ok());
  Settle();
  EXPECT_EQ(address(), "none");
  ASSERT_TRUE(cluster_->SetLoadBalancerAddress({"sample", "web"}, "new").ok());
  EXPECT_EQ(address(), "172.30.1.2");
  EXPECT_FALSE(cluster_->SetLoadBalancerAddress({"sample", "nothing"}, "new").ok());
}

TEST_F(ClusterTest, DeletingADeploymentTakesItsReplicaSetsAndPodsWithIt) {
  ApplyText(kWeb);
  Settle();
  ASSERT_TRUE(cluster_->api().Delete("Deployment", {"sample", "web"}).ok());
  Settle();
  EXPECT_TRUE(cluster_->api().List("ReplicaSet", "sample").empty());
  EXPECT_TRUE(cluster_->api().List("Pod", "sample").empty());
}

TEST_F(ClusterTest, ATerminatingPodIsListedAsServingButNotReady) {
  ApplyText(kWeb);
  Settle();
  const ObjectRef pod = cluster_->api().List("Pod", "sample")[0];
  ASSERT_TRUE(cluster_->api().Delete("Pod", {"sample", pod->meta.name}).ok());
  kernel_.RunUntil(kernel_.Now() + options_.endpoint_slice);
  bool seen = false;
  for (const ObjectRef& slice : cluster_->api().List("EndpointSlice", "sample")) {
    for (const json& endpoint : slice->body["endpoints"]) {
      if (endpoint["targetRef"]["name"] != pod->meta.name) continue;
      seen = true;
      EXPECT_EQ(endpoint["conditions"], (json{{"ready", false}, {"serving", true}, {"terminating", true}}));
    }
  }
  EXPECT_TRUE(seen);
}

TEST_F(ClusterTest, AStaleResourceVersionIsAConflictAndAnEqualWriteIsNone) {
  ApplyText(kWeb);
  json service = cluster_->api().Get("Service", {"sample", "web"})->body;
  const int64_t before = cluster_->api().resource_version();
  EXPECT_TRUE(cluster_->api().Update(service).ok());
  EXPECT_EQ(cluster_->api().resource_version(), before);
  service["metadata"]["labels"]["x"] = "y";
  json stale = service;
  EXPECT_TRUE(cluster_->api().Update(service).ok());
  stale["metadata"]["labels"]["x"] = "z";
  EXPECT_TRUE(absl::IsAborted(cluster_->api().Update(stale).status()));
}

TEST_F(ClusterTest, ReapplyingAManifestKeepsWhatTheServerAllocated) {
  ApplyText(kWeb);
  Settle();
  const ObjectRef before = cluster_->api().Get("Service", {"sample", "web"});
  ApplyText(kWeb);
  EXPECT_EQ(cluster_->api().Get("Service", {"sample", "web"}), before);
}

TEST_F(ClusterTest, AnObjectOfAMissingNamespaceIsRefusedWithARemedy) {
  const absl::StatusOr<ObjectRef> refused = cluster_->api().Create(
      {{"apiVersion", "v1"}, {"kind", "Service"}, {"metadata", {{"name", "s"}, {"namespace", "nowhere"}}}});
  EXPECT_TRUE(absl::IsNotFound(refused.status()));
  EXPECT_THAT(std::string(Message(refused.status())), HasSubstr("create it first"));
}

TEST_F(ClusterTest, AWatcherSeesAnObjectLeaveItsSelectionAsDeleted) {
  std::unique_ptr<kube::Client> client = MakeClient(cluster_->api(), host_, "watcher", 1, {});
  std::string seen;
  std::unique_ptr<kube::Watch> watch =
      client->StartWatch(kube::kinds::kSecret, {"", "mark=yes", ""}, cluster_->api().resource_version(),
                         {[&](const kube::WatchEvent& e) {
                            if (e.type == kube::WatchEventType::kAdded) seen += "+";
                            if (e.type == kube::WatchEventType::kModified) seen += "~";
                            if (e.type == kube::WatchEventType::kDeleted) seen += "-";
                          },
                          [](const absl::Status&) {}});
  const auto apply = [&](const char* mark, const char* data) {
    ASSERT_TRUE(cluster_->api()
                    .Apply({{"apiVersion", "v1"},
                            {"kind", "Secret"},
                            {"metadata", {{"name", "s"}, {"namespace", "default"}, {"labels", {{"mark", mark}}}}},
                            {"stringData", {{"k", data}}}})
                    .ok());
  };
  apply("no", "1");
  apply("yes", "1");
  apply("yes", "2");
  apply("no", "2");
  kernel_.RunUntil(kernel_.Now() + 1s);
  EXPECT_EQ(seen, "+~-");
}

TEST_F(ClusterTest, AWatchFromForgottenHistoryEndsWith410) {
  const int64_t old = cluster_->api().resource_version();
  ApplyText(kWeb);
  cluster_->api().ForgetHistory();
  std::unique_ptr<kube::Client> client = MakeClient(cluster_->api(), host_, "watcher", 1, {});
  absl::Status end;
  std::unique_ptr<kube::Watch> watch = client->StartWatch(
      kube::kinds::kService, {}, old, {[](const kube::WatchEvent&) {}, [&](const absl::Status& s) { end = s; }});
  kernel_.RunUntil(kernel_.Now() + 1s);
  EXPECT_TRUE(absl::IsOutOfRange(end)) << end;
}

TEST_F(ClusterTest, AnUnreachableServerAnswersUnavailable) {
  cluster_->api().faults().unreachable = true;
  std::unique_ptr<kube::Client> client = MakeClient(cluster_->api(), host_, "client", 1, {});
  absl::Status status;
  client->List(kube::kinds::kService, {}, [&](absl::StatusOr<kube::ObjectList> list) { status = list.status(); });
  kernel_.RunUntil(kernel_.Now() + 1min);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST(Manifests, ErrorsNameFileLineAndRemedy) {
  EXPECT_THAT(std::string(Message(ParseManifests("m.yaml", "a: [1\nb: 2").status())), HasSubstr("m.yaml:2:"));
  EXPECT_THAT(std::string(Message(ParseManifests("m.yaml", "apiVersion: v1\nmetadata: {name: x}").status())),
              HasSubstr("m.yaml:1: no Kubernetes object: object: kind is missing"));
  EXPECT_FALSE(LoadManifests("/no/such/file.yaml").ok());
}

TEST(Manifests, ScalarsResolveAsKubernetesReadsThem) {
  const auto manifests = ParseManifests("m.yaml",
                                        "apiVersion: v1\nkind: X\nmetadata: {name: x}\na: yes\nb: \"yes\"\nc: 0644\nd: "
                                        "1.5\ne: 12\nf: ~\ng: v1\nh: '12'\n");
  ASSERT_TRUE(manifests.ok()) << manifests.status();
  const json& o = (*manifests)[0].object;
  EXPECT_EQ(o["a"], true);
  EXPECT_EQ(o["b"], "yes");
  EXPECT_EQ(o["c"], 420);
  EXPECT_EQ(o["d"], 1.5);
  EXPECT_EQ(o["e"], 12);
  EXPECT_TRUE(o["f"].is_null());
  EXPECT_EQ(o["g"], "v1");
  EXPECT_EQ(o["h"], "12");
}

TEST(Manifests, ListsAreUnrolled) {
  const auto manifests = ParseManifests("m.yaml",
                                        "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: "
                                        "{name: a}}\n- {apiVersion: v1, kind: B, metadata: {name: b}}\n");
  ASSERT_TRUE(manifests.ok());
  EXPECT_EQ(manifests->size(), 2u);
}

std::vector<std::string> NamesAndLines(const std::string& text) {
  const auto manifests = ParseManifests("m.yaml", text);
  std::vector<std::string> out;
  if (!manifests.ok()) return {std::string(Message(manifests.status()))};
  for (const Manifest& manifest : *manifests) {
    out.push_back(fmt::format("{}:{} {}", manifest.object["metadata"]["name"].get<std::string>(), manifest.line,
                              manifest.object["kind"].get<std::string>()));
  }
  return out;
}

TEST(Manifests, ObjectsOfListsStandAtLinesOfTheirOwnInJsonAndInYaml) {
  EXPECT_THAT(NamesAndLines("{\"apiVersion\": \"v1\", \"items\": [\n"
                            "  {\"apiVersion\": \"v1\", \"kind\": \"A\", \"metadata\": {\"name\": \"a\"}},\n"
                            "  {\"apiVersion\": \"v1\", \"kind\": \"B\",\n   \"metadata\": {\"name\": \"b\"}}\n"
                            "], \"kind\": \"List\"}\n"
                            "{\"apiVersion\": \"v1\", \"kind\": \"C\", \"metadata\": {\"name\": \"c\"}}\n"),
              ElementsAre("a:2 A", "b:3 B", "c:6 C"));
  EXPECT_THAT(NamesAndLines("apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: A\n  metadata: {name: a}\n"
                            "  data:\n    text: |\n      - none\n\n# a remark\n- apiVersion: v1\n  kind: B\n"
                            "  metadata:\n    name: b\nkind: List\n"),
              ElementsAre("a:3 A", "b:11 B"));
  // A typed list's items have no kind.
  EXPECT_THAT(NamesAndLines("kind: PodList\napiVersion: v1\nitems:\n  - metadata: {name: a}\n"),
              ElementsAre("a:4 Pod"));
}

TEST(Manifests, WhatBeginsLikeJsonAndIsNoneIsReadAsYaml) {
  EXPECT_THAT(NamesAndLines("{apiVersion: v1, kind: A, metadata: {name: a}}"), ElementsAre("a:1 A"));
  EXPECT_THAT(NamesAndLines("{\"apiVersion\": \"v1\", \"kind\": \"A\", \"metadata\": {\"name\": \"a\"}}\nmore: text\n"),
              ElementsAre(HasSubstr("m.yaml:2:")));
  EXPECT_THAT(NamesAndLines("{\"apiVersion\": \"v1\", \"kind\": \"A\", \"metadata\": {\"name\": \"a\"}\n"),
              ElementsAre(HasSubstr("m.yaml:2:")));
  EXPECT_THAT(
      NamesAndLines("apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: A\n  metadata: {name: [a}\n"),
      ElementsAre(HasSubstr("m.yaml:6:")));
}

TEST(Manifests, AListWhoseItemsAreNotPartedByOneCommaEachIsRefused) {
  const std::string item = R"({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}})";
  for (const std::string& items : {"," + item, item + item, item + ",," + item}) {
    const auto read = NamesAndLines("{\"kind\": \"List\",\n\"items\": [" + items + "]}");
    EXPECT_THAT(read, ElementsAre(HasSubstr("m.yaml:"))) << items;
  }
}

TEST(Manifests, AnAliasBombIsRefused) {
  std::string text = "apiVersion: v1\nkind: X\nmetadata: {name: x}\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    text += fmt::format("a{}: &a{} [", i, i);
    for (int j = 0; j < 10; ++j) text += fmt::format("{}*a{}", j == 0 ? "" : ", ", i - 1);
    text += "]\n";
  }
  EXPECT_THAT(std::string(Message(ParseManifests("m.yaml", text).status())), HasSubstr("aliases"));
}

// The manifests that Istio's users apply.
TEST(Manifests, IstiosOwnManifestsAreAcceptedUnchanged) {
  const char* const folder = std::getenv("WAVETANK_ISTIO_SAMPLES");
  NEEDS_BROUGHT(folder != nullptr, "istio-samples", kIstioSamples);
  const auto manifests = LoadManifests(folder);
  ASSERT_TRUE(manifests.ok()) << manifests.status();
  EXPECT_GT(manifests->size(), 20u);
}

TEST(Manifests, FoldersWithinAFolderAreNamedAndNotRead) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(testing::TempDir()) / "folders_within";
  fs::remove_all(root);
  for (const char* folder : {"apps/base", "apps/overlay", "apps/.git", "apps/notes"})
    fs::create_directories(root / folder);
  const auto write = [&](const char* file, const char* text) { std::ofstream(root / file) << text; };
  for (const char* file : {"apps/base/a.yaml", "apps/overlay/a.yaml", "apps/.git/a.yaml"})
    write(file, "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n");
  write("apps/notes/values.yaml", "replicas: 3\n");
  const std::string apps = (root / "apps").string();
  EXPECT_THAT(FoldersLeftOut(apps), testing::ElementsAre(apps + "/base", apps + "/overlay"));
  EXPECT_EQ(NameFoldersLeftOut(apps), apps + "/base and 1 more");
  EXPECT_THAT(std::string(Message(LoadManifests(apps).status())),
              HasSubstr("without -R: name " + apps + "/base and 1 more"));
}

}  // namespace
}  // namespace wavetank::fakekube
