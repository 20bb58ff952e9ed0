#include <algorithm>
// What schemas of definitions and the types of Kubernetes' own API do to what clients write.
#include "fakes/kube/http/api/schema.h"

#include <tuple>

#include "fakes/kube/http/api/api_types.h"
#include "fakes/kube/http/api/api_types_text.h"
#include "tests/fakes/kube/http/rest_fixture.h"

namespace wavetank::fakekube::http {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<std::string> Problems(const json& schema, const json& object) {
  std::vector<std::string> out;
  for (const FieldError& error : ValidateBySchema(schema, object)) out.push_back(error.field + ": " + error.message);
  return out;
}

json Spec(const json& schema) { return {{"type", "object"}, {"properties", {{"spec", schema}}}}; }

TEST(Schema, ListsAreSetsAndMapsWhereTheySaySo) {
  const json set = {{"type", "array"}, {"x-kubernetes-list-type", "set"}};
  EXPECT_THAT(Problems(Spec(set), {{"spec", {"a", "b", "a"}}}), ElementsAre("spec[2]: Duplicate value: \"a\""));
  const json map = {{"type", "array"}, {"x-kubernetes-list-type", "map"}, {"x-kubernetes-list-map-keys", {"name"}}};
  const json one = {{"name", "x"}, {"value", 1}}, other = {{"name", "y"}, {"value", 1}};
  EXPECT_THAT(Problems(Spec(map), {{"spec", {one, other}}}), IsEmpty());
  EXPECT_THAT(Problems(Spec(map), {{"spec", {one, one}}}), testing::SizeIs(1));
}

TEST(Schema, TextsHaveTheirFormats) {
  const auto holds = [](const char* format, const char* text) {
    return Problems(Spec({{"type", "string"}, {"format", format}}), {{"spec", text}}).empty();
  };
  for (const auto& [format, good, bad] :
       {std::tuple{"date-time", "2023-09-01T00:00:00Z", "yesterday"}, std::tuple{"ipv4", "10.0.0.1", "10.0.0.256"},
        std::tuple{"cidr", "10.0.0.0/8", "10.0.0.0"},
        std::tuple{"uuid", "7d5cdb0a-0000-4000-8000-000000000000", "7d5c"}, std::tuple{"byte", "YQ==", "?"},
        std::tuple{"hostname", "a.example", "a..b"}}) {
    EXPECT_TRUE(holds(format, good)) << format;
    EXPECT_FALSE(holds(format, bad)) << format;
  }
  EXPECT_TRUE(holds("nobody-knows", "x"));
  EXPECT_THAT(Problems(Spec({{"type", "string"}, {"format", "ipv4"}}), {{"spec", "x"}}),
              ElementsAre("spec: Invalid value: \"x\": spec in body must be of type ipv4: \"x\""));
}

TEST(Schema, RefusesInTheApiServersWords) {
  const auto problems = [](const json& schema, const json& value) {
    return Problems(Spec({{"type", "object"}, {"properties", {{"a", schema}}}}), {{"spec", {{"a", value}}}});
  };
  EXPECT_THAT(problems({{"type", "integer"}}, "3"),
              ElementsAre("spec.a: Invalid value: \"string\": spec.a in body must be of type integer: \"string\""));
  EXPECT_THAT(problems({{"type", "integer"}}, 3), IsEmpty());
  EXPECT_THAT(problems({{"type", "integer"}}, 3.0), IsEmpty());
  EXPECT_THAT(problems({{"type", "integer"}}, 3.5),
              ElementsAre("spec.a: Invalid value: \"number\": spec.a in body must be of type integer: \"number\""));
  EXPECT_THAT(problems({{"type", "string"}}, nullptr),
              ElementsAre("spec.a: Invalid value: \"null\": spec.a in body must be of type string: \"null\""));
  EXPECT_THAT(problems({{"type", "string"}, {"nullable", true}}, nullptr), IsEmpty());
  EXPECT_THAT(problems({{"type", "string"}, {"enum", {"x", "y"}}}, "z"),
              ElementsAre("spec.a: Unsupported value: \"z\": supported values: \"x\", \"y\""));
  EXPECT_THAT(problems({{"type", "string"}, {"pattern", "^a+$"}}, "ab"),
              ElementsAre("spec.a: Invalid value: \"ab\": spec.a in body should match '^a+$'"));
  EXPECT_THAT(problems({{"type", "string"}, {"minLength", 2}}, "\xc3\xa4"),
              ElementsAre("spec.a: Invalid value: \"\xc3\xa4\": spec.a in body should be at least 2 chars long"));
  EXPECT_THAT(problems({{"type", "integer"}, {"minimum", 1}, {"maximum", 10}}, 0),
              ElementsAre("spec.a: Invalid value: 0: spec.a in body should be greater than or equal to 1"));
  EXPECT_THAT(problems({{"type", "integer"}, {"maximum", 10}, {"exclusiveMaximum", true}}, 10),
              ElementsAre("spec.a: Invalid value: 10: spec.a in body should be less than 10"));
  EXPECT_THAT(problems({{"type", "array"}, {"maxItems", 1}, {"items", {{"type", "string"}}}}, json::array({"a", 2})),
              ElementsAre("spec.a: Too many: 2: must have at most 1 items",
                          "spec.a[1]: Invalid value: \"integer\": spec.a[1] in body must be of type string: "
                          "\"integer\""));
  EXPECT_THAT(problems({{"x-kubernetes-int-or-string", true}}, "50%"), IsEmpty());
  EXPECT_THAT(problems({{"x-kubernetes-int-or-string", true}}, true), testing::SizeIs(1));
  EXPECT_THAT(problems({{"type", "object"}, {"required", {"b"}}}, json::object()),
              ElementsAre("spec.a.b: Required value"));
  EXPECT_THAT(problems({{"type", "object"}, {"additionalProperties", {{"type", "string"}}}}, {{"k", 1}}),
              ElementsAre("spec.a.k: Invalid value: \"integer\": spec.a.k in body must be of type string: "
                          "\"integer\""));
}

TEST(Schema, CombinesAlternatives) {
  const json has_a = {{"required", {"a"}}}, has_b = {{"required", {"b"}}};
  const json one = Spec({{"type", "object"}, {"oneOf", {has_a, has_b}}});
  EXPECT_THAT(Problems(one, {{"spec", {{"a", 1}}}}), IsEmpty());
  EXPECT_THAT(Problems(one, {{"spec", {{"a", 1}, {"b", 1}}}}),
              ElementsAre(HasSubstr("must validate one and only one schema (oneOf). Found 2 valid alternatives")));
  const json any = Spec({{"type", "object"}, {"anyOf", {has_a, has_b}}});
  EXPECT_THAT(Problems(any, {{"spec", {{"a", 1}, {"b", 1}}}}), IsEmpty());
  EXPECT_THAT(Problems(any, {{"spec", json::object()}}), ElementsAre(HasSubstr("at least one schema (anyOf)")));
  EXPECT_THAT(Problems(Spec({{"not", has_a}}), {{"spec", {{"a", 1}}}}), ElementsAre(HasSubstr("(not)")));
}

TEST(Schema, DropsWhatItDoesNotKnowAndFillsInDefaults) {
  const json schema = Spec(
      {{"type", "object"},
       {"properties",
        {{"known", {{"type", "integer"}, {"default", 7}}},
         {"list", {{"type", "array"}, {"items", {{"type", "object"}, {"properties", {{"a", {{"type", "string"}}}}}}}}},
         {"free", {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}}}}}});
  json object = {{"apiVersion", "v1"},
                 {"kind", "K"},
                 {"metadata", {{"name", "n"}}},
                 {"other", 1},
                 {"spec", {{"x", 1}, {"list", {{{"a", "1"}, {"b", "2"}}}}, {"free", {{"y", {{"z", 1}}}}}}}};
  EXPECT_THAT(PruneBySchema(schema, &object), UnorderedElementsAre("other", "spec.x", "spec.list[0].b"));
  SetSchemaDefaults(schema, &object);
  EXPECT_EQ(object["spec"], (json{{"known", 7}, {"list", {{{"a", "1"}}}}, {"free", {{"y", {{"z", 1}}}}}}));
  EXPECT_TRUE(object.contains("metadata"));
}

// A definition may come from anybody.
TEST(Schema, HostileOnesAreNoDanger) {
  for (const json& schema :
       {json(nullptr), json(1), json::array(), json{{"type", 1}}, json{{"properties", json::array()}},
        json{{"items", "x"}}, json{{"required", 3}}, json{{"enum", {{"a", 1}}}}, json{{"pattern", "(("}},
        json{{"minLength", "x"}}, json{{"oneOf", {1, 2}}}, json{{"additionalProperties", 5}}, json{{"multipleOf", 0}},
        json{{"default", 1}}}) {
    json object = {{"spec", {{"a", json::array({"x", 1, nullptr})}}}};
    PruneBySchema(Spec(schema), &object);
    SetSchemaDefaults(Spec(schema), &object);
    ValidateBySchema(Spec(schema), object);
  }
  // Alternatives of alternatives, for many items each.
  json schema = {{"type", "string"}};
  for (int i = 0; i < 8; ++i) schema = {{"anyOf", {schema, schema}}, {"allOf", {schema}}};
  const json many = {{"spec", json(std::vector<int>(1000, 1))}};
  EXPECT_THAT(Problems(Spec({{"items", {{"pattern", "(a*)*b"}, {"oneOf", {schema}}}}}), many), testing::Not(IsEmpty()));
}

TEST(ApiTypes, KnowTheFieldsOfKubernetesOwnKinds) {
  const ApiType* pod = FindApiType("Pod");
  ASSERT_NE(pod, nullptr);
  const json body = {{"apiVersion", "v1"},
                     {"kind", "Pod"},
                     {"metadata", {{"name", "a"}, {"labels", {{"anything", "goes"}}}, {"lable", "x"}}},
                     {"spec",
                      {{"containers", {{{"name", "c"}, {"imge", "x"}, {"ports", {{{"containerPort", 1}}}}}}},
                       {"nodeSelector", {{"free", "yes"}}},
                       {"volumes", {{{"name", "v"}, {"emptyDir", json::object()}, {"emptyDri", json::object()}}}}}}};
  EXPECT_THAT(UnknownFields(*pod, body),
              UnorderedElementsAre("metadata.lable", "spec.containers[0].imge", "spec.volumes[0].emptyDri"));
}

// api_types.json: every type that a field names is in it, and no field says anything that is not read.
TEST(ApiTypes, TheTableIsWhole) {
  size_t types = 0, fields = 0;
  ForEachApiType([&](const ApiType& type) {
    ++types;
    for (const ApiField& field : type.fields) {
      ++fields;
      const FieldType* of = &field.type;
      while (of->of != nullptr) of = of->of.get();
      if (of->shape == FieldShape::kType) {
        EXPECT_NE(FindApiType(of->name), nullptr) << type.name << "." << field.name;
      }
      EXPECT_TRUE(std::is_partitioned(field.numbers.begin(), field.numbers.end(), [](uint16_t n) { return n != 0; }))
          << type.name << "." << field.name << ": a zero within its protobuf numbers";
    }
  });
  const json table = json::parse(ApiTypesText());
  ASSERT_EQ(types, table.size());
  ASSERT_GT(types, 300u);
  for (const auto& [type, of] : table.items()) {
    for (const auto& [name, field] : of.items()) {
      --fields;
      ASSERT_TRUE(field.is_object() && field.value("type", json()).is_string()) << type << "." << name;
      for (const auto& [key, value] : field.items()) {
        EXPECT_TRUE(key == "type" || (key == "go" && value.is_string()) ||
                    ((key == "required" || key == "zeroCounts") && value == true) ||
                    (key == "protobuf" && value.is_array() && value.size() <= 3))
            << type << "." << name << ": " << key;
      }
    }
  }
  EXPECT_EQ(fields, 0u) << "fields of one name in one type";
}

class SchemaTest : public RestTest {
 protected:
  SchemaTest() {
    const json schema = {{"type", "object"},
                         {"required", {"spec"}},
                         {"properties",
                          {{"spec",
                            {{"type", "object"},
                             {"required", {"schedule"}},
                             {"properties",
                              {{"schedule", {{"type", "string"}}},
                               {"replicas", {{"type", "integer"}, {"minimum", 1}, {"default", 1}}}}}}}}}};
    EXPECT_EQ(
        Send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
             {{"metadata", {{"name", "crontabs.stable.example.com"}}},
              {"spec",
               {{"group", "stable.example.com"},
                {"scope", "Namespaced"},
                {"names", {{"plural", "crontabs"}, {"kind", "CronTab"}, {"singular", "crontab"}}},
                {"versions",
                 {{{"name", "v1"}, {"served", true}, {"storage", true}, {"schema", {{"openAPIV3Schema", schema}}}}}}}}})
            .code,
        201);
  }
  static json CronTab(const std::string& name, const json& spec) {
    return {
        {"apiVersion", "stable.example.com/v1"}, {"kind", "CronTab"}, {"metadata", {{"name", name}}}, {"spec", spec}};
  }
  const std::string path_ = "/apis/stable.example.com/v1/namespaces/default/crontabs";
};

TEST_F(SchemaTest, CustomResourcesAreHeldAgainstTheirDefinition) {
  Answer made = Send("POST", path_, CronTab("a", {{"schedule", "*"}, {"unknown", 1}}));
  EXPECT_EQ(made.code, 201) << made.body;
  EXPECT_EQ(made.body["spec"], (json{{"schedule", "*"}, {"replicas", 1}}));
  const Answer wrong = Send("POST", path_, CronTab("b", {{"replicas", "many"}}));
  EXPECT_EQ(wrong.code, 422);
  EXPECT_EQ(
      wrong.body["message"],
      "CronTab.stable.example.com \"b\" is invalid: [spec.schedule: Required value, spec.replicas: Invalid value: "
      "\"string\": spec.replicas in body must be of type integer: \"string\"]");
  EXPECT_EQ(wrong.body["details"]["causes"].size(), 2u);
  EXPECT_EQ(Send("PATCH", path_ + "/a", {{"spec", {{"replicas", 0}}}}, "application/merge-patch+json").code, 422);
  EXPECT_EQ(Send("PATCH", path_ + "/a", {{"spec", {{"replicas", 2}}}}, "application/merge-patch+json").code, 200);
  json applied = CronTab("c", {{"schedule", 5}});
  const std::string how = "?fieldManager=me&force=true", type = "application/apply-patch+yaml";
  EXPECT_EQ(Send("PATCH", path_ + "/c" + how, applied, type).code, 422);
  applied["spec"] = {{"schedule", "*"}, {"unknown", 1}};
  made = Send("PATCH", path_ + "/c" + how, applied, type);
  EXPECT_EQ(made.code, 201) << made.body;
  EXPECT_FALSE(made.body["spec"].contains("unknown"));
  EXPECT_EQ(Send("POST", path_ + "?dryRun=All", CronTab("d", json::object())).code, 422);
}

TEST_F(SchemaTest, UnknownFieldsAreRefusedOrWarnedOfAsTheClientWants) {
  const json typo = CronTab("a", {{"schedule", "*"}, {"line\nbreak", 1}});
  const Answer strict = Send("POST", path_ + "?fieldValidation=Strict", typo);
  EXPECT_EQ(strict.code, 400);
  EXPECT_EQ(strict.body["message"],
            "CronTab in version \"v1\" cannot be handled as a CronTab: strict decoding error: unknown field "
            "\"spec.line\\nbreak\"");
  const auto warnings = [&](const std::string& target, const json& body) {
    std::vector<std::string> out;
    for (const auto& [name, value] : rest_->Handle(Ask("POST", target, body)).headers) {
      if (name == "Warning") out.push_back(value);
    }
    return out;
  };
  EXPECT_THAT(warnings(path_, typo), ElementsAre("299 - \"unknown field \\\"spec.line\\\\nbreak\\\"\""));
  EXPECT_THAT(warnings(path_ + "?fieldValidation=Ignore", CronTab("b", {{"schedule", "*"}, {"x", 1}})), IsEmpty());
  json service = {{"metadata", {{"name", "s"}}}, {"spec", {{"ports", {{{"port", 80}, {"prot", "TCP"}}}}}}};
  EXPECT_EQ(Send("POST", "/api/v1/namespaces/default/services?fieldValidation=Strict", service).body["message"],
            "Service in version \"v1\" cannot be handled as a Service: strict decoding error: unknown field "
            "\"spec.ports[0].prot\"");
  EXPECT_THAT(warnings("/api/v1/namespaces/default/services", service), testing::SizeIs(1));
  // An object within another is one, too.
  const json labels = {{"app", "a"}};
  const json claim = {{"apiVersion", "v1"}, {"kind", "PersistentVolumeClaim"}, {"metadata", {{"name", "data"}}}};
  const json set = {
      {"metadata", {{"name", "s"}}},
      {"spec",
       {{"serviceName", "s"},
        {"selector", {{"matchLabels", labels}}},
        {"template",
         {{"metadata", {{"labels", labels}}}, {"spec", {{"containers", {{{"name", "c"}, {"image", "x"}}}}}}}},
        {"volumeClaimTemplates", {claim}}}}};
  EXPECT_THAT(warnings("/apis/apps/v1/namespaces/default/statefulsets", set), IsEmpty());
  // What is there already is not told again.
  EXPECT_EQ(Send("PATCH", "/api/v1/namespaces/default/services/s?fieldValidation=Strict",
                 {{"metadata", {{"labels", {{"a", "b"}}}}}}, "application/merge-patch+json")
                .code,
            200);
}

using ViewsTest = RestTest;

TEST_F(ViewsTest, EventsHaveOneStoreAndTwoGroups) {
  const json event = {{"metadata", {{"name", "e"}}},
                      {"involvedObject", {{"kind", "Pod"}, {"name", "p"}}},
                      {"message", "it happened"},
                      {"reason", "Happened"},
                      {"type", "Normal"},
                      {"count", 3}};
  ASSERT_EQ(Send("POST", "/api/v1/namespaces/default/events", event).code, 201);
  const std::string path = "/apis/events.k8s.io/v1/namespaces/default/events";
  const Answer list = Get(path);
  ASSERT_EQ(list.code, 200) << list.body;
  EXPECT_EQ(list.body["kind"], "EventList");
  EXPECT_EQ(list.body["apiVersion"], "events.k8s.io/v1");
  const json& shown = list.body["items"][0];
  EXPECT_EQ(shown["apiVersion"], "events.k8s.io/v1");
  EXPECT_EQ(shown["note"], "it happened");
  EXPECT_EQ(shown["regarding"]["name"], "p");
  EXPECT_EQ(shown["deprecatedCount"], 3);
  EXPECT_FALSE(shown.contains("message"));
  const auto watcher = Watch(path + "?watch=true");
  ASSERT_EQ(Send("POST", path,
                 {{"metadata", {{"name", "f"}}}, {"note", "again"}, {"regarding", {{"kind", "Pod"}, {"name", "p"}}}})
                .code,
            201);
  EXPECT_EQ(Get("/api/v1/namespaces/default/events/f").body["message"], "again");
  EXPECT_THAT(watcher->Told(), ElementsAre("ADDED e", "ADDED f"));
  EXPECT_EQ(watcher->events.back()["object"]["note"], "again");
  EXPECT_EQ(Send("PUT", path + "/f", {{"metadata", {{"name", "f"}}}}).code, 405);
  EXPECT_EQ(Send("DELETE", path + "/f").code, 200);
  EXPECT_THAT(Names("/api/v1/namespaces/default/events"), ElementsAre("e"));
}

TEST_F(ViewsTest, WhatNeedsAProcessIsRefusedAndIsNoInput) {
  ASSERT_EQ(Send("POST", "/api/v1/namespaces/default/pods",
                 {{"metadata", {{"name", "p"}}}, {"spec", {{"containers", {{{"name", "c"}, {"image", "i"}}}}}}})
                .code,
            201);
  const std::string pod = "/api/v1/namespaces/default/pods/p";
  for (const char* what : {"log", "exec", "attach", "portforward", "proxy", "proxy/healthz/x"}) {
    for (const char* method : {"GET", "POST"}) {
      const Answer answer = Send(method, pod + "/" + what);
      EXPECT_EQ(answer.code, 400) << what;
      EXPECT_EQ(answer.body["kind"], "Status");
      EXPECT_THAT(answer.body["message"].get<std::string>(),
                  HasSubstr("pod \"p\" is simulated: no process runs in it"));
      EXPECT_FALSE(rest_->Changes(rest_->Open(Ask(method, pod + "/" + what))));
    }
  }
  EXPECT_EQ(Get("/api/v1/namespaces/default/pods/nobody/log").body["reason"], "NotFound");
  EXPECT_EQ(Get("/api/v1/namespaces/default/services/kubernetes/proxy/x").code, 404);
}

TEST_F(ViewsTest, OpenApiTellsOfOwnAndOfDefinedTypes) {
  const json document = Get("/openapi/v2").body;
  const json& service = document["definitions"]["io.k8s.api.core.v1.ServiceSpec"];
  EXPECT_EQ(service["properties"]["ports"]["x-kubernetes-patch-merge-key"], "port");
  EXPECT_EQ(document["definitions"]["io.k8s.api.apps.v1.Deployment"]["x-kubernetes-group-version-kind"],
            (json::array({{{"group", "apps"}, {"kind", "Deployment"}, {"version", "v1"}}})));
  EXPECT_EQ(
      document["definitions"]["io.k8s.api.core.v1.Container"]["properties"]["env"]["x-kubernetes-patch-merge-key"],
      "name");
  // Whatever is referred to is there.
  const std::string text = document.dump();
  const std::string ref = "\"$ref\":\"#/definitions/";
  for (size_t at = 0; (at = text.find(ref, at)) != std::string::npos; ++at) {
    const size_t begin = at + ref.size();
    const std::string name = text.substr(begin, text.find('"', begin) - begin);
    ASSERT_TRUE(document["definitions"].contains(name)) << name;
  }
}

// Every reference in `document` leads to a schema of `schemas`.
void ExpectWhole(const json& document, const std::string& where, const json& schemas) {
  const std::string text = document.dump(), ref = "\"$ref\":\"" + where;
  for (size_t at = 0; (at = text.find(ref, at)) != std::string::npos; ++at) {
    const size_t begin = at + ref.size();
    const std::string name = text.substr(begin, text.find('"', begin) - begin);
    ASSERT_TRUE(schemas.contains(name)) << name;
  }
}

TEST_F(ViewsTest, OpenApiV3HasADocumentOfEachGroupsVersion) {
  const json index = Get("/openapi/v3").body;
  const json groups = Get("/apis").body["groups"];
  EXPECT_EQ(index["paths"]["api/v1"]["serverRelativeURL"], "/openapi/v3/api/v1");
  for (const json& group : groups) {
    for (const json& version : group["versions"]) {
      const std::string root = "apis/" + version["groupVersion"].get<std::string>();
      ASSERT_TRUE(index["paths"].contains(root)) << root;
      const std::string url = index["paths"][root]["serverRelativeURL"];
      const json document = Get(url).body;
      EXPECT_EQ(document["openapi"], "3.0.0") << url;
      ASSERT_FALSE(document["paths"].empty()) << url;
      ExpectWhole(document, "#/components/schemas/", document["components"]["schemas"]);
    }
  }
  EXPECT_EQ(Get("/openapi/v3/apis/nobody.example/v1").code, 404);
  EXPECT_EQ(Send("POST", "/openapi/v3").code, 404);
  Request protobuf = Ask("GET", "/openapi/v3/api/v1");
  protobuf.accept = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
  EXPECT_EQ(Send(protobuf).code, 406);
}

TEST_F(ViewsTest, OpenApiV3TellsWhatKubectlLooksFor) {
  const json document = Get("/openapi/v3/apis/apps/v1").body;
  const json kind = {{"group", "apps"}, {"kind", "Deployment"}, {"version", "v1"}};
  const json& paths = document["paths"];
  for (const char* path : {"/apis/apps/v1/deployments", "/apis/apps/v1/namespaces/{namespace}/deployments"})
    EXPECT_EQ(paths[path]["get"]["x-kubernetes-group-version-kind"], kind) << path;
  const json& patch = paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
  EXPECT_EQ(patch["x-kubernetes-group-version-kind"], kind);
  std::vector<std::string> parameters;
  for (const json& parameter : patch["parameters"]) parameters.push_back(parameter["name"]);
  EXPECT_THAT(parameters, UnorderedElementsAre("dryRun", "fieldManager", "fieldValidation", "force"));
  const json& schemas = document["components"]["schemas"];
  EXPECT_EQ(schemas["io.k8s.api.core.v1.Container"]["properties"]["env"]["x-kubernetes-patch-merge-key"], "name");
  EXPECT_EQ(schemas["io.k8s.api.core.v1.ContainerPort"]["properties"]["containerPort"]["type"], "integer");
  // Beside a reference nothing counts, so what is told of a field stands around it.
  const json& strategy = schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["strategy"];
  EXPECT_TRUE(strategy.contains("description")) << strategy;
  EXPECT_EQ(strategy["allOf"][0]["$ref"], "#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy");
  EXPECT_FALSE(schemas.contains("io.k8s.api.core.v1.Service")) << "which nothing in apps/v1 refers to";
  const json autoscaling = Get("/openapi/v3/apis/autoscaling/v1").body["components"]["schemas"];
  EXPECT_TRUE(autoscaling.contains("io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler"));
}

TEST_F(ViewsTest, WhatGoCouldNotReadIsRefusedInItsWords) {
  const auto refusal = [&](const json& pod_spec) {
    const Answer answer = Send("POST", "/apis/apps/v1/namespaces/default/deployments",
                               {{"metadata", {{"name", "d"}}}, {"spec", {{"template", {{"spec", pod_spec}}}}}});
    EXPECT_EQ(answer.code, 400) << answer.body;
    return answer.body.value("message", "");
  };
  const std::string begin = "Deployment in version \"v1\" cannot be handled as a Deployment: json: cannot unmarshal ";
  EXPECT_EQ(refusal({{"hostNetwork", "yes"}}),
            begin + "string into Go struct field PodSpec.spec.template.spec.hostNetwork of type bool");
  EXPECT_EQ(
      refusal({{"terminationGracePeriodSeconds", "1"}}),
      begin + "string into Go struct field PodSpec.spec.template.spec.terminationGracePeriodSeconds of type int64");
  EXPECT_EQ(refusal({{"containers", json::array({{{"ports", json::array({{{"containerPort", "x"}}})}}})}}),
            begin +
                "string into Go struct field ContainerPort.spec.template.spec.containers.ports.containerPort of "
                "type int32");
  EXPECT_EQ(refusal({{"nodeSelector", {{"a", 1}}}}),
            begin + "number into Go struct field PodSpec.spec.template.spec.nodeSelector of type string");
  const json port = {{"port", 80}, {"targetPort", "http"}};
  EXPECT_EQ(Send("POST", "/api/v1/namespaces/default/services",
                 {{"metadata", {{"name", "s"}}}, {"spec", {{"ports", json::array({port})}}}})
                .code,
            201);
  EXPECT_EQ(Send("PATCH", "/api/v1/namespaces/default/services/s", {{"spec", {{"externalIPs", "1.2.3.4"}}}},
                 "application/merge-patch+json")
                .code,
            422);
}

TEST_F(ViewsTest, AnApplyThatDoesNotFitItsSchemaIsRefusedPathByPath) {
  const auto refusal = [&](const json& spec, const json& labels) {
    const Answer answer = Send("PATCH", "/apis/apps/v1/namespaces/default/deployments/d?fieldManager=me",
                               {{"apiVersion", "apps/v1"},
                                {"kind", "Deployment"},
                                {"metadata", {{"name", "d"}, {"namespace", "default"}, {"labels", labels}}},
                                {"spec", spec}},
                               "application/apply-patch+yaml");
    EXPECT_EQ(answer.code, 500) << answer.body;
    return answer.body.value("message", "");
  };
  const std::string begin = "failed to create typed patch object (default/d; apps/v1, Kind=Deployment): ";
  EXPECT_EQ(refusal({{"replicas", "two"}}, nullptr),
            begin + ".spec.replicas: expected numeric (int or float), got string");
  EXPECT_EQ(refusal(nullptr, {{"app", {{"a", 1}}}}),
            begin +
                ".metadata.labels.app: expected string, got &value.valueUnstructured{Value:map[string]interface "
                "{}{\"a\":1}}");
  const json container = {{"name", "c"}, {"image", 5}};
  EXPECT_EQ(refusal({{"template", {{"spec", {{"containers", json::array({container})}}}}}}, nullptr),
            begin +
                ".spec.template.spec.containers[name=\"c\"].image: expected string, got "
                "&value.valueUnstructured{Value:5}");
  EXPECT_EQ(refusal({{"selector", "x"}, {"paused", "y"}}, nullptr),
            begin + "errors:\n  .spec.paused: expected boolean, got &{y}\n  .spec.selector: expected map, got &{x}");
  EXPECT_EQ(refusal({{"replica", 2}}, nullptr), begin + ".spec.replica: field not declared in schema");
}

TEST_F(ViewsTest, MetadataOfTheWrongTypeIsRefusedWithEveryWrite) {
  const json wrong = {{"metadata", {{"name", "m"}, {"labels", {{"app", {{"a", 1}}}}}}}};
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  const std::string why =
      "json: cannot unmarshal object into Go struct field ObjectMeta.metadata.labels of type string";
  ASSERT_EQ(Send("POST", maps, {{"metadata", {{"name", "m"}}}}).code, 201);
  for (const auto& [method, path] : {std::pair{"POST", maps}, std::pair{"PUT", maps + "/m"}}) {
    const Answer answer = Send(method, path, wrong);
    EXPECT_EQ(answer.code, 400) << answer.body;
    EXPECT_EQ(answer.body["message"], "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: " + why);
  }
  const Answer merged = Send("PATCH", maps + "/m", wrong, "application/merge-patch+json");
  EXPECT_EQ(merged.code, 422);
  EXPECT_TRUE(merged.body.value("message", "").ends_with(why)) << merged.body;
  const Answer kind = Send("POST", maps, {{"kind", 5}});
  EXPECT_EQ(kind.code, 400);
  EXPECT_EQ(kind.body["message"],
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse "
            "error: json: cannot unmarshal number into Go struct field .kind of type string ({\"kind\":5})");
}

TEST_F(ViewsTest, DefinitionsOfCustomResourcesAreTypesOfTheirOwn) {
  const json definitions = Get("/openapi/v2").body["definitions"];
  const std::string package = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.";
  ASSERT_TRUE(definitions.contains(package + "JSONSchemaProps"));
  EXPECT_FALSE(definitions[package + "JSONSchemaProps"]["properties"]["additionalProperties"].contains("type"))
      << "it may be a truth value, too";
  const ApiType* type = FindApiType("CustomResourceDefinition");
  ASSERT_NE(type, nullptr);
  const auto unknown = [&](const json& schema) {
    return UnknownFields(*type, {{"spec", {{"versions", json::array({{{"schema", {{"openAPIV3Schema", schema}}}}})}}}});
  };
  const std::string in = "spec.versions[0].schema.openAPIV3Schema.";
  EXPECT_THAT(unknown({{"type", "object"}, {"additionalProperties", true}, {"default", {{"any", "thing"}}}}),
              IsEmpty());
  EXPECT_THAT(unknown({{"additionalProperties", {{"tipe", "string"}}}}), ElementsAre(in + "additionalProperties.tipe"));
  EXPECT_THAT(unknown({{"properties", {{"a", {{"items", {{"tipe", "string"}}}}}}}}),
              ElementsAre(in + "properties.a.items.tipe"));
}

}  // namespace
}  // namespace wavetank::fakekube::http
