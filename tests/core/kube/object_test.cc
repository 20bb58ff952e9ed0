#include "core/kube/object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/status.h"
#include "core/kube/time_format.h"
#include "core/kube/types.h"

namespace wavetank::kube {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string ErrorOf(const char* text) {
  const absl::StatusOr<ObjectRef> object = Object::FromJson(json::parse(text));
  return object.ok() ? "accepted" : std::string(Message(object.status()));
}

TEST(Object, ReadsMetadataAndKeepsEveryFieldThatCameIn) {
  const absl::StatusOr<ObjectRef> object = Object::FromJson(json::parse(R"({
    "apiVersion": "v1", "kind": "Pod", "unknown": {"x": [1, 2]},
    "metadata": {"name": "p", "namespace": "n", "resourceVersion": "17", "labels": {"app": "a"},
                 "creationTimestamp": "2023-09-01T00:00:05Z",
                 "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u",
                                      "controller": true}]}})"));
  ASSERT_TRUE(object.ok()) << object.status();
  const Object& o = **object;
  EXPECT_EQ(o.Key(), "Pod/n/p");
  EXPECT_EQ(o.meta.resource_version, 17);
  EXPECT_EQ(o.meta.labels.at("app"), "a");
  EXPECT_EQ(o.meta.creation_unix_seconds, 1693526405);
  EXPECT_TRUE(o.meta.owner_references.at(0).controller);
  EXPECT_EQ(o.body["unknown"]["x"][1], 2);
}

TEST(Object, TypedViewLivesWithItAndACopyHasItsOwn) {
  const auto of = [](const char* ip) {
    return json{{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", {{"name", "p"}}}, {"status", {{"podIP", ip}}}};
  };
  const ObjectRef object = Object::FromJson(of("10.0.0.1")).value();
  const Pod& pod = ParsePod(*object);
  EXPECT_EQ(pod.ip, "10.0.0.1");
  EXPECT_EQ(&ParsePod(*object), &pod);
  Object copy = *object;
  copy.body = of("10.0.0.2");
  EXPECT_EQ(ParsePod(copy).ip, "10.0.0.2");
  // Whoever takes it for something else gets that, and the Pod is read anew.
  EXPECT_EQ(ParseService(*object).type, "ClusterIP");
  EXPECT_EQ(ParsePod(*object).ip, "10.0.0.1");
}

TEST(Object, NamesTheFieldThatIsWrong) {
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("expected a mapping"));
  EXPECT_THAT(ErrorOf(R"({"kind": "Pod"})"), HasSubstr("apiVersion is missing"));
  EXPECT_THAT(ErrorOf(R"({"apiVersion": "v1", "kind": "Pod"})"), HasSubstr("metadata is missing"));
  EXPECT_THAT(ErrorOf(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {}})"), HasSubstr("metadata.name is missing"));
  EXPECT_THAT(ErrorOf(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": 1}}})"),
              HasSubstr("put it into quotes"));
}

TEST(Object, RefusesDepthThatWouldOverflowTheStack) {
  json deep = 1;
  for (int i = 0; i < 200; ++i) deep = json::array({std::move(deep)});
  json body = {{"apiVersion", "v1"}, {"kind", "X"}, {"metadata", {{"name", "n"}}}, {"spec", std::move(deep)}};
  EXPECT_FALSE(Object::FromJson(std::move(body)).ok());
}

TEST(Object, RefusesNumbersThatDoNotFit) {
  for (const char* version :
       {"18446744073709551615", "-1", "1.5", "\"9223372036854775808\"", "\"-3\"", "true", "\"\""}) {
    const std::string text = std::string(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", )") +
                             R"("resourceVersion": )" + version + "}}";
    EXPECT_THAT(ErrorOf(text.c_str()), HasSubstr("metadata.resourceVersion is no whole number")) << version;
  }
}

TEST(Object, TakesNumbersThatCodeHasSet) {
  json body = json::parse(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}})");
  body["metadata"]["generation"] = int64_t{7};
  body["metadata"]["resourceVersion"] = uint64_t{9};
  const absl::StatusOr<ObjectRef> object = Object::FromJson(std::move(body));
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ((*object)->meta.generation, 7);
  EXPECT_EQ((*object)->meta.resource_version, 9);
}

TEST(Object, ClusterScopedKeysHaveNoNamespace) {
  const absl::StatusOr<ObjectRef> object =
      Object::FromJson(json::parse(R"({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})"));
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ((*object)->Key(), "Node/n");
  EXPECT_EQ(kinds::kEndpointSlice.ApiVersion(), "discovery.k8s.io/v1");
  EXPECT_EQ(kinds::kNode.ApiVersion(), "v1");
}

TEST(Rfc3339, RefusesDaysThatTheMonthDoesNotHave) {
  EXPECT_NE(ParseRfc3339("2024-02-29T00:00:00Z"), std::nullopt);
  EXPECT_EQ(ParseRfc3339("2023-02-29T00:00:00Z"), std::nullopt);
  EXPECT_EQ(ParseRfc3339("2023-04-31T00:00:00Z"), std::nullopt);
}

TEST(Rfc3339, RoundTripsAndAppliesOffsets) {
  for (int64_t t :
       {int64_t{0}, int64_t{951782400}, int64_t{1693526400}, int64_t{253402300799}, int64_t{-62135596800}}) {
    EXPECT_EQ(ParseRfc3339(FormatRfc3339(t)), t);
  }
  EXPECT_EQ(ParseRfc3339("2023-09-01T02:00:00.123+02:00"), 1693526400);
  EXPECT_EQ(ParseRfc3339("2023-09-01"), std::nullopt);
  EXPECT_EQ(ParseRfc3339("2023-13-01T00:00:00Z"), std::nullopt);
}

TEST(Types, AnApplicationIsWhatItsLabelsSayInIstiosWordsOrInKubernetes) {
  const Labels charts = {{"app.kubernetes.io/name", "web"}, {"app.kubernetes.io/version", "1.16.0"}};
  EXPECT_EQ(AppOf(charts) + " " + VersionOf(charts), "web 1.16.0");
  const Labels both = {{"app", "shop"}, {"version", "v1"}, {"app.kubernetes.io/name", "web"}};
  EXPECT_EQ(AppOf(both) + " " + VersionOf(both), "shop v1");
  EXPECT_EQ(AppOf(Labels{}) + VersionOf(json()), "");
  EXPECT_EQ(AppOf(json{{"app", ""}, {"app.kubernetes.io/name", "web"}}), "web");
}

TEST(Types, AServicesPortLeadsToThePodsPortOfThatNameAndProtocol) {
  Pod pod;
  pod.ports = {{"http", "UDP", 53}, {"http", "TCP", 8080}};
  ServicePort port;
  port.port = 80;
  EXPECT_EQ(TargetPortOf(port, pod), 80);
  port.target_port = 8081;
  EXPECT_EQ(TargetPortOf(port, pod), 8081) << "whether a container declares it or not";
  port.target_port = 0;
  port.target_port_name = "http";
  EXPECT_EQ(TargetPortOf(port, pod), 8080);
  port.target_port_name = "none";
  EXPECT_EQ(TargetPortOf(port, pod), 0);
}

}  // namespace
}  // namespace wavetank::kube
