// How objects end.
#include "core/base/status.h"
#include "fakes/kube/objects/api_error.h"
#include "fakes/kube/objects/base64.h"
#include "tests/fakes/kube/cluster_fixture.h"

namespace wavetank::fakekube {
namespace {

json ConfigMap(const char* name, json owners = json::array(), json finalizers = json::array()) {
  json metadata = {{"name", name}, {"namespace", "default"}};
  if (!owners.empty()) metadata["ownerReferences"] = std::move(owners);
  if (!finalizers.empty()) metadata["finalizers"] = std::move(finalizers);
  return {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", metadata}};
}

class DeletionTest : public ClusterTest {
 protected:
  ObjectRef Make(json body) {
    const absl::StatusOr<ObjectRef> made = api().Create(std::move(body));
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *made : nullptr;
  }
  json Owned(const ObjectRef& owner, bool blocks = true) {
    return {{"apiVersion", owner->api_version},
            {"kind", owner->kind},
            {"name", owner->meta.name},
            {"uid", owner->meta.uid},
            {"blockOwnerDeletion", blocks}};
  }
  ObjectRef Get(const char* name) { return api().Get("ConfigMap", {"default", name}); }
  absl::Status Delete(const char* name, Propagation propagation = Propagation::kBackground) {
    return api().Delete("ConfigMap", {"default", name}, {propagation, std::nullopt});
  }
};

TEST_F(DeletionTest, AnObjectWithFinalizersWaitsForTheLastOfThem) {
  Make(ConfigMap("a", {}, {"example.com/x", "example.com/y"}));
  std::string events;
  subscriptions_.Add(api().Observe("ConfigMap", [&](const Change& c) { events += "AMD"[static_cast<int>(c.type)]; }));
  ASSERT_TRUE(Delete("a").ok());
  ASSERT_NE(Get("a"), nullptr);
  EXPECT_TRUE(Get("a")->meta.deleting);
  const int64_t version = api().resource_version();
  ASSERT_TRUE(Delete("a").ok());  // again: nothing new
  EXPECT_EQ(api().resource_version(), version);
  json body = Get("a")->body;
  body["metadata"]["finalizers"] = {"example.com/y"};
  ASSERT_TRUE(api().Update(body).ok());
  ASSERT_NE(Get("a"), nullptr);
  ASSERT_TRUE(api().Patch("ConfigMap", {"default", "a"}, {{"metadata", {{"finalizers", nullptr}}}}).ok());
  EXPECT_EQ(Get("a"), nullptr);
  EXPECT_EQ(events, "MMD");
}

TEST_F(DeletionTest, NoFinalizerIsAddedToWhatIsGoing) {
  Make(ConfigMap("a", {}, {"example.com/x"}));
  ASSERT_TRUE(Delete("a").ok());
  json body = Get("a")->body;
  body["metadata"]["finalizers"].push_back("example.com/z");
  WriteOptions validated;
  validated.validate = true;
  EXPECT_THAT(
      std::string(Message(api().Update(body, validated).status())),
      testing::HasSubstr("metadata.finalizers: Forbidden: no new finalizers can be added if the object is being "
                         "deleted, found new finalizers []string{\"example.com/z\"}"));
}

TEST_F(DeletionTest, DependentsGoWithTheirLastOwner) {
  const ObjectRef one = Make(ConfigMap("one")), two = Make(ConfigMap("two"));
  Make(ConfigMap("child", {Owned(one), Owned(two)}));
  Make(ConfigMap("grandchild", {Owned(Get("child"))}));
  ASSERT_TRUE(Delete("one").ok());
  ASSERT_NE(Get("child"), nullptr);
  EXPECT_EQ(Get("child")->meta.owner_references.size(), 1u);
  ASSERT_TRUE(Delete("two").ok());
  EXPECT_EQ(Get("child"), nullptr);
  EXPECT_EQ(Get("grandchild"), nullptr);
}

TEST_F(DeletionTest, OrphansStayBehindWithoutTheirOwner) {
  const ObjectRef one = Make(ConfigMap("one"));
  Make(ConfigMap("child", {Owned(one)}));
  ASSERT_TRUE(Delete("one", Propagation::kOrphan).ok());
  EXPECT_EQ(Get("one"), nullptr);
  ASSERT_NE(Get("child"), nullptr);
  EXPECT_FALSE(Get("child")->body["metadata"].contains("ownerReferences"));
}

TEST_F(DeletionTest, InTheForegroundTheOwnerGoesAfterWhatBlocksIt) {
  const ObjectRef one = Make(ConfigMap("one"));
  Make(ConfigMap("slow", {Owned(one)}, {"example.com/x"}));
  Make(ConfigMap("free", {Owned(one, false)}, {"example.com/x"}));
  ASSERT_TRUE(Delete("one", Propagation::kForeground).ok());
  ASSERT_NE(Get("one"), nullptr);
  EXPECT_EQ(Get("one")->body["metadata"]["finalizers"], json::array({"foregroundDeletion"}));
  EXPECT_TRUE(Get("slow")->meta.deleting);
  ASSERT_TRUE(api().Patch("ConfigMap", {"default", "slow"}, {{"metadata", {{"finalizers", nullptr}}}}).ok());
  EXPECT_EQ(Get("slow"), nullptr);
  EXPECT_EQ(Get("one"), nullptr);
  EXPECT_NE(Get("free"), nullptr);  // blocks nothing
}

TEST_F(DeletionTest, ADeploymentInTheForegroundGoesAfterItsPods) {
  ApplyText(kWeb);
  Settle();
  ASSERT_TRUE(api().Delete("Deployment", {"sample", "web"}, {Propagation::kForeground, std::nullopt}).ok());
  ASSERT_NE(api().Get("Deployment", {"sample", "web"}), nullptr);
  EXPECT_EQ(api().List("Pod", "sample").size(), 2u);
  Settle();
  EXPECT_EQ(api().Get("Deployment", {"sample", "web"}), nullptr);
  EXPECT_TRUE(api().List("ReplicaSet", "sample").empty());
  EXPECT_TRUE(api().List("Pod", "sample").empty());
}

TEST_F(DeletionTest, APodTerminatesWithinItsGracePeriodOrAtOnce) {
  ApplyText(kWeb);
  Settle();
  const std::vector<ObjectRef> pods = api().List("Pod", "sample");
  const NamespacedName first{"sample", pods[0]->meta.name}, second{"sample", pods[1]->meta.name};
  ASSERT_TRUE(api().Delete("Pod", first).ok());
  ASSERT_NE(api().Get("Pod", first), nullptr);
  EXPECT_EQ(api().Get("Pod", first)->body["metadata"]["deletionGracePeriodSeconds"], 30);
  ASSERT_TRUE(api().Delete("Pod", second, {{}, 0}).ok());
  EXPECT_EQ(api().Get("Pod", second), nullptr);
  ASSERT_TRUE(api().Delete("Pod", first, {{}, 0}).ok());
  EXPECT_EQ(api().Get("Pod", first), nullptr);
}

TEST_F(DeletionTest, AStoppedPodWithFinalizersWaitsForThem) {
  ApplyText(kWeb);
  Settle();
  const NamespacedName pod{"sample", api().List("Pod", "sample")[0]->meta.name};
  ASSERT_TRUE(api().Patch("Pod", pod, {{"metadata", {{"finalizers", {"example.com/x"}}}}}).ok());
  ASSERT_TRUE(api().Delete("Pod", pod).ok());
  Settle();
  ASSERT_NE(api().Get("Pod", pod), nullptr);
  ASSERT_TRUE(api().Patch("Pod", pod, {{"metadata", {{"finalizers", nullptr}}}}).ok());
  EXPECT_EQ(api().Get("Pod", pod), nullptr);
}

TEST_F(DeletionTest, ANamespaceTerminatesUntilItsPodsAreGoneAndTakesNothingNew) {
  ApplyText(kWeb);
  Settle();
  ASSERT_TRUE(api().Delete("Namespace", {"", "sample"}).ok());
  const ObjectRef ns = api().Get("Namespace", {"", "sample"});
  ASSERT_NE(ns, nullptr);
  EXPECT_EQ(ns->body["status"]["phase"], "Terminating");
  EXPECT_EQ(api().List("Pod", "sample").size(), 2u);
  EXPECT_TRUE(api().List("Service", "sample").empty());
  json late = ConfigMap("late");
  late["metadata"]["namespace"] = "sample";
  EXPECT_TRUE(absl::IsPermissionDenied(api().Create(late).status()));
  Settle();
  EXPECT_EQ(api().Get("Namespace", {"", "sample"}), nullptr);
  EXPECT_TRUE(api().List("Pod", "sample").empty());
}

TEST_F(DeletionTest, ADefinitionMakesItsKindClusterScopedAndTakesItsObjectsWithIt) {
  const json definition = json::parse(R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
      "metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Cluster",
      "names":{"kind":"Widget","plural":"widgets"},"versions":[{"name":"v1","served":true,"storage":true}]}})");
  const ObjectRef made = Make(definition);
  EXPECT_EQ(made->body["status"]["conditions"][1]["type"], "Established");
  EXPECT_EQ(made->body["spec"]["names"]["singular"], "widget");
  Make({{"apiVersion", "example.com/v1"}, {"kind", "Widget"}, {"metadata", {{"name", "w"}}}});
  ASSERT_NE(api().Get("Widget.example.com", {"", "w"}), nullptr);
  ASSERT_TRUE(api().Delete("CustomResourceDefinition", {"", "widgets.example.com"}).ok());
  EXPECT_TRUE(api().List("Widget.example.com").empty());
  Make({{"apiVersion", "example.com/v1"}, {"kind", "Widget"}, {"metadata", {{"name", "w"}}}});
  EXPECT_NE(api().Get("Widget.example.com", {"default", "w"}), nullptr);
}

class TokenTest : public DeletionTest {
 protected:
  TokenTest() {
    options_.ca_pem = "the cluster's CA";
    options_.issue_token = [](const std::string& ns, const std::string& account) {
      return "token of " + ns + "/" + account;
    };
    Restart();
  }
  std::string Data(const char* name, const char* key) {
    const ObjectRef secret = api().Get("Secret", {"default", name});
    if (secret == nullptr || !secret->body.contains("data") || !secret->body["data"].contains(key)) return "";
    return Base64Decode(secret->body["data"][key].get<std::string>()).value_or("?");
  }
};

TEST_F(TokenTest, ASecretOfAServiceAccountIsFilledAndGoesWithIt) {
  json secret = {
      {"apiVersion", "v1"},
      {"kind", "Secret"},
      {"type", "kubernetes.io/service-account-token"},
      {"metadata",
       {{"name", "t"}, {"namespace", "default"}, {"annotations", {{"kubernetes.io/service-account.name", "reader"}}}}}};
  Make(secret);
  Settle();
  EXPECT_EQ(Data("t", "token"), "");  // its account is not there yet
  Make(
      {{"apiVersion", "v1"}, {"kind", "ServiceAccount"}, {"metadata", {{"name", "reader"}, {"namespace", "default"}}}});
  Settle();
  EXPECT_EQ(Data("t", "token"), "token of default/reader");
  EXPECT_EQ(Data("t", "ca.crt"), "the cluster's CA");
  EXPECT_EQ(Data("t", "namespace"), "default");
  ASSERT_TRUE(api().Delete("ServiceAccount", {"default", "reader"}).ok());
  Settle();
  EXPECT_EQ(api().Get("Secret", {"default", "t"}), nullptr);
}

}  // namespace
}  // namespace wavetank::fakekube
