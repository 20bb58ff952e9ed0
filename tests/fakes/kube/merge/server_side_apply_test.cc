#include "fakes/kube/merge/server_side_apply.h"

#include <fmt/format.h>

#include "core/base/json_access.h"
#include "core/base/status.h"
#include "fakes/kube/merge/field_set.h"
#include "fakes/kube/objects/api_error.h"
#include "tests/fakes/kube/cluster_fixture.h"

namespace wavetank::fakekube {
namespace {

json Service(const char* spec, const char* labels = "{}") {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", {{"name", "web"}, {"namespace", "default"}, {"labels", json::parse(labels)}}},
          {"spec", json::parse(spec)}};
}

class ServerSideApplyTest : public ClusterTest {
 protected:
  absl::StatusOr<ObjectRef> Apply(const json& body, const char* manager, bool force = false) {
    WriteOptions options;
    options.field_manager = manager;
    return api().ServerSideApply(body, force, options);
  }
  json Get() { return api().Get("Service", {"default", "web"})->body; }
  // Managers of the path, "kubectl/Apply" each.
  std::string ManagersOf(const FieldSet::Path& path) {
    std::string out;
    for (const json& entry : Get()["metadata"].value("managedFields", json::array())) {
      if (FieldSet::FromJson(entry["fieldsV1"]).Has(path))
        out += entry["manager"].get<std::string>() + "/" + entry["operation"].get<std::string>() + " ";
    }
    return out;
  }
};

TEST_F(ServerSideApplyTest, NobodyPaysForFieldsBeforeTheFirstApply) {
  ApplyText(kWeb);
  EXPECT_FALSE(api().Get("Service", {"sample", "web"})->body["metadata"].contains("managedFields"));
  json imported = Service(R"({"ports":[{"port":80}]})");
  imported["metadata"]["managedFields"] = json::array({{{"manager", "elsewhere"}}});
  ASSERT_TRUE(api().Create(imported).ok());
  EXPECT_FALSE(Get()["metadata"].contains("managedFields"));
}

TEST_F(ServerSideApplyTest, FieldsAreNamedAsKubernetesNamesThem) {
  ASSERT_TRUE(
      Apply(Service(R"({"ports":[{"port":80,"name":"http"}],"selector":{"app":"web"}})", R"({"a":"b"})"), "me").ok());
  const json entry = Get()["metadata"]["managedFields"][0];
  EXPECT_EQ(entry["manager"], "me");
  EXPECT_EQ(entry["operation"], "Apply");
  EXPECT_EQ(entry["fieldsType"], "FieldsV1");
  EXPECT_EQ(entry["fieldsV1"], json::parse(R"({"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:ports":{
      "k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}},"f:selector":{}}})"));
}

TEST_F(ServerSideApplyTest, ADroppedFieldGoesUnlessAnotherManagesItToo) {
  ASSERT_TRUE(
      Apply(Service(R"({"ports":[{"port":80,"name":"http"},{"port":81,"name":"b"}]})", R"({"a":"1","b":"2"})"), "one")
          .ok());
  ASSERT_TRUE(Apply(Service(R"({"ports":[{"port":80,"name":"http"}]})", R"({"b":"2"})"), "two").ok());
  ASSERT_TRUE(Apply(Service(R"({"ports":[{"port":80,"name":"http"}]})"), "one").ok());
  EXPECT_EQ(Get()["metadata"]["labels"], (json{{"b", "2"}}));
  EXPECT_EQ(Get()["spec"]["ports"].size(), 1u);
  EXPECT_EQ(ManagersOf({"f:metadata", "f:labels", "f:b"}), "two/Apply ");
}

TEST_F(ServerSideApplyTest, AConflictNamesFieldAndManagerAndForceTakesTheField) {
  ASSERT_TRUE(Apply(Service(R"({"ports":[{"port":80}],"type":"ClusterIP"})"), "one").ok());
  const json other = Service(R"({"ports":[{"port":80}],"type":"NodePort"})");
  const absl::Status refused = Apply(other, "two").status();
  EXPECT_TRUE(absl::IsAborted(refused));
  EXPECT_EQ(Message(refused), R"(Apply failed with 1 conflict: conflict with "one": .spec.type)");
  const std::optional<ApiError> error = ApiErrorOf(refused);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->reason, "Conflict");
  EXPECT_EQ(error->details["causes"][0]["reason"], "FieldManagerConflict");
  EXPECT_EQ(error->details["causes"][0]["field"], ".spec.type");
  EXPECT_EQ(Get()["spec"]["type"], "ClusterIP");
  ASSERT_TRUE(Apply(other, "two", /*force=*/true).ok());
  EXPECT_EQ(Get()["spec"]["type"], "NodePort");
  EXPECT_EQ(ManagersOf({"f:spec", "f:type"}), "two/Apply ");
  // The same value is no conflict: both manage it.
  ASSERT_TRUE(Apply(Service(R"({"ports":[{"port":80}],"type":"NodePort"})"), "one").ok());
  EXPECT_EQ(ManagersOf({"f:spec", "f:type"}), "one/Apply two/Apply ");
}

TEST_F(ServerSideApplyTest, WhatWasThereBeforeTheFirstApplyBelongsToNobodyInParticular) {
  ASSERT_TRUE(api().Create(Service(R"({"ports":[{"port":80}],"sessionAffinity":"None"})", R"({"a":"1"})")).ok());
  const absl::Status refused =
      Apply(Service(R"({"ports":[{"port":80}],"sessionAffinity":"ClientIP"})", R"({"a":"2"})"), "me").status();
  EXPECT_EQ(Message(refused),
            "Apply failed with 2 conflicts: conflicts with \"before-first-apply\" using v1 at 2023-09-01T00:00:00Z:\n"
            "- .metadata.labels.a\n- .spec.sessionAffinity");
}

TEST_F(ServerSideApplyTest, KubectlTakesOverWhatItsClientSideApplyWrote) {
  json before = Service(R"({"ports":[{"port":80}],"sessionAffinity":"None"})");
  const std::string last = before.dump();
  before["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = last;
  ASSERT_TRUE(api().Create(before).ok());
  const json now = Service(R"({"ports":[{"port":80}],"sessionAffinity":"ClientIP"})");
  EXPECT_FALSE(Apply(now, "another").ok());
  EXPECT_TRUE(Apply(now, "kubectl").ok());
  EXPECT_EQ(Get()["spec"]["sessionAffinity"], "ClientIP");
}

TEST_F(ServerSideApplyTest, WhatClientSideApplyWroteGoesOnceKubectlHasMovedItsFieldsToItsApply) {
  json before = Service(R"({"ports":[{"port":80}],"sessionAffinity":"ClientIP"})", R"({"a":"1","b":"2"})");
  const std::string last = before.dump();
  before["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = last;
  ASSERT_TRUE(api().Create(before).ok());
  const json now = Service(R"({"ports":[{"port":80}]})", R"({"a":"1"})");
  ASSERT_TRUE(Apply(now, "kubectl").ok());
  EXPECT_EQ(ManagersOf({"f:metadata", "f:labels", "f:b"}), "kubectl-client-side-apply/Update ");
  EXPECT_EQ(Get()["metadata"]["labels"], (json{{"a", "1"}, {"b", "2"}}));
  // What `kubectl apply --server-side` does next (client-go: util/csaupgrade): one Apply of both sets.
  json moved = Get();
  FieldSet both;
  for (const json& entry : moved["metadata"]["managedFields"]) {
    if (entry["manager"] != "before-first-apply") both.Add(FieldSet::FromJson(entry["fieldsV1"]));
  }
  moved["metadata"]["managedFields"] = json::array({{{"manager", "kubectl"},
                                                     {"operation", "Apply"},
                                                     {"apiVersion", "v1"},
                                                     {"fieldsType", "FieldsV1"},
                                                     {"fieldsV1", both.ToJson()}}});
  ASSERT_TRUE(api().Update(moved, {}).ok());
  EXPECT_EQ(ManagersOf({"f:metadata", "f:labels", "f:b"}), "kubectl/Apply ");
  ASSERT_TRUE(Apply(now, "kubectl").ok());
  EXPECT_EQ(Get()["metadata"]["labels"], (json{{"a", "1"}}));
  EXPECT_EQ(Get()["spec"]["sessionAffinity"], "None");
}

TEST_F(ServerSideApplyTest, WhoGoesBackToClientSideApplyFindsWhatKubectlAppliedLast) {
  const char* const annotation = "kubectl.kubernetes.io/last-applied-configuration";
  const auto said = [&] { return Text(At(Get(), {"metadata", "annotations"}), annotation); };
  const json plain = Service(R"({"ports":[{"port":80}]})");
  ASSERT_TRUE(Apply(plain, "kubectl").ok());
  EXPECT_EQ(said(), "") << "client-side apply was never here";
  json body = Get();
  body["metadata"]["annotations"][annotation] = plain.dump();
  ASSERT_TRUE(api().Update(body, {}).ok());
  json now = Service(R"({"ports":[{"port":80}]})", R"({"a":"<1>"})");
  ASSERT_TRUE(Apply(now, "another", true).ok());
  EXPECT_EQ(said(), plain.dump());
  now["metadata"]["annotations"] = {{annotation, "x"}, {"b", "2"}};
  ASSERT_TRUE(Apply(now, "kubectl", true).ok());
  EXPECT_EQ(said(),
            R"({"apiVersion":"v1","kind":"Service","metadata":{"annotations":{"b":"2"},"labels":{"a":"\u003c1\u003e"},)"
            R"("name":"web","namespace":"default"},"spec":{"ports":[{"port":80}]}})"
            "\n");
}

TEST_F(ServerSideApplyTest, OfManyWritersTheOldestBecomeOne) {
  ASSERT_TRUE(Apply(Service(R"({"ports":[{"port":80}]})"), "one").ok());
  for (int i = 0; i < 12; ++i) {
    json body = Get();
    body["metadata"]["labels"]["l" + std::to_string(i)] = "x";
    WriteOptions options;
    options.field_manager = fmt::format("writer{:02}", i);
    ASSERT_TRUE(api().Update(body, options).ok());
  }
  EXPECT_EQ(ManagersOf({"f:metadata", "f:labels", "f:l0"}), "ancient-changes/Update ");
  EXPECT_EQ(ManagersOf({"f:metadata", "f:labels", "f:l2"}), "ancient-changes/Update ");
  EXPECT_EQ(ManagersOf({"f:metadata", "f:labels", "f:l3"}), "writer03/Update ");
  EXPECT_EQ(Get()["metadata"]["managedFields"].size(), 11u) << "ten of writers, and the apply";
}

TEST_F(ServerSideApplyTest, AnUpdateTakesWhatItChanges) {
  ASSERT_TRUE(Apply(Service(R"({"ports":[{"port":80}],"type":"ClusterIP"})", R"({"a":"1","b":"2"})"), "one").ok());
  json body = Get();
  body["metadata"]["labels"] = {{"a", "9"}};
  WriteOptions options;
  options.field_manager = "editor";
  ASSERT_TRUE(api().Update(body, options).ok());
  EXPECT_EQ(ManagersOf({"f:metadata", "f:labels", "f:a"}), "editor/Update ");
  EXPECT_EQ(ManagersOf({"f:metadata", "f:labels", "f:b"}), "");
  EXPECT_EQ(ManagersOf({"f:spec", "f:type"}), "one/Apply ");
  EXPECT_EQ(
      Message(Apply(Service(R"({"ports":[{"port":80}]})", R"({"a":"1"})"), "one").status()),
      R"(Apply failed with 1 conflict: conflict with "editor" using v1 at 2023-09-01T00:00:00Z: .metadata.labels.a)");
  json reset = Get();
  reset["metadata"]["managedFields"] = json::array();
  ASSERT_TRUE(api().Update(reset, options).ok());
  EXPECT_FALSE(Get()["metadata"].contains("managedFields"));
}

TEST_F(ServerSideApplyTest, TheSameAgainChangesNothing) {
  const json body = Service(R"({"ports":[{"port":80,"name":"http"}],"selector":{"app":"web"}})", R"({"a":"b"})");
  ASSERT_TRUE(Apply(body, "me").ok());
  Settle();
  const int64_t version = api().resource_version();
  kernel_.RunUntil(kernel_.Now() + 5s);
  ASSERT_TRUE(Apply(body, "me").ok());
  EXPECT_EQ(api().resource_version(), version);
}

TEST_F(ServerSideApplyTest, AnElementWithoutItsKeysIsRefused) {
  EXPECT_TRUE(Apply(Service(R"({"ports":[{"port":80}]})"), "me").ok());
  EXPECT_EQ(ApiErrorOf(Apply(Service(R"({"ports":[{"name":"http"}]})"), "me").status())->code, 400);
}

TEST_F(ServerSideApplyTest, ElementsOfOthersKeepTheirPlace) {
  ASSERT_TRUE(Apply(Service(R"({"ports":[{"port":80,"name":"a"},{"port":82,"name":"c"}]})"), "one").ok());
  ASSERT_TRUE(Apply(Service(R"({"ports":[{"port":81,"name":"b"}]})"), "two").ok());
  std::string order;
  const json body = Get();
  for (const json& port : body["spec"]["ports"]) order += port["name"].get<std::string>();
  EXPECT_EQ(order, "bac");
  ASSERT_TRUE(Apply(Service(R"({"ports":[{"port":82,"name":"c"}]})"), "one").ok());
  EXPECT_EQ(Get()["spec"]["ports"].size(), 2u);
}

TEST_F(ServerSideApplyTest, TheSameElementTwiceIsRefused) {
  EXPECT_EQ(
      ApiErrorOf(Apply(Service(R"({"ports":[{"port":80},{"port":80,"protocol":"TCP"}]})"), "me").status())->message,
      "failed to create typed patch object: .spec.ports: duplicate entries for key [port=80,protocol=\"TCP\"]");
}

// What a client makes or changes without an apply: mappings and lists that it brings are its own, too.
TEST_F(ServerSideApplyTest, WhoBringsAMappingOrAListManagesIt) {
  json body =
      Service(R"({"ports":[{"port":80}],"sessionAffinityConfig":{"clientIP":{"timeoutSeconds":9}}})", R"({"a":"1"})");
  TrackCreation(body, {"Service", ""}, {"kubectl-create", "", "2023-09-01T00:00:00Z"});
  EXPECT_EQ(body["metadata"]["managedFields"][0]["fieldsV1"], json::parse(R"({
      "f:metadata":{"f:labels":{".":{},"f:a":{}}},
      "f:spec":{"f:ports":{".":{},"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}},
                "f:sessionAffinityConfig":{".":{},"f:clientIP":{".":{},"f:timeoutSeconds":{}}}}})"));
  json after = body;
  after["metadata"]["annotations"] = {{"note", "x"}};
  after["spec"].erase("sessionAffinityConfig");
  TrackUpdate(body, after, {"Service", ""}, {"kubectl-edit", "", "2023-09-01T00:00:05Z"});
  const json entries = after["metadata"]["managedFields"];
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_FALSE(entries[0]["fieldsV1"]["f:spec"].contains("f:sessionAffinityConfig"));
  EXPECT_EQ(entries[1]["fieldsV1"], json::parse(R"({"f:metadata":{"f:annotations":{".":{},"f:note":{}}}})"));
}

class DefinedListsTest : public ServerSideApplyTest {
 protected:
  DefinedListsTest() {
    const absl::StatusOr<ObjectRef> made = api().Create(json::parse(R"({
      "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
      "metadata": {"name": "routes.example.com"},
      "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Route", "plural": "routes"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
          "properties": {"spec": {"type": "object", "properties": {
            "rules": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["host", "proto"],
              "items": {"type": "object", "properties": {"host": {"type": "string"},
                "proto": {"type": "string", "default": "TCP"}, "weight": {"type": "integer"}}}},
            "names": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "plain": {"type": "array", "items": {"type": "string"}},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}}
          }}}}}}]}})"));
    EXPECT_TRUE(made.ok()) << made.status();
  }
  static json Route(const char* spec) {
    return {{"apiVersion", "example.com/v1"},
            {"kind", "Route"},
            {"metadata", {{"name", "r"}, {"namespace", "default"}}},
            {"spec", json::parse(spec)}};
  }
  json Spec() { return api().Get("Route.example.com", {"default", "r"})->body["spec"]; }
};

TEST_F(DefinedListsTest, AMapsElementsMergeByTheirKeys) {
  ASSERT_TRUE(Apply(Route(R"({"rules":[{"host":"a","weight":1}]})"), "one").ok());
  ASSERT_TRUE(Apply(Route(R"({"rules":[{"host":"b","proto":"UDP","weight":2}]})"), "two").ok());
  EXPECT_EQ(Spec()["rules"].size(), 2u);
  const json entry = api().Get("Route.example.com", {"default", "r"})->body["metadata"]["managedFields"][0];
  EXPECT_EQ(entry["fieldsV1"], json::parse(R"({"f:spec":{"f:rules":{
      "k:{\"host\":\"a\",\"proto\":\"TCP\"}":{".":{},"f:host":{},"f:weight":{}}}}})"));
  ASSERT_TRUE(Apply(Route(R"({})"), "two").ok());
  EXPECT_EQ(Spec()["rules"], json::parse(R"([{"host":"a","weight":1}])"));
}

TEST_F(DefinedListsTest, AConflictNamesTheElementAndForceTakesIt) {
  ASSERT_TRUE(Apply(Route(R"({"rules":[{"host":"a","weight":1}]})"), "one").ok());
  EXPECT_EQ(Message(Apply(Route(R"({"rules":[{"host":"a","proto":"TCP","weight":3}]})"), "two").status()),
            "Apply failed with 1 conflict: conflict with \"one\": .spec.rules[host=\"a\",proto=\"TCP\"].weight");
  ASSERT_TRUE(Apply(Route(R"({"rules":[{"host":"a","weight":3}]})"), "two", /*force=*/true).ok());
  EXPECT_EQ(Spec()["rules"][0]["weight"], 3);
}

TEST_F(DefinedListsTest, ASetIsMergedByItsValues) {
  ASSERT_TRUE(Apply(Route(R"({"names":["a","b"]})"), "one").ok());
  ASSERT_TRUE(Apply(Route(R"({"names":["b","c"]})"), "two").ok());
  EXPECT_EQ(Spec()["names"].size(), 3u);
  ASSERT_TRUE(Apply(Route(R"({"names":["a"]})"), "one").ok());
  EXPECT_EQ(Spec()["names"].size(), 3u) << "b is two's as well";
}

TEST_F(DefinedListsTest, WhatIsAtomicChangesAsAWhole) {
  ASSERT_TRUE(Apply(Route(R"({"plain":["a"],"whole":{"x":"1"}})"), "one").ok());
  EXPECT_EQ(Message(Apply(Route(R"({"plain":["b"],"whole":{"y":"2"}})"), "two").status()),
            "Apply failed with 2 conflicts: conflicts with \"one\":\n- .spec.plain\n- .spec.whole");
  ASSERT_TRUE(Apply(Route(R"({"plain":["b"],"whole":{"y":"2"}})"), "two", true).ok());
  EXPECT_EQ(Spec()["whole"], (json{{"y", "2"}}));
}

TEST_F(DefinedListsTest, AnElementWithoutAKeyThatHasNoDefaultIsRefused) {
  EXPECT_EQ(
      ApiErrorOf(Apply(Route(R"({"rules":[{"weight":1}]})"), "one").status())->message,
      "failed to create typed patch object: .spec.rules: element 0: associative list with keys has an element that "
      "omits key field \"host\" (and doesn't have default value)");
}

}  // namespace
}  // namespace wavetank::fakekube
