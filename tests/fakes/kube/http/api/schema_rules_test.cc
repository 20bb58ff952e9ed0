#include "fakes/kube/http/api/schema_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/kube/yaml.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

json Yaml(const std::string& text) {
  const absl::StatusOr<json> read = kube::ParseYaml(text, "test");
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? *read : json();
}

std::vector<std::string> Errors(const json& schema, const json& object, const json& old = {}, bool ratchets = false) {
  std::vector<std::string> out;
  for (const FieldError& error : CheckSchemaRules(schema, object, old, ratchets).errors)
    out.push_back(error.field + ": " + error.message);
  return out;
}

const char kListeners[] = R"(
type: object
properties:
  spec:
    type: object
    properties:
      listeners:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name]
        items:
          type: object
          properties:
            name: {type: string}
            port: {type: integer}
            hostname: {type: string}
            protocol: {type: string}
            tls: {type: object, properties: {mode: {type: string}}}
        x-kubernetes-validations:
        - message: tls must not be specified for protocols ['HTTP', 'TCP', 'UDP']
          rule: 'self.all(l, l.protocol in [''HTTP'', ''TCP'', ''UDP''] ? !has(l.tls) : true)'
        - message: Combination of port, protocol and hostname must be unique
          rule: 'self.all(l1, self.exists_one(l2, l1.port == l2.port && l1.protocol == l2.protocol && (has(l1.hostname) && has(l2.hostname) ? l1.hostname == l2.hostname : !has(l1.hostname) && !has(l2.hostname))))'
)";

TEST(SchemaRulesTest, RulesSpeakOfElementsAndOfWhatIsThere) {
  const json schema = Yaml(kListeners);
  EXPECT_THAT(Errors(schema, Yaml("spec: {listeners: [{name: a, port: 80, protocol: HTTP}, {name: b, port: 443, "
                                  "protocol: HTTPS, tls: {mode: Terminate}}]}")),
              IsEmpty());
  EXPECT_THAT(Errors(schema, Yaml("spec: {listeners: [{name: a, port: 80, protocol: HTTP, tls: {}}]}")),
              ElementsAre("spec.listeners: Invalid value: \"array\": tls must not be specified for protocols ['HTTP', "
                          "'TCP', 'UDP']"));
  EXPECT_THAT(Errors(schema, Yaml("spec: {listeners: [{name: a, port: 80, protocol: HTTP}, {name: b, port: 80, "
                                  "protocol: HTTP}]}")),
              ElementsAre(HasSubstr("Combination of port, protocol and hostname must be unique")));
}

TEST(SchemaRulesTest, TheRootIsNamedNilAndKnowsItsMetadata) {
  const json schema = Yaml("type: object\nx-kubernetes-validations: [{rule: 'self.metadata.name.size() < 3'}]");
  EXPECT_THAT(Errors(schema, Yaml("metadata: {name: ab}")), IsEmpty());
  EXPECT_THAT(Errors(schema, Yaml("metadata: {name: abc}")),
              ElementsAre("<nil>: Invalid value: \"object\": failed rule: self.metadata.name.size() < 3"));
}

TEST(SchemaRulesTest, RulesOfTransitionsAreAskedOfUpdatesAlone) {
  const json schema = Yaml(
      "type: object\nproperties: {spec: {type: object, properties: {class: {type: string, x-kubernetes-validations: "
      "[{rule: self == oldSelf, message: is immutable, reason: FieldValueForbidden}]}}}}");
  EXPECT_THAT(Errors(schema, Yaml("spec: {class: a}")), IsEmpty());
  EXPECT_THAT(Errors(schema, Yaml("spec: {class: a}"), Yaml("spec: {class: a}")), IsEmpty());
  EXPECT_THAT(Errors(schema, Yaml("spec: {class: b}"), Yaml("spec: {class: a}")),
              ElementsAre("spec.class: Forbidden: is immutable"));
}

// apiextensions-apiserver: pkg/apis/apiextensions/types_jsonschema.go, ValidationRule.OptionalOldSelf
TEST(SchemaRulesTest, ARuleOfATransitionMayBeAskedOfCreationsToo) {
  const json schema = Yaml(
      "type: object\nproperties: {a: {type: integer}}\nx-kubernetes-validations: [{rule: 'oldSelf.hasValue() && self.a "
      ">= oldSelf.value().a', optionalOldSelf: true, message: 'no more of these, and those only grow'}]");
  EXPECT_THAT(Errors(schema, Yaml("a: 1"), Yaml("a: 1")), IsEmpty());
  EXPECT_THAT(Errors(schema, Yaml("a: 0"), Yaml("a: 1")), ElementsAre(HasSubstr("those only grow")));
  EXPECT_THAT(Errors(schema, Yaml("a: 1")), ElementsAre(HasSubstr("no more of these")));
}

TEST(SchemaRulesTest, ElementsOfListsWithKeysAreComparedByThem) {
  const json schema = Yaml(
      "type: object\nproperties: {l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], "
      "items: {type: object, properties: {name: {type: string}, v: {type: integer}}, x-kubernetes-validations: "
      "[{rule: self.v >= oldSelf.v, message: only grows}]}}}");
  const json old = Yaml("l: [{name: a, v: 5}, {name: b, v: 1}]");
  EXPECT_THAT(Errors(schema, Yaml("l: [{name: b, v: 2}, {name: c, v: 0}, {name: a, v: 4}]"), old),
              ElementsAre("l[2]: Invalid value: \"object\": only grows"));
}

TEST(SchemaRulesTest, MessagesAreMadeByExpressionsAndPathsNameAField) {
  const json schema = Yaml(
      "type: object\nproperties: {a: {type: integer}}\nx-kubernetes-validations: [{rule: self.a < 5, "
      "messageExpression: '\"a is \" + string(self.a)', message: no, fieldPath: .a}]");
  EXPECT_THAT(Errors(schema, Yaml("a: 7")), ElementsAre(HasSubstr("Invalid value: \"object\": a is 7")));
}

TEST(SchemaRulesTest, WhatFailsIsToldWithItsRule) {
  const json schema = Yaml(
      "type: object\nproperties: {a: {type: integer}, b: {x-kubernetes-int-or-string: true}}\n"
      "x-kubernetes-validations: [{rule: self.a > 0}, {rule: self.b > 5}]");
  EXPECT_THAT(Errors(schema, Yaml("b: x")),
              ElementsAre("<nil>: Invalid value: \"object\": no such key: a evaluating rule: self.a > 0",
                          "<nil>: Invalid value: \"object\": 'no such overload': call arguments did not match a "
                          "supported operator, function or macro signature for rule: self.b > 5"));
}

TEST(SchemaRulesTest, FormatsAreTypesAndNamesAreEscaped) {
  const json schema = Yaml(
      "type: object\nproperties: {t: {type: string, format: duration}, namespace: {type: string}, a-b: {type: "
      "string}}\n"
      "x-kubernetes-validations: [{rule: \"self.t > duration('1s')\"}, {rule: self.__namespace__ == 'x'}, "
      "{rule: self.a__dash__b == 'c'}]");
  EXPECT_THAT(Errors(schema, Yaml("{t: 1m30s, namespace: x, a-b: c}")), IsEmpty());
  EXPECT_THAT(Errors(schema, Yaml("{t: 10ms, namespace: m, a-b: d}")).size(), 3u);
}

TEST(SchemaRulesTest, WhatWasSoBeforeDoesNotRefuseWhereTheReleaseRatchets) {
  const json schema = Yaml(
      "type: object\nproperties: {a: {type: string, x-kubernetes-validations: [{rule: \"self == 'ok'\", message: not "
      "so}]}, "
      "b: {type: string}}");
  const json old = Yaml("{a: bad, b: x}"), now = Yaml("{a: bad, b: y}");
  EXPECT_THAT(Errors(schema, now, old), ElementsAre("a: Invalid value: \"string\": not so"));
  EXPECT_THAT(Errors(schema, now, old, /*ratchets=*/true), IsEmpty());
  EXPECT_THAT(CheckSchemaRules(schema, now, old, true).warnings, ElementsAre("a: Invalid value: \"string\": not so"));
  EXPECT_THAT(Errors(schema, Yaml("{a: worse}"), old, true), ElementsAre("a: Invalid value: \"string\": not so"));
}

TEST(SchemaRulesTest, RulesThatTakeTooLongAreRefused) {
  const json schema = Yaml(
      "type: object\nproperties: {l: {type: array, items: {type: integer}}}\nx-kubernetes-validations: "
      "[{rule: 'self.l.all(a, self.l.all(b, self.l.all(c, a + b + c > 0)))'}]");
  json object = {{"l", json::array()}};
  for (int i = 1; i < 400; ++i) object["l"].push_back(i);
  EXPECT_THAT(Errors(schema, object), ElementsAre(HasSubstr("running out of cost budget")));
}

TEST(SchemaRulesTest, ADefinitionIsToldWhatOfItIsNoRule) {
  const json schema = Yaml(
      "type: object\nproperties: {a: {type: array, items: {type: string, x-kubernetes-validations: "
      "[{rule: 'self =='}, {rule: 'authorizer.path(self)'}]}}}");
  const std::vector<RuleProblem> problems = FindRuleProblems(schema);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0].path, ".properties[a].items.x-kubernetes-validations[0].rule");
  EXPECT_TRUE(problems[0].refused);
  EXPECT_THAT(problems[0].why, HasSubstr("Syntax error: mismatched input '<EOF>'"));
  EXPECT_FALSE(problems[1].refused);
  EXPECT_THAT(problems[1].why, HasSubstr("undeclared reference to '"));
}

}  // namespace
}  // namespace wavetank::fakekube::http
