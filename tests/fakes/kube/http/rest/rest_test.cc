// The REST handler by itself: routes, codes, messages, lists, watches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/kube/http/rest_fixture.h"

namespace wavetank::fakekube::http {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kMaps = "/api/v1/namespaces/default/configmaps";

TEST_F(RestTest, DiscoveryNamesEveryGroupVersionAndItsResources) {
  EXPECT_EQ(Get("/api").body["versions"], json::array({"v1"}));
  EXPECT_EQ(Get("/version").body["minor"], "27");
  const Answer groups = Get("/apis?timeout=32s");
  for (const json& group : groups.body["groups"]) {
    for (const json& version : group["versions"]) {
      const Answer list = Get("/apis/" + version["groupVersion"].get<std::string>());
      EXPECT_EQ(list.code, 200) << version;
      EXPECT_EQ(list.body["groupVersion"], version["groupVersion"]);
      EXPECT_FALSE(list.body["resources"].empty()) << version;
    }
  }
  std::vector<std::string> names;
  const Answer core = Get("/api/v1");
  for (const json& resource : core.body["resources"]) names.push_back(resource["name"]);
  EXPECT_THAT(names, ::testing::IsSupersetOf({"pods", "pods/status", "services", "serviceaccounts/token"}));
}

TEST_F(RestTest, ObjectsAreCreatedReadReplacedAndDeleted) {
  const Answer created = Send("POST", kMaps, ConfigMap("a"));
  EXPECT_EQ(created.code, 201);
  EXPECT_FALSE(created.body["metadata"]["uid"].get<std::string>().empty());
  EXPECT_EQ(Get(std::string(kMaps) + "/a").body, created.body);
  json changed = created.body;
  changed["data"]["value"] = "2";
  const Answer updated = Send("PUT", std::string(kMaps) + "/a", changed);
  EXPECT_EQ(updated.code, 200);
  EXPECT_NE(updated.body["metadata"]["resourceVersion"], created.body["metadata"]["resourceVersion"]);
  const Answer stale = Send("PUT", std::string(kMaps) + "/a", created.body);
  EXPECT_EQ(stale.code, 409);
  EXPECT_EQ(stale.body["reason"], "Conflict");
  EXPECT_EQ(stale.body["message"],
            "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your "
            "changes to the latest version and try again");
  const Answer deleted = Send("DELETE", std::string(kMaps) + "/a", {{"propagationPolicy", "Background"}});
  EXPECT_EQ(deleted.code, 200);
  EXPECT_EQ(deleted.body["status"], "Success");
  EXPECT_EQ(deleted.body["details"]["uid"], created.body["metadata"]["uid"]);
  const Answer gone = Get(std::string(kMaps) + "/a");
  EXPECT_EQ(gone.code, 404);
  EXPECT_EQ(gone.body["message"], "configmaps \"a\" not found");
  EXPECT_EQ(gone.body["details"], (json{{"name", "a"}, {"kind", "configmaps"}}));
}

TEST_F(RestTest, KindAndVersionMayBeMissingInABodyAndMustFitThePath) {
  EXPECT_EQ(Send("POST", kMaps, {{"metadata", {{"name", "a"}}}}).body["kind"], "ConfigMap");
  EXPECT_EQ(Send("POST", kMaps, {{"kind", "Secret"}, {"metadata", {{"name", "b"}}}}).code, 400);
  EXPECT_EQ(Send("POST", kMaps, {{"metadata", {{"name", "b"}, {"namespace", "other"}}}}).code, 400);
  EXPECT_EQ(Send("POST", "/apis/apps/v1/namespaces/default/deployments",
                 {{"apiVersion", "apps/v1beta1"}, {"metadata", {{"name", "b"}}}})
                .body["message"],
            "the API version in the data (apps/v1beta1) does not match the expected API version (apps/v1)");
}

TEST_F(RestTest, RefusalsAreThoseThatKubectlUsersKnow) {
  Send("POST", kMaps, ConfigMap("a"));
  EXPECT_EQ(Send("POST", kMaps, ConfigMap("a")).body["message"], "configmaps \"a\" already exists");
  EXPECT_EQ(Send("POST", "/api/v1/namespaces/nowhere/configmaps", ConfigMap("a")).body["message"],
            "namespaces \"nowhere\" not found");
  const Answer name = Send("POST", kMaps, ConfigMap("No_Name"));
  EXPECT_EQ(name.code, 422);
  EXPECT_THAT(name.body["message"].get<std::string>(),
              HasSubstr("ConfigMap \"No_Name\" is invalid: metadata.name: Invalid value: \"No_Name\": a lowercase RFC "
                        "1123 subdomain must consist of"));
  EXPECT_EQ(Get("/apis/apps/v1/namespaces/default/nothings").code, 404);
  EXPECT_EQ(Get("/apis/none.example/v1").code, 404);
  EXPECT_EQ(Send("POST", std::string(kMaps) + "/a", ConfigMap("a")).code, 405);
  EXPECT_EQ(Send("PATCH", std::string(kMaps) + "/a", json::object(), "text/plain").code, 415);
}

TEST_F(RestTest, SelectorsChooseAndUnknownFieldsAreRefused) {
  Send("POST", kMaps, ConfigMap("a", {{"app", "x"}}));
  Send("POST", kMaps, ConfigMap("b", {{"app", "y"}}));
  Send("POST", kMaps, ConfigMap("c"));
  const std::string maps = kMaps;
  EXPECT_THAT(Names(maps + "?labelSelector=app%3Dx"), ElementsAre("a"));
  EXPECT_THAT(Names(maps + "?labelSelector=app+in+%28x%2Cy%29"), ElementsAre("a", "b"));
  EXPECT_THAT(Names(maps + "?labelSelector=%21app"), ElementsAre("c"));
  EXPECT_THAT(Names(maps + "?fieldSelector=metadata.name%3Db"), ElementsAre("b"));
  EXPECT_THAT(Names(maps + "?fieldSelector=metadata.name%21%3Db"), ElementsAre("a", "c"));
  EXPECT_THAT(Names("/api/v1/configmaps?fieldSelector=metadata.name%3Db"), ElementsAre("b"));
  const Answer wrong = Get("/api/v1/pods?fieldSelector=spec.color%3Dred");
  EXPECT_EQ(wrong.code, 400);
  EXPECT_THAT(wrong.body["message"].get<std::string>(), HasSubstr("field label not supported: spec.color"));
}

TEST_F(RestTest, PagesShowTheListAsItWasWhenTheFirstWasAskedFor) {
  for (const char* name : {"a", "b", "c", "d", "e"}) Send("POST", kMaps, ConfigMap(name));
  const std::string maps = kMaps;
  const Answer first = Get(maps + "?limit=2");
  EXPECT_EQ(first.body["items"].size(), 2u);
  EXPECT_EQ(first.body["metadata"]["remainingItemCount"], 3);
  Send("DELETE", maps + "/c");
  Send("POST", kMaps, ConfigMap("bb"));
  const std::string token = first.body["metadata"]["continue"];
  const Answer second = Get(maps + "?limit=2&continue=" + token);
  EXPECT_EQ(second.body["items"][0]["metadata"]["name"], "c");
  EXPECT_EQ(second.body["metadata"]["resourceVersion"], first.body["metadata"]["resourceVersion"]);
  const Answer last = Get(maps + "?limit=2&continue=" + second.body["metadata"]["continue"].get<std::string>());
  EXPECT_EQ(last.body["items"].size(), 1u);
  EXPECT_FALSE(last.body["metadata"].contains("continue"));
  EXPECT_EQ(Get(maps + "?continue=AAAA").code, 400);
  EXPECT_EQ(Get("/api/v1/configmaps?limit=2&continue=" + token).code, 410) << "a token of another list";
  for (size_t i = 0; i < rest_options_.kept_lists; ++i) Get(maps + "?limit=1");
  const Answer expired = Get(maps + "?limit=2&continue=" + token);
  EXPECT_EQ(expired.code, 410);
  EXPECT_EQ(expired.body["reason"], "Expired");
}

TEST_F(RestTest, AWatchTellsEveryChangeAfterItsVersion) {
  Send("POST", kMaps, ConfigMap("a"));
  const std::string version = Get(kMaps).body["metadata"]["resourceVersion"];
  Send("POST", kMaps, ConfigMap("b"));
  const auto watch = Watch(std::string(kMaps) + "?watch=true&resourceVersion=" + version);
  Send("PUT", std::string(kMaps) + "/a", ConfigMap("a", {}, "2"));
  Send("DELETE", std::string(kMaps) + "/b");
  EXPECT_THAT(watch->Told(), ElementsAre("ADDED b", "MODIFIED a", "DELETED b"));
  int64_t last = 0;
  for (const json& event : watch->events) {
    const int64_t now = std::stoll(event["object"]["metadata"]["resourceVersion"].get<std::string>());
    EXPECT_GT(now, last);
    last = now;
  }
  EXPECT_EQ(json::parse(*watch->stream->Bookmark())["object"]["metadata"]["resourceVersion"], std::to_string(last));
}

TEST_F(RestTest, AWatchWithoutAVersionBeginsWithWhatIsThere) {
  Send("POST", kMaps, ConfigMap("a"));
  EXPECT_THAT(Watch(std::string(kMaps) + "?watch=1")->Told(), ElementsAre("ADDED a"));
  EXPECT_THAT(Watch(std::string(kMaps) + "?watch=1&resourceVersion=0")->Told(), ElementsAre("ADDED a"));
}

TEST_F(RestTest, WhatEntersASelectorIsAddedAndWhatLeavesItIsDeleted) {
  const auto watch = Watch(std::string(kMaps) + "?watch=true&labelSelector=app%3Dx");
  Send("POST", kMaps, ConfigMap("a"));
  Send("PUT", std::string(kMaps) + "/a", ConfigMap("a", {{"app", "x"}}));
  Send("PUT", std::string(kMaps) + "/a", ConfigMap("a", {{"app", "x"}}, "2"));
  Send("PUT", std::string(kMaps) + "/a", ConfigMap("a", {{"app", "y"}}));
  Send("DELETE", std::string(kMaps) + "/a");
  EXPECT_THAT(watch->Told(), ElementsAre("ADDED a", "MODIFIED a", "DELETED a"));
}

TEST_F(RestTest, AVersionThatIsGoneOrOfAnotherLifeIs410) {
  Send("POST", kMaps, ConfigMap("a"));
  for (const char* version : {"1", "999999"}) {
    const auto watch = Watch(std::string(kMaps) + "?watch=true&resourceVersion=" + version);
    ASSERT_EQ(watch->events.size(), 1u) << version;
    EXPECT_EQ(watch->events[0]["type"], "ERROR");
    EXPECT_EQ(watch->events[0]["object"]["code"], 410);
    EXPECT_EQ(watch->events[0]["object"]["reason"], "Expired");
    EXPECT_TRUE(watch->ended);
  }
  EXPECT_EQ(Get(std::string(kMaps) + "?resourceVersion=999999").code, 504);
  const auto watch = Watch(std::string(kMaps) + "?watch=true");
  cluster_->api().ForgetHistory();
  cluster_->api().DropWatches(absl::OutOfRangeError("too old resource version"));
  EXPECT_EQ(watch->events.back()["object"]["code"], 410);
  EXPECT_TRUE(watch->ended);
}

TEST_F(RestTest, ScaleIsASubresource) {
  const std::string path = "/apis/apps/v1/namespaces/default/deployments";
  const json labels = {{"app", "web"}};
  ASSERT_EQ(Send("POST", path,
                 {{"metadata", {{"name", "web"}}},
                  {"spec",
                   {{"selector", {{"matchLabels", labels}}},
                    {"template",
                     {{"metadata", {{"labels", labels}}},
                      {"spec", {{"containers", json::array({{{"name", "c"}, {"image", "x"}}})}}}}}}}})
                .code,
            201);
  EXPECT_EQ(Get(path + "/web/scale").body["spec"]["replicas"], 1);
  const Answer scaled =
      Send("PATCH", path + "/web/scale", {{"spec", {{"replicas", 3}}}}, "application/merge-patch+json");
  EXPECT_EQ(scaled.code, 200);
  EXPECT_EQ(scaled.body["kind"], "Scale");
  EXPECT_EQ(Get(path + "/web").body["spec"]["replicas"], 3);
  EXPECT_EQ(Send("PATCH", path + "/web/scale", {{"spec", {{"replicas", -1}}}}, "application/merge-patch+json").code,
            422);
}

TEST_F(RestTest, StatusAndSpecAreWrittenApart) {
  const std::string path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
  Send("POST", path, {{"metadata", {{"name", "a"}}}, {"spec", {{"minAvailable", 1}}}});
  Send("PATCH", path + "/a/status", {{"spec", {{"minAvailable", 5}}}, {"status", {{"currentHealthy", 2}}}},
       "application/merge-patch+json");
  EXPECT_EQ(Get(path + "/a").body["spec"]["minAvailable"], 1);
  EXPECT_EQ(Get(path + "/a").body["status"]["currentHealthy"], 2);
  Send("PATCH", path + "/a", {{"spec", {{"minAvailable", 5}}}, {"status", {{"currentHealthy", 7}}}},
       "application/merge-patch+json");
  EXPECT_EQ(Get(path + "/a").body["spec"]["minAvailable"], 5);
  EXPECT_EQ(Get(path + "/a").body["status"]["currentHealthy"], 2);
}

TEST_F(RestTest, ADefinitionIsServedAtOnceInAllItsVersions) {
  const std::string group = "/apis/stable.example.com";
  EXPECT_EQ(Get(group + "/v1").code, 404);
  const json schema = {{"openAPIV3Schema", {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}}}};
  const json definition = {
      {"metadata", {{"name", "crontabs.stable.example.com"}}},
      {"spec",
       {{"group", "stable.example.com"},
        {"scope", "Namespaced"},
        {"names",
         {{"plural", "crontabs"}, {"singular", "crontab"}, {"kind", "CronTab"}, {"shortNames", json::array({"ct"})}}},
        {"versions", json::array({{{"name", "v1beta1"}, {"served", true}, {"storage", false}, {"schema", schema}},
                                  {{"name", "v1"}, {"served", true}, {"storage", true}, {"schema", schema}}})}}}};
  ASSERT_EQ(Send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).code, 201);
  EXPECT_EQ(Get(group).body["preferredVersion"]["version"], "v1");
  EXPECT_EQ(Get(group + "/v1").body["resources"][0]["shortNames"], json::array({"ct"}));
  ASSERT_EQ(Send("POST", group + "/v1/namespaces/default/crontabs", {{"metadata", {{"name", "a"}}}}).code, 201);
  const Answer other = Get(group + "/v1beta1/namespaces/default/crontabs/a");
  EXPECT_EQ(other.body["apiVersion"], "stable.example.com/v1beta1");
  EXPECT_EQ(Send("PATCH", group + "/v1/namespaces/default/crontabs/a", json::object(),
                 "application/strategic-merge-patch+json")
                .code,
            415);
  Send("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs.stable.example.com");
  EXPECT_EQ(Get(group + "/v1/namespaces/default/crontabs").code, 404);
}

TEST_F(RestTest, ADryRunChangesNothing) {
  const int64_t before = cluster_->api().resource_version();
  EXPECT_EQ(Send("POST", std::string(kMaps) + "?dryRun=All", ConfigMap("a")).code, 201);
  EXPECT_EQ(cluster_->api().resource_version(), before);
  EXPECT_EQ(Send("POST", std::string(kMaps) + "?dryRun=Some", ConfigMap("a")).code, 400);
  Send("POST", kMaps, ConfigMap("a"));
  EXPECT_EQ(Send("DELETE", std::string(kMaps) + "/a?dryRun=All").code, 200);
  EXPECT_EQ(Get(std::string(kMaps) + "/a").code, 200);
}

TEST_F(RestTest, OnlyWhatChangesTheStoreIsAnInput) {
  const auto changes = [&](const char* method, const std::string& target) {
    return rest_->Changes(rest_->Open(Ask(method, target, json::object())));
  };
  EXPECT_TRUE(changes("POST", kMaps));
  EXPECT_TRUE(changes("DELETE", std::string(kMaps) + "/a"));
  EXPECT_TRUE(changes("PATCH", "/apis/apps/v1/namespaces/default/deployments/web/scale"));
  EXPECT_FALSE(changes("GET", kMaps));
  EXPECT_FALSE(changes("POST", std::string(kMaps) + "?dryRun=All"));
  EXPECT_FALSE(changes("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"));
  EXPECT_FALSE(changes("POST", "/api/v1/namespaces/default/serviceaccounts/default/token"));
  EXPECT_FALSE(changes("POST", "/no/such/path"));
}

TEST_F(RestTest, ATokenIsWhatItsReviewSays) {
  const Answer issued = Send("POST", "/api/v1/namespaces/default/serviceaccounts/default/token",
                             {{"spec", {{"audiences", {"istio-ca"}}}}});
  ASSERT_EQ(issued.code, 201);
  const json token = issued.body["status"]["token"];
  const std::string reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
  const Answer good = Send("POST", reviews, {{"spec", {{"token", token}, {"audiences", json::array({"istio-ca"})}}}});
  EXPECT_EQ(good.body["status"]["authenticated"], true);
  EXPECT_EQ(good.body["status"]["user"]["username"], "system:serviceaccount:default:default");
  const Answer other = Send("POST", reviews, {{"spec", {{"token", token}, {"audiences", json::array({"other"})}}}});
  EXPECT_EQ(other.body["status"]["authenticated"], false);
  EXPECT_EQ(Send("POST", "/api/v1/namespaces/default/serviceaccounts/nobody/token", json::object()).code, 404);
}

TEST_F(RestTest, WithABearerTokenRbacDecidesForAccounts) {
  rest_options_.bearer_token = "open sesame";
  Restart();
  EXPECT_EQ(Get(kMaps).code, 401);
  const auto as = [&](const std::string& token, Request request) {
    request.authorization = "Bearer " + token;
    return Send(request);
  };
  EXPECT_EQ(as("open sesame", Ask("GET", kMaps)).code, 200);
  const std::string account =
      as("open sesame", Ask("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", json::object()))
          .body["status"]["token"];
  const Answer refused = as(account, Ask("GET", kMaps));
  EXPECT_EQ(refused.code, 403);
  EXPECT_EQ(refused.body["message"],
            "configmaps is forbidden: User \"system:serviceaccount:default:default\" cannot list resource "
            "\"configmaps\" in API group \"\" in the namespace \"default\"");
  const std::string rbac = "/apis/rbac.authorization.k8s.io/v1/";
  as("open sesame", Ask("POST", rbac + "clusterroles",
                        {{"metadata", {{"name", "reader"}}},
                         {"rules", json::array({{{"apiGroups", json::array({""})},
                                                 {"resources", json::array({"configmaps"})},
                                                 {"verbs", json::array({"list"})}}})}}));
  as("open sesame",
     Ask("POST", rbac + "clusterrolebindings",
         {{"metadata", {{"name", "reader"}}},
          {"roleRef", {{"kind", "ClusterRole"}, {"name", "reader"}}},
          {"subjects", json::array({{{"kind", "ServiceAccount"}, {"name", "default"}, {"namespace", "default"}}})}}));
  EXPECT_EQ(as(account, Ask("GET", kMaps)).code, 200);
  EXPECT_EQ(as(account, Ask("GET", "/api/v1/secrets")).code, 403);
  const json spec = {{"resourceAttributes", {{"verb", "list"}, {"resource", "configmaps"}}}};
  EXPECT_EQ(as(account, Ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {{"spec", spec}}))
                .body["status"]["allowed"],
            true);
}

TEST_F(RestTest, GeneratedNamesAreTheSameInEveryRun) {
  const json body = {{"metadata", {{"generateName", "job-"}}}};
  const std::string first = Send("POST", kMaps, body).body["metadata"]["name"];
  const std::string second = Send("POST", kMaps, body).body["metadata"]["name"];
  EXPECT_THAT(first, ::testing::MatchesRegex("job-[a-z0-9]{5}"));
  EXPECT_NE(first, second);
  Restart();
  EXPECT_EQ(Send("POST", kMaps, body).body["metadata"]["name"], first);
}

TEST_F(RestTest, HostilePathsAndBodiesAreRefused) {
  for (const char* path : {"/api/v1/namespaces/../../../etc/passwd", "/api/v1/namespaces/%2e%2e/configmaps",
                           "/api/v1/namespaces/default/configmaps/..%2f..%2fx", "//", "/api//v1/pods", "/api/v1/%zz",
                           "/api/v1/%00", "/apis/apps/v1/namespaces/a/deployments/b/scale/more/and/more"}) {
    EXPECT_EQ(Get(path).code, 404) << path;
  }
  EXPECT_EQ(Get("/api/v1/pods?labelSelector=%zz").code, 400);
  EXPECT_EQ(Get("/api/v1/pods?limit=-1").code, 400);
  Request deep = Ask("POST", kMaps);
  deep.body = std::string(100000, '[');
  EXPECT_EQ(Send(deep).code, 400);
  for (const char* body :
       {"", "null", "[]", "1", "\"text\"", "{", "{\"metadata\":5}", "{\"metadata\":{\"name\":5}}",
        "{\"metadata\":{\"name\":\"a\",\"labels\":7}}", "{\"metadata\":{\"name\":\"a\",\"labels\":{\"a\":1}}}",
        "{\"kind\":{},\"metadata\":{\"name\":\"a\"}}"}) {
    Request request = Ask("POST", kMaps);
    request.body = body;
    const Answer answer = Send(request);
    EXPECT_GE(answer.code, 400) << body;
    EXPECT_LT(answer.code, 500) << body;
    EXPECT_EQ(answer.body["kind"], "Status") << body;
  }
  EXPECT_THAT(Names(kMaps), IsEmpty());
}

}  // namespace
}  // namespace wavetank::fakekube::http
