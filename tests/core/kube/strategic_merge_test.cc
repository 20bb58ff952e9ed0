#include "core/kube/strategic_merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace wavetank::kube {
namespace {

using nlohmann::json;

json Merged(json target, const json& patch, std::string_view kind = "Deployment") {
  EXPECT_TRUE(StrategicMerge(target, patch, kind).ok());
  return target;
}

std::string Names(const json& list, const char* key = "name") {
  std::string out;
  for (const json& item : list)
    out += item.at(key).is_string() ? item[key].get<std::string>() + " " : item[key].dump() + " ";
  return out;
}

TEST(StrategicMergeTest, ContainersMergeByNameAndTheirPortsByNumber) {
  const json before = json::parse(R"({"spec":{"containers":[
      {"name":"a","image":"a:1","ports":[{"containerPort":80,"name":"http"}]},{"name":"b","image":"b:1"}]}})");
  const json after = Merged(before, json::parse(R"({"spec":{"containers":[
      {"name":"a","image":"a:2","ports":[{"containerPort":81}]}]}})"),
                            "Pod");
  EXPECT_EQ(after["spec"]["containers"][0]["image"], "a:2");
  EXPECT_EQ(Names(after["spec"]["containers"][0]["ports"], "containerPort"), "81 80 ");
  EXPECT_EQ(after["spec"]["containers"][1], before["spec"]["containers"][1]);
}

TEST(StrategicMergeTest, WhatOnlyThePatchHasComesFirstUnlessAnOrderIsSet) {
  const json before = {{"spec", {{"volumes", {{{"name", "certs"}}}}}}};
  const json added = {{{"name", "x"}}, {{"name", "y"}}};
  EXPECT_EQ(Names(Merged(before, {{"spec", {{"volumes", added}}}}, "Pod")["spec"]["volumes"]), "x y certs ");
  const json ordered = {
      {"spec",
       {{"volumes", added}, {"$setElementOrder/volumes", {{{"name", "certs"}}, {{"name", "y"}}, {{"name", "x"}}}}}}};
  EXPECT_EQ(Names(Merged(before, ordered, "Pod")["spec"]["volumes"]), "certs y x ");
}

TEST(StrategicMergeTest, TheSamePortsAreOneListPerKind) {
  const json port = {{{"port", 80}, {"name", "http"}}};
  const json other = {{{"port", 81}, {"name", "other"}}};
  const json service = Merged({{"spec", {{"ports", port}}}}, {{"spec", {{"ports", other}}}}, "Service");
  EXPECT_EQ(service["spec"]["ports"].size(), 2u);
  // An EndpointSlice's are replaced.
  EXPECT_EQ(Merged({{"ports", port}}, {{"ports", other}}, "EndpointSlice")["ports"], other);
}

TEST(StrategicMergeTest, DirectivesDeleteAndReplace) {
  const json before = json::parse(R"({"metadata":{"finalizers":["a/x","a/y"]},
      "spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}},
              "template":{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}}})");
  const auto containers = [&](const char* patch) {
    return Names(Merged(
        before, {{"spec", {{"template", {{"spec", {{"containers", json::parse(patch)}}}}}}}})["spec"]["template"]
                                                                                             ["spec"]["containers"]);
  };
  EXPECT_EQ(containers(R"([{"name":"a","$patch":"delete"}])"), "b ");
  EXPECT_EQ(containers(R"([{"name":"c"},{"$patch":"replace"}])"), "c ");
  EXPECT_EQ(
      Merged(before,
             json::parse(R"({"metadata":{"$deleteFromPrimitiveList/finalizers":["a/x"]}})"))["metadata"]["finalizers"],
      json::array({"a/y"}));
  EXPECT_EQ(Merged(before, json::parse(R"({"metadata":{"finalizers":["a/z"]}})"))["metadata"]["finalizers"].size(), 3u);
  EXPECT_EQ(
      Merged(before,
             json::parse(R"({"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}})"))["spec"]["strategy"],
      (json{{"type", "Recreate"}}));
  EXPECT_EQ(Merged(before,
                   json::parse(R"({"spec":{"strategy":{"$patch":"replace","type":"Recreate"}}})"))["spec"]["strategy"],
            (json{{"type", "Recreate"}}));
  EXPECT_EQ(Merged(before, json::parse(R"({"spec":{"strategy":null}})"))["spec"].contains("strategy"), false);
}

TEST(StrategicMergeTest, NoDirectiveAndNoNullReachesTheObject) {
  const json after = Merged(json::object(), json::parse(R"({"spec":{"a":null,"$retainKeys":["b"],"b":{"c":null,"d":1},
      "containers":[{"name":"x","$patch":"delete"},{"name":"y","z":null}],"$setElementOrder/containers":[]}})"));
  EXPECT_EQ(after, json::parse(R"({"spec":{"b":{"d":1},"containers":[{"name":"y"}]}})"));
}

TEST(StrategicMergeTest, AnElementWithoutItsKeyAndAnUnknownDirectiveAreRefused) {
  json target = {{"spec", {{"containers", {{{"name", "a"}}}}}}};
  const absl::Status keyless = StrategicMerge(target, {{"spec", {{"containers", {{{"image", "b"}}}}}}}, "Pod");
  EXPECT_THAT(std::string(keyless.message()), testing::HasSubstr("does not contain declared merge key: name"));
  EXPECT_FALSE(StrategicMerge(target, {{"spec", {{"$patch", "explode"}}}}, "Pod").ok());
}

}  // namespace
}  // namespace wavetank::kube
