// What a request demands of versions, for a log that is replayed in a world whose versions are others.
#include "tests/fakes/kube/http/rest_fixture.h"

namespace wavetank::fakekube::http {
namespace {

class PreconditionsTest : public RestTest {
 protected:
  PreconditionsTest() {
    Send(
        "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {{"metadata", {{"name", "shelves.library.example"}}},
         {"spec",
          {{"group", "library.example"},
           {"scope", "Namespaced"},
           {"names", {{"plural", "shelves"}, {"singular", "shelf"}, {"kind", "Shelf"}, {"listKind", "ShelfList"}}},
           {"versions",
            json::array(
                {{{"name", "v1"},
                  {"served", true},
                  {"storage", true},
                  {"schema",
                   {{"openAPIV3Schema", {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}}}}}}})}}}});
    Make();
  }
  void Made(const Answer& answer) { EXPECT_EQ(answer.code, 201) << answer.body; }
  void Make() {
    Made(Send("POST", kMaps, ConfigMap("a")));
    Made(Send("POST", kShelves, {{"metadata", {{"name", "a"}}}, {"spec", {{"books", 1}}}}));
    Made(Send("POST", kDeployments,
              {{"metadata", {{"name", "a"}}},
               {"spec",
                {{"replicas", 1},
                 {"selector", {{"matchLabels", {{"app", "a"}}}}},
                 {"template",
                  {{"metadata", {{"labels", {{"app", "a"}}}}},
                   {"spec", {{"containers", json::array({{{"name", "c"}, {"image", "x"}}})}}}}}}}}));
  }
  // The same objects by name, with other versions and uids.
  void MakeAnew() {
    for (const char* path : {kMaps, kShelves, kDeployments}) Send("DELETE", std::string(path) + "/a");
    for (int i = 0; i < 3; ++i) Send("POST", kMaps, ConfigMap("other-" + std::to_string(i)));
    Make();
  }
  json MetadataOf(const std::string& path) { return Get(path).body["metadata"]; }
  // `request` as a log of inputs alone holds it now.
  Request Logged(Request request) {
    request.body = rest_->WithoutPreconditions(request, json::parse(request.body)).dump();
    return request;
  }

  static constexpr const char* kMaps = "/api/v1/namespaces/default/configmaps";
  static constexpr const char* kShelves = "/apis/library.example/v1/namespaces/default/shelves";
  static constexpr const char* kDeployments = "/apis/apps/v1/namespaces/default/deployments";

  // Requests that hold for the objects as they are now.
  std::vector<Request> All() {
    std::vector<Request> out;
    for (const char* path : {kMaps, kShelves, kDeployments}) {
      const std::string one = std::string(path) + "/a";
      json changed = Get(one).body;
      changed["metadata"]["labels"]["changed"] = "yes";
      out.push_back(Ask("PUT", one, changed));
      const json metadata = MetadataOf(one);
      const json merge = {{"metadata",
                           {{"uid", metadata["uid"]},
                            {"resourceVersion", metadata["resourceVersion"]},
                            {"labels", {{"changed", "yes"}}}}}};
      out.push_back(Ask("PATCH", one, merge, "application/merge-patch+json"));
      const json patch =
          json::array({{{"op", "test"}, {"path", "/metadata/resourceVersion"}, {"value", metadata["resourceVersion"]}},
                       {{"op", "test"}, {"path", "/metadata/uid"}, {"value", metadata["uid"]}},
                       {{"op", "add"}, {"path", "/metadata/annotations"}, {"value", {{"changed", "yes"}}}}});
      out.push_back(Ask("PATCH", one, patch, "application/json-patch+json"));
    }
    json scale = Get(std::string(kDeployments) + "/a/scale").body;
    scale["spec"]["replicas"] = 2;
    out.push_back(Ask("PUT", std::string(kDeployments) + "/a/scale", scale));
    for (const char* path : {kMaps, kShelves, kDeployments}) {
      const json metadata = MetadataOf(std::string(path) + "/a");
      out.push_back(
          Ask("DELETE", std::string(path) + "/a",
              {{"preconditions", {{"uid", metadata["uid"]}, {"resourceVersion", metadata["resourceVersion"]}}}}));
    }
    return out;
  }
};

TEST_F(PreconditionsTest, ThatHeldAreNotAskedAgain) {
  std::vector<Request> logged;
  const std::vector<Request> asked = All();
  for (const Request& request : asked) logged.push_back(Logged(request));
  MakeAnew();
  for (size_t i = 0; i < asked.size(); ++i) {
    const std::string what = asked[i].method + " " + asked[i].path + " " + asked[i].content_type;
    EXPECT_GE(Send(asked[i]).code, 400) << what << " demands nothing";
    EXPECT_LT(Send(logged[i]).code, 300) << what << ": " << logged[i].body;
  }
}

TEST_F(PreconditionsTest, ThatDidNotHoldNeverDo) {
  const std::vector<Request> stale = All();
  // To a version that is stale now the object may come in another world.
  const json before = MetadataOf(std::string(kMaps) + "/a");
  MakeAnew();
  for (const Request& request : stale) {
    const Request logged = Logged(request);
    EXPECT_GE(Send(logged).code, 400) << logged.method << " " << logged.path;
    for (const char* fact : {"uid", "resourceVersion"}) {
      EXPECT_THAT(logged.body, ::testing::Not(::testing::HasSubstr(before[fact].get<std::string>())));
    }
  }
}

TEST_F(PreconditionsTest, WhatDemandsNothingStaysAsItIs) {
  for (const Request& request :
       {Ask("POST", kMaps, ConfigMap("b")), Ask("PUT", std::string(kMaps) + "/a", ConfigMap("a")),
        Ask("PATCH", std::string(kMaps) + "/a", {{"data", {{"value", "2"}}}}, "application/merge-patch+json"),
        Ask("DELETE", std::string(kMaps) + "/a", {{"propagationPolicy", "Orphan"}}),
        Ask("PUT", "/api/v1/nowhere/a", {{"metadata", {{"resourceVersion", "7"}}}}),
        Ask("PUT", std::string(kMaps) + "/none", {{"metadata", {{"resourceVersion", "7"}}}}),
        Ask("PUT", std::string(kMaps) + "/a", {{"metadata", 3}}),
        Ask("PATCH", std::string(kMaps) + "/a", json::array({3, "x", {{"op", "test"}, {"path", 7}}}),
            "application/json-patch+json"),
        Ask("DELETE", std::string(kMaps) + "/a", json::array({1}))}) {
    EXPECT_EQ(json::parse(Logged(request).body), json::parse(request.body)) << request.method << " " << request.path;
  }
}

}  // namespace
}  // namespace wavetank::fakekube::http
