// What real clients meet first: ephemeral containers, managers of fields, versions of autoscalers, documents and paths,
// owners that are not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/fakes/kube/http/rest_fixture.h"

namespace wavetank::fakekube::http {
namespace {

using ::testing::HasSubstr;

class ClientNeedsTest : public RestTest {
 protected:
  static json Pod(const std::string& name) {
    return {{"metadata", {{"name", name}}}, {"spec", {{"containers", {{{"name", "c"}, {"image", "x"}}}}}}};
  }
  const std::string kPods = "/api/v1/namespaces/default/pods";
  const std::string kScalers = "/namespaces/default/horizontalpodautoscalers";
};

TEST_F(ClientNeedsTest, EphemeralContainersComeByTheirSubresourceAlone) {
  ASSERT_EQ(Send("POST", kPods, Pod("a")).code, 201);
  kernel_.RunUntil(kernel_.Now() + 5s);
  const json debugger = {{"spec", {{"ephemeralContainers", {{{"name", "debugger"}, {"image", "busybox"}}}}}}};
  EXPECT_EQ(Send("PATCH", kPods + "/a", debugger, "application/strategic-merge-patch+json").code, 422);
  ASSERT_EQ(Send("PATCH", kPods + "/a/ephemeralcontainers", debugger, "application/strategic-merge-patch+json").code,
            200);
  kernel_.RunUntil(kernel_.Now() + 5s);
  const json pod = Get(kPods + "/a").body;
  EXPECT_EQ(pod["spec"]["ephemeralContainers"][0]["name"], "debugger");
  EXPECT_EQ(pod["status"]["ephemeralContainerStatuses"][0]["name"], "debugger");
  json without = pod;
  without["spec"].erase("ephemeralContainers");
  const Answer refused = Send("PUT", kPods + "/a/ephemeralcontainers", without);
  EXPECT_EQ(refused.code, 422);
  EXPECT_THAT(refused.body["message"].get<std::string>(), HasSubstr("may not be removed"));
}

// `kubectl diff` would show each of a pod's conditions.
TEST_F(ClientNeedsTest, AChangeOfLabelsLeavesConditionsAsTheyWere) {
  ASSERT_EQ(Send("POST", kPods, Pod("a")).code, 201);
  kernel_.RunUntil(kernel_.Now() + 5s);
  const json before = Get(kPods + "/a").body["status"];
  ASSERT_TRUE(before["conditions"][0].contains("lastProbeTime"));
  const json labelled = {{"metadata", {{"labels", {{"a", "b"}}}}}};
  for (const char* const type : {"application/strategic-merge-patch+json", "application/merge-patch+json"})
    EXPECT_EQ(Send("PATCH", kPods + "/a?dryRun=All", labelled, type).body["status"], before) << type;
}

TEST_F(ClientNeedsTest, WhoMadeAnObjectManagesItsFields) {
  ASSERT_EQ(Send("POST", "/api/v1/namespaces/default/configmaps?fieldManager=kubectl-create", ConfigMap("a")).code,
            201);
  json managed = Get("/api/v1/namespaces/default/configmaps/a").body["metadata"]["managedFields"];
  ASSERT_EQ(managed.size(), 1);
  EXPECT_EQ(managed[0]["manager"], "kubectl-create");
  EXPECT_EQ(managed[0]["operation"], "Update");
  EXPECT_TRUE(managed[0]["fieldsV1"]["f:data"].contains("f:value"));
  ASSERT_EQ(Send("PATCH", "/api/v1/namespaces/default/configmaps/a?fieldManager=kubectl-label",
                 {{"metadata", {{"labels", {{"a", "b"}}}}}}, "application/merge-patch+json")
                .code,
            200);
  managed = Get("/api/v1/namespaces/default/configmaps/a").body["metadata"]["managedFields"];
  EXPECT_EQ(managed.size(), 2);
}

TEST_F(ClientNeedsTest, WhatTheClusterMadeIsTrackedFromAClientsFirstChangeOn) {
  EXPECT_FALSE(Get("/api/v1/nodes/node1").body["metadata"].contains("managedFields"));
  ASSERT_EQ(Send("PATCH", "/api/v1/nodes/node1/status?fieldManager=kubelet",
                 {{"status", {{"allocatable", {{"cpu", "4"}}}}}}, "application/merge-patch+json")
                .code,
            200);
  EXPECT_FALSE(Get("/api/v1/nodes/node1").body["metadata"].contains("managedFields")) << "reports of status are not";
  const json taints = json::array({{{"key", "dedicated"}, {"effect", "PreferNoSchedule"}}});
  ASSERT_EQ(Send("PATCH", "/api/v1/nodes/node1?fieldManager=kubectl-taint", {{"spec", {{"taints", taints}}}},
                 "application/merge-patch+json")
                .code,
            200);
  const json managed = Get("/api/v1/nodes/node1").body["metadata"]["managedFields"];
  ASSERT_EQ(managed.size(), 2);
  EXPECT_EQ(managed[0]["manager"], "before-first-apply");
  EXPECT_EQ(managed[1]["manager"], "kubectl-taint");
  EXPECT_TRUE(managed[1]["fieldsV1"]["f:spec"].contains("f:taints")) << managed[1];
}

// certificates.k8s.io says who asked; the request itself cannot.
TEST_F(ClientNeedsTest, ASigningRequestSaysWhoMadeIt) {
  const json body = {{"metadata", {{"name", "a"}}},
                     {"spec",
                      {{"request", "LS0t"},
                       {"signerName", "kubernetes.io/kube-apiserver-client"},
                       {"username", "somebody-else"},
                       {"usages", {"client auth"}}}}};
  Request request = Ask("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", body);
  request.certificate_user = "user1";
  request.certificate_groups = {"group1"};
  const Answer made = Send(request);
  ASSERT_EQ(made.code, 201) << made.body;
  EXPECT_EQ(made.body["spec"]["username"], "user1");
  EXPECT_EQ(made.body["spec"]["groups"], (json{"group1", "system:authenticated"}));
}

TEST_F(ClientNeedsTest, LineBreaksOfAListAreThoseOfItsWhole) {
  const std::string path = "/api/v1/namespaces/default/configmaps";
  for (const char* value : {"1", "\"}{][,: \\", "\\\""})
    ASSERT_EQ(Send("POST", path, ConfigMap("c" + std::to_string(std::string(value).size()), {}, value)).code, 201);
  for (const std::string& list : {path, std::string("/apis/apps/v1/deployments")}) {
    const auto whole = nlohmann::ordered_json::parse(rest_->Handle(Ask("GET", list)).Text());
    EXPECT_EQ(rest_->Handle(Ask("GET", list + "?pretty=true")).Text(), whole.dump(2) + "\n");
  }
}

TEST_F(ClientNeedsTest, AnAutoscalerIsTheSameInBothVersions) {
  const json spec = {{"maxReplicas", 3},
                     {"targetCPUUtilizationPercentage", 70},
                     {"scaleTargetRef", {{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", "web"}}}};
  const Answer made = Send("POST", "/apis/autoscaling/v1" + kScalers, {{"metadata", {{"name", "a"}}}, {"spec", spec}});
  ASSERT_EQ(made.code, 201) << made.body;
  EXPECT_EQ(made.body["spec"]["targetCPUUtilizationPercentage"], 70);
  const json second = Get("/apis/autoscaling/v2" + kScalers + "/a").body;
  EXPECT_EQ(second["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 70);
  EXPECT_FALSE(second["spec"].contains("targetCPUUtilizationPercentage"));
  ASSERT_EQ(Send("PATCH", "/apis/autoscaling/v1" + kScalers + "/a",
                 {{"spec", {{"targetCPUUtilizationPercentage", 50}}}}, "application/merge-patch+json")
                .code,
            200);
  json changed = Get("/apis/autoscaling/v2" + kScalers + "/a").body;
  EXPECT_EQ(changed["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 50);
  const json memory = {
      {"type", "Resource"},
      {"resource", {{"name", "memory"}, {"target", {{"type", "AverageValue"}, {"averageValue", "1Gi"}}}}}};
  changed["spec"]["metrics"].push_back(memory);
  ASSERT_EQ(Send("PUT", "/apis/autoscaling/v2" + kScalers + "/a", changed).code, 200);
  const json first = Get("/apis/autoscaling/v1" + kScalers + "/a").body;
  EXPECT_THAT(first["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"].get<std::string>(),
              HasSubstr("targetAverageValue"));
  ASSERT_EQ(Send("PUT", "/apis/autoscaling/v1" + kScalers + "/a", first).code, 200);
  EXPECT_EQ(Get("/apis/autoscaling/v2" + kScalers + "/a").body["spec"]["metrics"], changed["spec"]["metrics"]);
}

TEST_F(ClientNeedsTest, ResourcesAreDescribedInGosOrder) {
  const std::string text = rest_->Handle(Ask("GET", "/api/v1")).Text();
  EXPECT_THAT(text, HasSubstr(R"({"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap",)"
                              R"("verbs":["create","delete","deletecollection","get","list","patch","update","watch"],)"
                              R"("shortNames":["cm"],"storageVersionHash":)"));
  EXPECT_THAT(text, HasSubstr(R"("shortNames":["po"],"categories":["all"])"));
}

TEST_F(ClientNeedsTest, WhatIsMadeForAnOwnerThatIsNotThereGoes) {
  json orphan = ConfigMap("orphan");
  orphan["metadata"]["ownerReferences"] = {
      {{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", "nobody"}, {"uid", "7d5cdb0a"}}};
  ASSERT_EQ(Send("POST", "/api/v1/namespaces/default/configmaps", orphan).code, 201);
  EXPECT_EQ(Get("/api/v1/namespaces/default/configmaps/orphan").code, 200);
  kernel_.RunUntil(kernel_.Now() + 2s);
  EXPECT_EQ(Get("/api/v1/namespaces/default/configmaps/orphan").code, 404);
}

TEST_F(ClientNeedsTest, APodThatNoNodeHasOrThatHasEndedGoesAtOnce) {
  json pod = Pod("a");
  pod["spec"]["schedulerName"] = "nobody";
  ASSERT_EQ(Send("POST", kPods, pod).code, 201);
  ASSERT_EQ(Send("DELETE", kPods + "/a").code, 200);
  EXPECT_EQ(Get(kPods + "/a").code, 404);
  json short_lived = Pod("b");
  short_lived["spec"]["restartPolicy"] = "Never";
  short_lived["spec"]["containers"][0]["command"] = {"true"};
  ASSERT_EQ(Send("POST", kPods, short_lived).code, 201);
  kernel_.RunUntil(kernel_.Now() + 10s);
  ASSERT_EQ(Get(kPods + "/b").body["status"]["phase"], "Succeeded");
  ASSERT_EQ(Send("DELETE", kPods + "/b").code, 200);
  EXPECT_EQ(Get(kPods + "/b").code, 404);
}

TEST_F(ClientNeedsTest, AQuotaTellsWhatIsUsedAndRefusesWhatDoesNotFit) {
  const std::string quotas = "/api/v1/namespaces/default/resourcequotas";
  ASSERT_EQ(
      Send("POST", quotas, {{"metadata", {{"name", "few"}}}, {"spec", {{"hard", {{"pods", "1"}, {"cpu", "1"}}}}}}).code,
      201);
  const Answer silent = Send("POST", kPods, Pod("silent"));
  EXPECT_EQ(silent.code, 403);
  EXPECT_EQ(silent.body["message"], "pods \"silent\" is forbidden: failed quota: few: must specify cpu for: c");
  const auto asking = [](const char* name, const char* cpu) {
    json pod = Pod(name);
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu;
    return pod;
  };
  EXPECT_EQ(Send("POST", kPods, asking("large", "2")).code, 403);
  ASSERT_EQ(Send("POST", kPods, asking("small", "500m")).code, 201);
  kernel_.RunUntil(kernel_.Now() + 5s);
  const json used = {{"pods", "1"}, {"cpu", "500m"}};
  EXPECT_EQ(Get(quotas + "/few").body["status"]["used"], used);
  const Answer second = Send("POST", kPods, asking("second", "100m"));
  EXPECT_EQ(second.body["message"],
            "pods \"second\" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1");
}

TEST_F(ClientNeedsTest, ALimitRangeGivesDefaultsAndBounds) {
  const json limit = {{"type", "Container"},
                      {"defaultRequest", {{"cpu", "100m"}}},
                      {"default", {{"cpu", "200m"}}},
                      {"max", {{"cpu", "1"}}}};
  ASSERT_EQ(Send("POST", "/api/v1/namespaces/default/limitranges",
                 {{"metadata", {{"name", "bounds"}}}, {"spec", {{"limits", json::array({limit})}}}})
                .code,
            201);
  const Answer made = Send("POST", kPods, Pod("a"));
  ASSERT_EQ(made.code, 201) << made.body;
  const json resources = {{"requests", {{"cpu", "100m"}}}, {"limits", {{"cpu", "200m"}}}};
  EXPECT_EQ(made.body["spec"]["containers"][0]["resources"], resources);
  EXPECT_THAT(made.body["metadata"]["annotations"]["kubernetes.io/limit-ranger"].get<std::string>(),
              HasSubstr("LimitRanger plugin set: cpu request for container c; cpu limit for container c"));
  json large = Pod("large");
  large["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "2";
  const Answer refused = Send("POST", kPods, large);
  EXPECT_EQ(refused.code, 403);
  EXPECT_THAT(refused.body["message"].get<std::string>(),
              HasSubstr("maximum cpu usage per Container is 1, but limit is 2"));
  // However it is written.
  large["apiVersion"] = "v1";
  large["kind"] = "Pod";
  for (const char* query : {"?fieldManager=me", "?fieldManager=me&dryRun=All"})
    EXPECT_EQ(Send("PATCH", kPods + "/large" + query, large, "application/apply-patch+yaml").code, 403) << query;
}

TEST_F(ClientNeedsTest, AnApplyIsNoWayAroundEphemeralContainersAndQuotas) {
  ASSERT_EQ(Send("POST", kPods, Pod("a")).code, 201);
  json debugged = Pod("a");
  debugged["apiVersion"] = "v1";
  debugged["kind"] = "Pod";
  debugged["spec"]["ephemeralContainers"] = {{{"name", "debugger"}, {"image", "busybox"}}};
  EXPECT_EQ(Send("PATCH", kPods + "/a?fieldManager=me", debugged, "application/apply-patch+yaml").code, 422);
  debugged["metadata"]["name"] = "none";
  EXPECT_EQ(
      Send("PATCH", kPods + "/none/ephemeralcontainers?fieldManager=me", debugged, "application/apply-patch+yaml").code,
      404);
  ASSERT_EQ(Send("POST", "/api/v1/namespaces/default/resourcequotas",
                 {{"metadata", {{"name", "few"}}}, {"spec", {{"hard", {{"configmaps", "0"}}}}}})
                .code,
            201);
  json map = ConfigMap("applied");
  map["apiVersion"] = "v1";
  map["kind"] = "ConfigMap";
  const Answer refused = Send("PATCH", "/api/v1/namespaces/default/configmaps/applied?fieldManager=me", map,
                              "application/apply-patch+yaml");
  EXPECT_EQ(refused.code, 403);
  EXPECT_THAT(refused.body["message"].get<std::string>(), HasSubstr("exceeded quota: few"));
}

TEST_F(ClientNeedsTest, TheServerTellsOfItself) {
  EXPECT_THAT(rest_->Handle(Ask("GET", "/metrics")).Text(), HasSubstr("apiserver_storage_objects"));
  EXPECT_EQ(Get("/.well-known/openid-configuration").body["response_types_supported"][0], "id_token");
  EXPECT_TRUE(Get("/openid/v1/jwks").body["keys"].is_array());
  EXPECT_THAT(rest_->Handle(Ask("GET", "/api/v1/namespaces/default?pretty=true")).Text(), HasSubstr("\n  \"kind\""));
}

TEST_F(ClientNeedsTest, ADeprecatedVersionWarns) {
  const json version = {{"name", "v1beta1"},
                        {"served", true},
                        {"storage", true},
                        {"deprecated", true},
                        {"schema", {{"openAPIV3Schema", {{"type", "object"}}}}}};
  const json names = {{"plural", "olds"}, {"kind", "Old"}};
  ASSERT_EQ(Send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                 {{"metadata", {{"name", "olds.example.com"}}},
                  {"spec",
                   {{"group", "example.com"},
                    {"scope", "Namespaced"},
                    {"names", names},
                    {"versions", json::array({version})}}}})
                .code,
            201);
  const Response response = rest_->Handle(Ask("GET", "/apis/example.com/v1beta1/olds"));
  ASSERT_FALSE(response.headers.empty());
  EXPECT_EQ(response.headers[0].second, "299 - \"example.com/v1beta1 Old is deprecated\"");
}

// kubernetes: staging/src/k8s.io/api/core/v1/zz_generated.prerelease-lifecycle.go.
TEST_F(RestTest, AClusterSaysWhichKubernetesItIsAndFrom133OnWarnsOfEndpoints) {
  const auto warned = [&] {
    Response response = rest_->Handle(Ask("GET", "/api/v1/namespaces/default/endpoints"));
    for (const auto& [name, value] : response.headers) {
      if (name == "Warning") return value;
    }
    return std::string();
  };
  EXPECT_EQ(Get("/version").body["gitVersion"], "v1.27.16");
  EXPECT_EQ(warned(), "");
  options_.release = KubernetesRelease("1.33.5");
  Restart();
  EXPECT_EQ(Get("/version").body["gitVersion"], "v1.33.5");
  EXPECT_EQ(Get("/version").body["minor"], "33");
  EXPECT_EQ(Get("/api/v1/nodes/node1").body["status"]["nodeInfo"]["kubeletVersion"], "v1.33.5");
  EXPECT_EQ(warned(), R"(299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")");
}

}  // namespace
}  // namespace wavetank::fakekube::http
