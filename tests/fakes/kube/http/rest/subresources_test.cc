// Evictions and budgets, bindings, namespaces' finalizers, what Go's zeroes and nulls mean, what etcd would not take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/fakes/kube/http/rest_fixture.h"

namespace wavetank::fakekube::http {
namespace {

using ::testing::HasSubstr;

class SubresourceTest : public RestTest {
 protected:
  void Settle() {
    for (int i = 0; i < 1000 && !cluster_->Settled(); ++i) kernel_.RunUntil(kernel_.Now() + 100ms);
    ASSERT_TRUE(cluster_->Settled());
  }
  void MakePod(const std::string& name, const json& more = json::object()) {
    json spec = {{"containers", {{{"name", "c"}, {"image", "x"}}}}};
    spec.update(more);
    const Answer made =
        Send("POST", kPods, {{"metadata", {{"name", name}, {"labels", {{"app", "a"}}}}}, {"spec", spec}});
    ASSERT_EQ(made.code, 201) << made.body;
    Settle();
  }
  Answer Evict(const std::string& pod, const json& options = nullptr) {
    json body = {{"apiVersion", "policy/v1"}, {"kind", "Eviction"}, {"metadata", {{"name", pod}}}};
    if (!options.is_null()) body["deleteOptions"] = options;
    return Send("POST", kPods + "/" + pod + "/eviction", body);
  }
  bool Going(const std::string& pod) {
    const Answer answer = Get(kPods + "/" + pod);
    return answer.code == 404 || answer.body["metadata"].contains("deletionTimestamp");
  }

  const std::string kPods = "/api/v1/namespaces/default/pods";
};

TEST_F(SubresourceTest, ADryEvictionEvictsNothing) {
  MakePod("a");
  EXPECT_EQ(Evict("a", {{"dryRun", {"All"}}}).code, 201);
  EXPECT_FALSE(Going("a"));
  EXPECT_EQ(Evict("a").code, 201);
  EXPECT_TRUE(Going("a"));
}

TEST_F(SubresourceTest, ABudgetStopsEvictionsThatItDoesNotAllow) {
  for (const char* pod : {"a", "b"}) MakePod(pod);
  ASSERT_EQ(Send("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
                 {{"metadata", {{"name", "one"}}},
                  {"spec", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "a"}}}}}}}})
                .code,
            201);
  Answer early = Evict("a");
  EXPECT_EQ(early.code, 429);
  EXPECT_THAT(early.body["details"]["causes"][0]["message"].get<std::string>(), HasSubstr("is still being processed"));
  Settle();
  EXPECT_EQ(Evict("a").code, 201);
  const Answer refused = Evict("b");
  EXPECT_EQ(refused.code, 429);
  EXPECT_EQ(refused.body["message"], "Cannot evict pod as it would violate the pod's disruption budget.");
  EXPECT_EQ(refused.body["details"]["causes"][0]["reason"], "DisruptionBudget");
  EXPECT_FALSE(Going("b"));
}

TEST_F(SubresourceTest, ACustomResourceIsScaledWhereItsDefinitionSays) {
  const json scale = {{"specReplicasPath", ".spec.size"},
                      {"statusReplicasPath", ".status.ready"},
                      {"labelSelectorPath", ".status.selector"}};
  const json version = {
      {"name", "v1"},
      {"served", true},
      {"storage", true},
      {"subresources", {{"scale", scale}}},
      {"schema", {{"openAPIV3Schema", {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}}}}}};
  ASSERT_EQ(Send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                 {{"metadata", {{"name", "widgets.example.com"}}},
                  {"spec",
                   {{"group", "example.com"},
                    {"scope", "Namespaced"},
                    {"names", {{"plural", "widgets"}, {"kind", "Widget"}}},
                    {"versions", json::array({version})}}}})
                .code,
            201);
  const std::string widgets = "/apis/example.com/v1/namespaces/default/widgets";
  ASSERT_EQ(
      Send("POST", widgets,
           {{"metadata", {{"name", "w"}}}, {"spec", {{"size", 2}}}, {"status", {{"ready", 1}, {"selector", "a=b"}}}})
          .code,
      201);
  json shown = Get(widgets + "/w/scale").body;
  EXPECT_EQ(shown["spec"], (json{{"replicas", 2}})) << shown;
  EXPECT_EQ(shown["status"], (json{{"replicas", 1}, {"selector", "a=b"}})) << shown;
  shown["spec"]["replicas"] = 5;
  EXPECT_EQ(Send("PUT", widgets + "/w/scale", shown).code, 200);
  EXPECT_EQ(Get(widgets + "/w").body["spec"], (json{{"size", 5}}));
  ASSERT_EQ(Send("POST", widgets, {{"metadata", {{"name", "none"}}}}).code, 201);
  EXPECT_EQ(Get(widgets + "/none/scale").body["message"],
            "Internal error occurred: the spec replicas field \".spec.size\" does not exist");
}

TEST_F(SubresourceTest, ABindingPutsAPodOnANodeOnce) {
  MakePod("a", {{"schedulerName", "mine"}});
  const json binding = {{"target", {{"kind", "Node"}, {"name", "node1"}}}};
  EXPECT_EQ(Send("POST", kPods + "/a/binding", binding).code, 201);
  Settle();
  EXPECT_EQ(Get(kPods + "/a").body["spec"]["nodeName"], "node1");
  const Answer again = Send("POST", kPods + "/a/binding", binding);
  EXPECT_EQ(again.code, 409);
  EXPECT_THAT(again.body["message"].get<std::string>(), HasSubstr("is already assigned to node \"node1\""));
}

TEST_F(SubresourceTest, ANamespaceWaitsForItsFinalizers) {
  json body = {{"metadata", {{"name", "held"}}}, {"spec", {{"finalizers", {"kubernetes", "example.com/mine"}}}}};
  ASSERT_EQ(Send("POST", "/api/v1/namespaces", body).code, 201);
  EXPECT_EQ(Get("/api/v1/namespaces/default").body["spec"]["finalizers"], json::array({"kubernetes"}));
  EXPECT_EQ(Send("DELETE", "/api/v1/namespaces/held").body["status"]["phase"], "Terminating");
  const Answer refused = Send("POST", "/api/v1/namespaces/held/configmaps", ConfigMap("late"));
  EXPECT_EQ(refused.code, 403);
  EXPECT_THAT(refused.body["message"].get<std::string>(), HasSubstr("because it is being terminated"));
  EXPECT_EQ(refused.body["details"]["causes"][0]["reason"], "NamespaceTerminating") << refused.body;
  body = Get("/api/v1/namespaces/held").body;
  // Not by an ordinary write.
  body["spec"]["finalizers"] = json::array();
  EXPECT_EQ(Send("PUT", "/api/v1/namespaces/held", body).code, 200);
  EXPECT_EQ(Get("/api/v1/namespaces/held").code, 200);
  body = Get("/api/v1/namespaces/held").body;
  body["spec"]["finalizers"] = json::array();
  EXPECT_EQ(Send("PUT", "/api/v1/namespaces/held/finalize", body).code, 200);
  EXPECT_EQ(Get("/api/v1/namespaces/held").code, 404);
}

TEST_F(SubresourceTest, NullsAndZeroesSayNothing) {
  const std::string services = "/api/v1/namespaces/default/services";
  const Answer service =
      Send("POST", services,
           {{"metadata", {{"name", "a"}, {"labels", nullptr}}},
            {"spec",
             {{"ports", {{{"port", 80}, {"targetPort", 0}}, {{"name", "x"}, {"port", 81}, {"targetPort", ""}}}},
              {"selector", nullptr}}}});
  EXPECT_EQ(service.code, 422) << "the first port needs a name";
  json body = {{"metadata", {{"name", "a"}, {"labels", nullptr}}},
               {"spec", {{"ports", {{{"port", 80}, {"targetPort", 0}}}}, {"selector", nullptr}}}};
  const Answer one = Send("POST", services, body);
  ASSERT_EQ(one.code, 201) << one.body;
  EXPECT_EQ(one.body["spec"]["ports"][0]["targetPort"], 80);
  EXPECT_FALSE(one.body["spec"].contains("selector"));
  EXPECT_FALSE(one.body["metadata"].contains("labels"));
  const Answer deployment =
      Send("POST", "/apis/apps/v1/namespaces/default/deployments",
           {{"metadata", {{"name", "d"}, {"annotations", {{"a", nullptr}}}}},
            {"spec",
             {{"selector", {{"matchLabels", {{"app", "d"}}}}},
              {"template",
               {{"metadata", {{"creationTimestamp", nullptr}, {"labels", {{"app", "d"}}}}},
                {"spec", {{"containers", {{{"name", "c"}, {"image", "x"}, {"env", nullptr}}}}}}}}}}});
  ASSERT_EQ(deployment.code, 201) << deployment.body;
  EXPECT_FALSE(deployment.body["spec"]["template"]["spec"]["containers"][0].contains("env"));
  EXPECT_EQ(deployment.body["metadata"]["annotations"]["a"], "") << "of a mapping of texts the key stays";
}

TEST_F(SubresourceTest, WhatAWebhookDeniesIsNotStoredHoweverItIsWritten) {
  rest_options_.webhooks = [](const json& object) {
    http::WebhookVerdict verdict;
    if (object["metadata"].value("labels", json::object()).contains("bad")) {
      verdict.denied = "admission webhook \"w\" denied it";
    }
    return verdict;
  };
  Restart();
  const std::string maps = "/api/v1/namespaces/default/configmaps", one = maps + "/one";
  const json good = {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", "one"}}}};
  json bad = good;
  bad["metadata"]["labels"] = {{"bad", "1"}};
  const auto denied = [](const Answer& answer) {
    return answer.code == 400 && answer.body["message"] == "admission webhook \"w\" denied it";
  };
  EXPECT_TRUE(denied(Send("POST", maps, bad)));
  EXPECT_TRUE(denied(Send("POST", maps + "?dryRun=All", bad)));
  EXPECT_EQ(Send("POST", maps, good).code, 201);
  EXPECT_TRUE(denied(Send("PUT", one, bad)));
  EXPECT_TRUE(denied(Send("PATCH", one, {{"metadata", bad["metadata"]}}, "application/merge-patch+json")));
  EXPECT_TRUE(denied(Send("PATCH", one + "?fieldManager=me", bad, "application/apply-patch+yaml")));
  EXPECT_TRUE(denied(Send("PATCH", one + "?fieldManager=me&dryRun=All", bad, "application/apply-patch+yaml")));
  EXPECT_FALSE(Send("GET", one).body["metadata"].contains("labels"));
}

TEST_F(SubresourceTest, AWebhookThatCannotBeAskedIsTheServersFailure) {
  rest_options_.webhooks = [](const json&) {
    return http::WebhookVerdict{.denied = "Internal error occurred: failed calling webhook \"w\"", .failed = true};
  };
  Restart();
  const Answer answer = Send("POST", "/api/v1/namespaces/default/configmaps",
                             {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", "one"}}}});
  EXPECT_EQ(answer.code, 500);
  EXPECT_EQ(answer.body["reason"], "InternalError");
}

TEST_F(SubresourceTest, WhatAWebhookWarnsOfReachesTheClientHoweverItWrites) {
  rest_options_.webhooks = [](const json&) { return http::WebhookVerdict{.warnings = {"say \"when\"", "second"}}; };
  Restart();
  const std::string maps = "/api/v1/namespaces/default/configmaps", one = maps + "/one";
  const json good = {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", "one"}}}};
  const auto warnings = [&](const std::string& method, const std::string& target, const json& body = nullptr,
                            const std::string& type = "application/json") {
    std::vector<std::string> out;
    for (const auto& [name, value] : rest_->Handle(Ask(method, target, body, type)).headers) {
      if (name == "Warning") out.push_back(value);
    }
    return out;
  };
  const auto both = ::testing::ElementsAre(R"(299 - "say \"when\"")", R"(299 - "second")");
  EXPECT_THAT(warnings("POST", maps + "?dryRun=All", good), both);
  EXPECT_THAT(warnings("POST", maps, good), both);
  EXPECT_THAT(warnings("PATCH", one, {{"data", {{"a", "b"}}}}, "application/merge-patch+json"), both);
  EXPECT_THAT(warnings("PATCH", one + "?fieldManager=me", good, "application/apply-patch+yaml"), both);
  EXPECT_THAT(warnings("GET", one), ::testing::IsEmpty());
}

TEST_F(SubresourceTest, WhatEtcdWouldNotTakeIsRefused) {
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  EXPECT_EQ(Send("POST", maps, ConfigMap("most", json::object(), std::string(1 << 20, 'x'))).code, 201);
  json pod = json::parse(R"({"metadata": {"name": "more"}, "spec": {"containers": [
      {"name": "c", "image": "x", "env": [{"name": "MORE"}]}]}})");
  pod["spec"]["containers"][0]["env"][0]["value"] = std::string(1600 << 10, 'x');
  const Answer more = Send("POST", "/api/v1/namespaces/default/pods", pod);
  EXPECT_EQ(more.code, 500);
  EXPECT_EQ(more.body["message"], "etcdserver: request is too large");
}

TEST_F(SubresourceTest, AStatusBringsItsAnnotationsAlong) {
  MakePod("a");
  const Answer patched = Send("PATCH", kPods + "/a/status",
                              {{"metadata", {{"annotations", {{"seen", "yes"}}}}}, {"status", {{"message", "m"}}}},
                              "application/merge-patch+json");
  ASSERT_EQ(patched.code, 200) << patched.body;
  EXPECT_EQ(Get(kPods + "/a").body["metadata"]["annotations"]["seen"], "yes");
  EXPECT_EQ(Get("/api/v1/nodes?fieldSelector=spec.unschedulable%3Dfalse").body["items"].size(), 1u);
}

json WidgetDefinition(json spec) {
  const json schema = {{"type", "object"}, {"properties", {{"spec", std::move(spec)}}}};
  return {
      {"metadata", {{"name", "widgets.example.com"}}},
      {"spec",
       {{"group", "example.com"},
        {"scope", "Namespaced"},
        {"names", {{"plural", "widgets"}, {"kind", "Widget"}}},
        {"versions",
         json::array(
             {{{"name", "v1"}, {"served", true}, {"storage", true}, {"schema", {{"openAPIV3Schema", schema}}}}})}}}};
}

json Ruled(const std::string& rule) {
  return {{"type", "object"},
          {"properties", {{"a", {{"type", "integer"}}}}},
          {"x-kubernetes-validations", {{{"rule", rule}}}}};
}

TEST_F(SubresourceTest, WhoWritesRulesThatNobodyEvaluatesIsWarned) {
  const std::string path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
  const auto warnings = [&](json spec) {
    std::string out;
    const Response response = rest_->Handle(Ask("POST", path, WidgetDefinition(std::move(spec))));
    EXPECT_EQ(response.code, 201) << response.body;
    for (const auto& [name, value] : response.headers) out += name == "Warning" ? value : "";
    return out;
  };
  EXPECT_THAT(warnings(Ruled("authorizer.path('/healthz').check('get').allowed()")),
              HasSubstr("version v1: properties[spec].x-kubernetes-validations[0].rule is kept, but not evaluated"));
  EXPECT_EQ(warnings(Ruled("self.a > 0")), "");
}

TEST_F(SubresourceTest, RulesOfADefinitionHoldForItsObjects) {
  const std::string definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const Answer wrong = Send("POST", definitions, WidgetDefinition(Ruled("self.a >")));
  EXPECT_EQ(wrong.code, 422);
  EXPECT_THAT(wrong.body["message"].get<std::string>(),
              HasSubstr("compilation failed: ERROR: <input>:1:9: Syntax error"));
  ASSERT_EQ(Send("POST", definitions, WidgetDefinition(Ruled("self.a > 0 && (!has(self.b) || true)"))).code, 201);
  const std::string path = "/apis/example.com/v1/namespaces/default/widgets";
  const auto widget = [](const char* name, int a) {
    return json{{"metadata", {{"name", name}}}, {"spec", {{"a", a}}}};
  };
  EXPECT_EQ(Send("POST", path, widget("x", 1)).code, 201);
  const Answer refused = Send("POST", path, widget("y", 0));
  EXPECT_EQ(refused.code, 422);
  EXPECT_EQ(refused.body["message"],
            "Widget.example.com \"y\" is invalid: spec: Invalid value: \"object\": failed rule: self.a > 0 && "
            "(!has(self.b) || true)");
  EXPECT_EQ(Send("PATCH", path + "/x", {{"spec", {{"a", -1}}}}, "application/merge-patch+json").code, 422);
}

TEST_F(SubresourceTest, SomeKindsAreShownAsTheyWereWhenTheyGo) {
  ASSERT_EQ(Send("POST", "/api/v1/namespaces/default/services",
                 {{"metadata", {{"name", "a"}}}, {"spec", {{"ports", {{{"port", 80}}}}}}})
                .code,
            201);
  EXPECT_EQ(Send("DELETE", "/api/v1/namespaces/default/services/a").body["kind"], "Service");
  Send("POST", "/api/v1/namespaces/default/configmaps", ConfigMap("a"));
  EXPECT_EQ(Send("DELETE", "/api/v1/namespaces/default/configmaps/a").body["kind"], "Status");
}

}  // namespace
}  // namespace wavetank::fakekube::http
