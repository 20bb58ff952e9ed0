#include "fakes/kube/merge/patch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fakes/kube/objects/api_error.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

const GroupKind kService{"Service", ""}, kCustom{"VirtualService", "networking.istio.example"};

TEST(JsonPatchTest, DoesAllOperationsOrNone) {
  json target = json::parse(R"({"a":{"b":[1,2]},"c~d/e":"x"})");
  const json before = target;
  EXPECT_TRUE(JsonPatch(target, json::parse(R"([
      {"op":"test","path":"/c~0d~1e","value":"x"},
      {"op":"add","path":"/a/b/1","value":9},{"op":"add","path":"/a/b/-","value":3},
      {"op":"replace","path":"/a/b/0","value":0},{"op":"remove","path":"/a/b/2"},
      {"op":"copy","from":"/a/b","path":"/copy"},{"op":"move","from":"/c~0d~1e","path":"/moved"}])"))
                  .ok());
  EXPECT_EQ(target, json::parse(R"({"a":{"b":[0,9,3]},"copy":[0,9,3],"moved":"x"})"));
  target = before;
  EXPECT_FALSE(JsonPatch(target, json::parse(R"([{"op":"remove","path":"/a"},{"op":"remove","path":"/none"}])")).ok());
  EXPECT_EQ(target, before);
}

TEST(JsonPatchTest, WhatDoesNotFitIsRefusedInKubernetesWords) {
  json target = json::parse(R"({"a":[1]})");
  const absl::Status failed = JsonPatch(target, json::parse(R"([{"op":"test","path":"/a/0","value":2}])"));
  EXPECT_EQ(failed.message(), "the server rejected our request due to an error in our request");
  EXPECT_EQ(ApiErrorOf(failed)->code, 422);
  EXPECT_FALSE(ApiErrorOf(failed)->details.contains("causes")) << "kubectl would print them instead of the message";
  for (const char* patch :
       {R"([{"op":"add","path":"/x/y","value":1}])", R"([{"op":"remove","path":"/a/1"}])",
        R"([{"op":"replace","path":"/a/01","value":1}])", R"([{"op":"add","path":"/a/2","value":1}])",
        R"([{"op":"move","from":"/a","path":"/a/0"}])", R"([{"op":"jump","path":"/a"}])",
        R"([{"op":"copy","from":"/b","path":"/a"}])", R"([{"op":"add","path":"a","value":1}])"}) {
    EXPECT_EQ(ApiErrorOf(JsonPatch(target, json::parse(patch)))->code, 422) << patch;
  }
  EXPECT_EQ(ApiErrorOf(JsonPatch(target, json::object()))->code, 400);
  EXPECT_EQ(ApiErrorOf(JsonPatch(target, json::array({1})))->code, 400);
}

TEST(JsonPatchTest, CopiesOfCopiesEndBeforeTheMemoryDoes) {
  json target = {{"a", {std::string(1000, 'x')}}};
  json patch = json::array();
  for (int i = 0; i < 100; ++i) patch.push_back({{"op", "copy"}, {"from", "/a"}, {"path", "/a/-"}});
  const std::string before = target.dump();
  EXPECT_EQ(ApiErrorOf(JsonPatch(target, patch))->code, 422);
  EXPECT_EQ(target.dump(), before);
}

TEST(PatchTest, AMergePatchReplacesListsAndAStrategicOneMergesThem) {
  const json before = json::parse(R"({"spec":{"ports":[{"port":80}],"type":"ClusterIP"}})");
  const json patch = json::parse(R"({"spec":{"ports":[{"port":81}],"type":null}})");
  json merged = before, strategic = before;
  ASSERT_TRUE(ApplyPatch(PatchType::kMerge, kService, merged, patch).ok());
  ASSERT_TRUE(ApplyPatch(PatchType::kStrategic, kService, strategic, patch).ok());
  EXPECT_EQ(merged["spec"], json::parse(R"({"ports":[{"port":81}]})"));
  EXPECT_EQ(strategic["spec"]["ports"].size(), 2u);
}

TEST(PatchTest, AMergePatchIsThatOfRfc7386) {
  struct Case {
    const char *target, *patch, *merged;
  };
  for (const Case& c : {
           Case{R"({"b":1,"d":2})", R"({"a":0,"c":3,"e":4})", R"({"a":0,"b":1,"c":3,"d":2,"e":4})"},
           Case{R"({"a":1,"b":null,"c":3})", R"({"a":null,"c":null,"x":null})", R"({"b":null})"},
           Case{R"({"a":{"b":1,"c":[1]}})", R"({"a":{"b":{"n":null,"k":2},"c":[null]}})",
                R"({"a":{"b":{"k":2},"c":[null]}})"},
           Case{R"({"a":"text"})", R"({"a":{"b":{"c":null}}})", R"({"a":{"b":{}}})"},
           Case{R"([1,2])", R"({"a":1,"b":null})", R"({"a":1})"},
           Case{R"({"a":1})", R"("text")", R"("text")"},
           Case{R"({"a":1})", R"({})", R"({"a":1})"},
       }) {
    const json target = json::parse(c.target), patch = json::parse(c.patch), merged = json::parse(c.merged);
    EXPECT_EQ(MergePatched(target, patch), merged) << c.patch;
    EXPECT_EQ(MergePatchChanges(target, patch), merged != target) << c.patch;
    EXPECT_FALSE(MergePatchChanges(merged, patch)) << c.patch;
  }
}

TEST(PatchTest, ACustomResourceHasNoStrategicMerge) {
  json target = {{"spec", {{"hosts", {"a"}}}}};
  EXPECT_EQ(ApiErrorOf(ApplyPatch(PatchType::kStrategic, kCustom, target, json::object()))->code, 415);
  EXPECT_TRUE(ApplyPatch(PatchType::kMerge, kCustom, target, {{"spec", {{"hosts", {"b"}}}}}).ok());
  EXPECT_EQ(target["spec"]["hosts"][0], "b");
}

}  // namespace
}  // namespace wavetank::fakekube
